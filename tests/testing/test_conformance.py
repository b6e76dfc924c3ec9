"""The conformance kit: a provider that breaks one rule is found out at the line that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import NotFound
from hermes.testing.conformance import CHECKS, Examination, Finding, examine, plugin_in
from tests.testing.broken_providers import CASES, HERE, Broken, write

_FIRST_OF_CHECK = {broken.check: broken for broken in reversed(CASES) if broken.severity == "error"}
FIRST = [pytest.param(broken, id=str(broken)) for broken in CASES if broken in _FIRST_OF_CHECK.values()]
OTHERS = [
    pytest.param(broken, id=str(broken), marks=pytest.mark.long)
    for broken in CASES
    if broken not in _FIRST_OF_CHECK.values()
]


def marked(folder: Path) -> tuple[str, int] | None:
    """The file and line that is marked, if one is."""
    for path in sorted(folder.rglob("*.*")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.rstrip().endswith(HERE):
                return str(path), number
    return None


@pytest.mark.parametrize("broken", FIRST + OTHERS)
def test_a_broken_rule_is_found_where_it_is_broken(broken: Broken, tmp_path: Path) -> None:
    """The check of that rule says what is wrong, in which line, why it matters and what to do."""
    outcome = write(broken, tmp_path).run(broken.check)
    found = [finding for finding in outcome.findings if broken.said in finding.what]
    assert found, outcome
    finding: Finding = found[0]
    assert finding.severity == broken.severity
    assert finding.check == broken.check
    assert len(finding.why.split()) > 4
    assert len(finding.mend.split()) > 2 or "did you mean" in finding.mend
    if place := marked(tmp_path / "my-notes"):
        assert (finding.file, finding.line) == place
    else:
        assert finding.file.startswith(str(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("broken", CASES, ids=str)
def test_a_broken_rule_is_found_by_its_check_alone(broken: Broken, tmp_path: Path) -> None:
    """Every other check has no error with it, except those that cannot but notice."""
    examination = write(broken, tmp_path)
    others = [name for name in CHECKS if name not in {broken.check, *broken.also}]
    errors = {name: outcome.errors for name in others if (outcome := examination.run(name)).errors}
    assert not errors


@pytest.mark.long
def test_a_plugin_that_hangs_is_ended(tmp_path: Path) -> None:
    """The finding names the line where it stands; nothing of it runs on."""
    hung = Broken("loads", "hung for", files={"__init__.py": "while True:\n    pass\n"})
    [finding] = write(hung, tmp_path).run("loads").findings
    assert hung.said in finding.what
    assert finding.file == str(tmp_path / "my-notes" / "__init__.py")
    assert finding.line in (1, 2)


def test_every_check_has_a_provider_that_breaks_it() -> None:
    """No check is there that nothing could fail."""
    assert {broken.check for broken in CASES if broken.severity == "error"} == set(CHECKS)


def test_the_example_of_the_guide_has_no_error() -> None:
    """The provider that the old guide spells out passes as it stands; it says no reason, which is a warning."""
    report = examine(Path(__file__).parents[1] / "fixtures" / "my-provider")
    assert report.errors == ()
    assert [finding.what for finding in report.findings] == [
        "is_available says no before the setup, and unavailable_reason says nothing"
    ]
    assert not [outcome for outcome in report.outcomes if outcome.not_tried]


def test_a_backend_that_is_not_there_is_no_mistake(tmp_path: Path) -> None:
    """What cannot be tried without a backend is said to be not tried, with the reason; nothing is an error."""
    away = Broken(
        "starts",
        "",
        "def initialize(self, session_id, **kwargs):\n    socket.create_connection(('192.0.2.1', 80))",
    )
    examination = write(away, tmp_path)
    (tmp_path / "my-notes" / "__init__.py").write_text(
        (tmp_path / "my-notes" / "__init__.py")
        .read_text()
        .replace("import logging", "import socket, logging")
    )
    for name in ("starts", "stored", "profiles"):
        outcome = examination.run(name)
        assert outcome.verdict == "not tried"
        assert "no network here" in outcome.not_tried


def test_an_address_that_nobody_answers_at_is_no_mistake_either(tmp_path: Path) -> None:
    """A field that wants an address is given one on this machine where nothing listens."""
    away = Broken(
        "starts",
        "",
        """
        def get_config_schema(self):
            return [{"key": "base_url", "description": "Address", "required": True}]
        def initialize(self, session_id, **kwargs):
            import urllib.request
            settings = json.loads((Path(kwargs["hermes_home"]) / "my-notes.json").read_text())
            urllib.request.urlopen(settings["base_url"])
        """,
    )
    outcome = write(away, tmp_path).run("starts")
    assert outcome.findings == ()
    assert "Connection refused" in outcome.not_tried


def test_answers_fill_in_the_form(tmp_path: Path) -> None:
    """A field is answered as the caller says, so that a backend on this machine can be named."""
    wants = Broken(
        "starts",
        "",
        """
        def initialize(self, session_id, **kwargs):
            raise ValueError((Path(kwargs["hermes_home"]) / "my-notes.json").read_text())
        """,
    )
    examination = write(wants, tmp_path)
    [plain] = examination.run("starts").findings
    assert '"limit": 5' in plain.what
    [given] = Examination(examination.plugin, {"limit": 7}).run("starts").findings
    assert '"limit": 7' in given.what


def test_a_default_that_names_a_place_is_in_the_world_of_each_check(tmp_path: Path) -> None:
    """A default is read in one process and used in others, whose home is another folder."""
    places = Broken(
        "storage",
        "",
        """
        def get_config_schema(self):
            return [{"key": "data", "description": "Where", "default": str(Path.home() / "data")}]
        def system_prompt_block(self):
            settings = Path(os.environ["HERMES_HOME"]) / "my-notes.json"
            Path(json.loads(settings.read_text())["data"]).write_text("x")
            return ""
        """,
    )
    [finding] = write(places, tmp_path).run("storage").findings
    assert finding.what == "it writes to ~/data"


def test_nothing_of_this_person_is_seen_or_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of the checks have no home, no variables and no temporary files of the caller."""
    monkeypatch.setenv("MY_PRIVATE_KEY", "sk-1")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    nosy = Broken(
        "starts",
        "",
        """
        def initialize(self, session_id, **kwargs):
            raise ValueError(Path.home(), os.environ.get("MY_PRIVATE_KEY"))
        """,
    )
    [finding] = write(nosy, tmp_path).run("starts").findings
    assert "None)" in finding.what
    assert str(Path.home()) not in finding.what
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_folder_without_a_plugin_is_said_to_be_none(tmp_path: Path) -> None:
    """The error names the folder and what a plugin needs."""
    with pytest.raises(NotFound, match=r"there is no plugin in"):
        plugin_in(tmp_path / "nothing")
