"""Settings files that move to another home."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from hermes import dotenv
from hermes.errors import ConfigError
from hermes.profiles import Profile
from hermes.relocate import Move, move

ROOT = Path("/srv/ada/.hermes")
WORK = Move(
    Profile("work", ROOT, ROOT / "profiles" / "work", "test"),
    ROOT / "profiles" / "copy",
    {"HOME": "/srv/ada"},
)
DEFAULT = Move(Profile("default", ROOT, ROOT, "test"), ROOT / "profiles" / "copy", {"HOME": "/srv/ada"})


def moved(text: str, how: Move = WORK, *, name: str = "config.yaml", secrets: bool = False) -> str:
    """The new text of a file."""
    return move(Path(name), dedent(text).encode(), how, secrets=secrets).content.decode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/srv/ada/.hermes/profiles/work/x.db", "/srv/ada/.hermes/profiles/copy/x.db"),
        ("/srv/ada/.hermes/profiles/work", "/srv/ada/.hermes/profiles/copy"),
        ("~/.hermes/profiles/work/x.db", "~/.hermes/profiles/copy/x.db"),
        ("$HOME/.hermes/profiles/work/x", "$HOME/.hermes/profiles/copy/x"),
        ("${HOME}/.hermes/profiles/work/x", "${HOME}/.hermes/profiles/copy/x"),
        ("sqlite:////srv/ada/.hermes/profiles/work/x", "sqlite:////srv/ada/.hermes/profiles/copy/x"),
        ("run --db=/srv/ada/.hermes/profiles/work/x -v", "run --db=/srv/ada/.hermes/profiles/copy/x -v"),
        ("/srv/ada/.hermes/profiles/work2/x.db", None),
        ("/srv/ada/.hermes/profiles/work-2/x.db", None),
        ("/mnt/srv/ada/.hermes/profiles/work/x", None),
        ("/srv/ada/.hermes/plugins/x", None),
        ("$HERMES_HOME/x.db", None),
        ("work", None),
    ],
)
def test_paths_into_a_named_home(value: str, expected: str | None) -> None:
    """Every spelling of a path into the old home leads to the new one; other paths stay."""
    assert yaml.safe_load(moved(f"a:\n  b:\n  - {value}\n"))["a"]["b"] == [expected or value]
    assert json.loads(moved(json.dumps({"a": [value]}), name="x.json")) == {"a": [expected or value]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/srv/ada/.hermes/x.db", "/srv/ada/.hermes/profiles/copy/x.db"),
        ("/srv/ada/.hermes", "/srv/ada/.hermes/profiles/copy"),
        ("~/.hermes/x.db", "~/.hermes/profiles/copy/x.db"),
        ("/srv/ada/.hermes/plugins/x", None),
        ("/srv/ada/.hermes2/x", None),
    ],
)
def test_paths_into_the_default_home(value: str, expected: str | None) -> None:
    """The same for the profile at the root; what all profiles share there stays shared."""
    assert yaml.safe_load(moved(f"a: {value}\n", DEFAULT)) == {"a": expected or value}
    again = move(Path("c.yaml"), moved(f"a: {value}\n", DEFAULT).encode(), DEFAULT, secrets=False)
    assert not again.rewritten


def test_only_what_must_change_does() -> None:
    """Comments, order, quotes and line ends stay."""
    text = "# mine\r\nz: 1   # last\r\na: \"/srv/ada/.hermes/profiles/work/x\"\r\nb: 'q'\r\n"
    assert moved(text) == text.replace("profiles/work", "profiles/copy")
    assert moved("\ufeffapi_key: hunter2\nb: 1\n") == "\ufeffapi_key: ''\nb: 1\n"
    plain = "# mine\nmemory: {provider: x}\n"
    assert move(Path("c.yaml"), plain.encode(), WORK, secrets=False).content == plain.encode()


def test_secrets_in_yaml() -> None:
    """Without secrets their values are emptied in place and named; with them all stays."""
    text = """\
        # api_key: hunter1
        model:
          api_key: "hunter2"   # mine
          max_tokens: 400
          name: sk-abcdefghijklmnopqrstuvwx
        mem0:
          token: |
            hunter3
            hunter4
          keep: ${MEM0_KEY}
          api_key: ${MEM0_KEY}
          passwords: [hunter5, hunter6]
    """
    result = move(Path("config.yaml"), dedent(text).encode(), WORK, secrets=False)
    assert b"hunter" not in result.content
    assert yaml.safe_load(result.content) == {
        "model": {"api_key": "", "max_tokens": 400, "name": ""},
        "mem0": {"token": "", "keep": "${MEM0_KEY}", "api_key": "${MEM0_KEY}", "passwords": ["", ""]},
    }
    assert b"''   # mine\n" in result.content
    assert result.removed == (
        "model.api_key", "model.name", "mem0.token", "mem0.passwords", "mem0.passwords"
    )  # fmt: skip
    assert moved(text, secrets=True) == dedent(text)


def test_secrets_in_json() -> None:
    """In JSON they are left out, at any depth; numbers that count tokens are not secrets."""
    data = {
        "apiKey": "hunter1",
        "hosts": {"hermes": {"apiKey": "hunter2", "workspace": "w", "contextTokens": 5}},
        "oauth": {"tokens": {"refresh": "hunter3", "limit": 5}},
        "list": [{"password": "hunter4"}, "x"],
    }
    result = move(Path("honcho.json"), json.dumps(data).encode(), WORK, secrets=False)
    assert json.loads(result.content) == {
        "hosts": {"hermes": {"workspace": "w", "contextTokens": 5}},
        "oauth": {"tokens": {"limit": 5}},
        "list": [{}, "x"],
    }
    assert result.removed == ("apiKey", "hosts.hermes.apiKey", "oauth.tokens.refresh", "list.password")
    assert moved(json.dumps(data), name="x.json", secrets=True) == json.dumps(data)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('a: 1\nb: "\\x2fsrv/ada/.hermes/profiles/work/x"\n', 2, "safely"),
        ("a: 1\nb: /srv/ada/.hermes/profiles/other/../work/x\n", 2, "leads into the home of 'work'"),
        ("a:\n\t- 1\n", 2, "YAML"),
        ("- a\n- [\n", 3, "YAML"),
        ("a: &x hunter2\napi_key: *x\nb: &y {token: &z hunter3}\nc: *z\n", None, "YAML|safely"),
    ],
)
def test_yaml_that_cannot_be_changed_safely(text: str, line: int | None, reason: str) -> None:
    """It is refused with file and line."""
    with pytest.raises(ConfigError, match=reason) as caught:
        moved(text, name="/x/config.yaml")
    problem = caught.value.problems[0]
    assert problem.path == Path("/x/config.yaml")
    assert line is None or problem.line == line


def test_json_that_cannot_be_read() -> None:
    """It is refused with file and line."""
    with pytest.raises(ConfigError, match=r"mem0\.json:2: .*JSON"):
        moved('{\n"a": }\n', name="mem0.json")
    with pytest.raises(ConfigError, match="UTF-8"):
        move(Path("mem0.json"), b'{"a": "\xff"}', WORK, secrets=False)


def test_path_into_the_home_of_a_third_profile() -> None:
    """The default profile may point into another's home; a clone that would do so is refused."""
    as_json = '{"b": "/srv/ada/.hermes/profiles/other"}'
    for text, name in [("a: 1\nb: ~/.hermes/profiles/other/x.db\n", "c.yaml"), (as_json, "c.json")]:
        with pytest.raises(ConfigError, match="points into the home of 'other'"):
            moved(text, DEFAULT, name=name)


def test_path_through_a_link(tmp_path: Path) -> None:
    """A path that leads into the old home by a link is refused."""
    home = tmp_path / "profiles" / "work"
    home.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    how = Move(Profile("work", tmp_path, home, "test"), tmp_path / "profiles" / "copy")
    with pytest.raises(ConfigError, match=r"config\.yaml:1: db: leads into"):
        moved(f"db: {tmp_path}/link/x.db\n", how)


def test_dotenv() -> None:
    """In a .env paths follow; every other line stays."""
    text = "# mine\nexport DB='/srv/ada/.hermes/profiles/work/a b.db' # x\nKEY=hunter2\n"
    result = move(Path(".env"), text.encode(), WORK, secrets=True)
    assert result.content.decode() == text.replace("profiles/work", "profiles/copy")
    assert dotenv.parse(result.content, Path())["KEY"] == "hunter2"
    with pytest.raises(ConfigError, match="DB"):
        move(Path(".env"), b"DB=/srv/ada/.hermes/profiles/x/../work/a\n", WORK, secrets=True)
