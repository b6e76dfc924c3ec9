"""``hermes local …``: what each command prints, changes and asks, and how it fails."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hermes.plugins.memory.local as plugin
from hermes.errors import HermesError
from hermes.plugin_host import tree
from hermes.plugins.memory.local import erasure
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.profiles import Profile
from tests.support import give_to_nobody, hermes, unprivileged
from tests.terminal import Terminal

Open = Callable[..., LocalMemoryProvider]


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read."""
        return json.loads(self.out)


Run = Callable[..., Done]


def run_in(home: Path, *words: str, **config: Any) -> Done:
    """``hermes local WORDS`` for the profile in *home*; an error counts as the line it becomes."""
    spec = {"name": "local", "kind": "memory", "path": str(Path(plugin.__file__).parent), "bundled": True}
    facts = {"hermes_profile": Profile("default", home, home, "test"), "hermes_config": {"local": config}}
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code, problem = tree.run(spec, words, prog="hermes local", facts=facts), ""
        except HermesError as exc:
            code, problem = exc.exit_code, f"{exc} ({exc.next_step})"
    return Done(code, out.getvalue(), err.getvalue() + problem)


@pytest.fixture
def run(home: Path) -> Run:
    """``run_in`` for the home of the test."""
    return partial(run_in, home)


@pytest.fixture
def filled(open_local: Open) -> LocalMemoryProvider:
    """Two sessions, a note, and a fact that was corrected once."""
    provider = open_local("s1", user_name="Ann")
    provider.sync_turn("My locker code is xylo4471", "Noted the code.", turn_author="Ann", turn_time=1.7e9)
    provider.sync_turn("We met at the harbour cafe", "Nice place.", session_id="s2", turn_time=1.75e9)
    provider.on_memory_write("add", "user", "likes harbour cafes")
    made = json.loads(provider.handle_tool_call("local_remember", {"text": "Ann works at Acme, floor nine"}))
    provider.handle_tool_call(
        "local_update", {"id": made["remembered"]["id"], "text": "Ann works at Initech"}
    )
    return provider


def fact_of(provider: LocalMemoryProvider) -> int:
    """The id of the fact that holds."""
    (fact,) = provider.memory.store.facts(None)
    return fact.id


def texts(provider: LocalMemoryProvider) -> list[str]:
    """Everything that is stored."""
    return [record["text"] for record in provider.export_records()]


# -- looking ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [("list",), ("search", "x"), ("stats",), ("export",), ("optimize",), ("forget", "--session", "s")],
)
def test_an_empty_home_stays_empty(run: Run, home: Path, words: tuple[str, ...]) -> None:
    """Every command works before anything was stored, and makes nothing."""
    assert run(*words).code == 0
    assert not home.exists()


def test_search_and_list(run: Run, filled: LocalMemoryProvider) -> None:
    """Best first, or newest first, with id, day, who and session; as JSON for programs."""
    out = run("search", "locker code").out
    assert out.splitlines()[:2] == [f"{1 << 20}  2023-11-14  Ann  session s1", "  My locker code is xylo4471"]
    found = run("search", "locker code", "--json", "-n", "1").json
    assert [(record["id"], record["session_id"], record["role"]) for record in found] == [
        (1 << 20, "s1", "user")
    ]
    assert found[0]["score"] > 0
    assert run("search", "zeppelin").out == "nothing was found\n"
    assert [record["text"] for record in run("list", "--session", "s2", "--json").json] == [
        "Nice place.",
        "We met at the harbour cafe",
    ]
    assert len(run("list", "-n", "2", "--json").json) == 2


def test_why(run: Run, filled: LocalMemoryProvider) -> None:
    """The tier, how common each word is, and what each result owes its place to; the order is that of search."""
    known = run("why", "locker code of zeppelins", "--json").json
    assert known["tier"] == "lexical"
    assert known["terms"] == {"locker": 1, "code": 2, "zeppelin": 0}
    assert [one["id"] for one in known["found"]] == [
        one["id"] for one in run("search", "locker code of zeppelins", "-n", "5", "--json").json
    ]
    first = known["found"][0]
    assert (first["terms"], first["by_words"], first["cosine"]) == (["locker", "code"], 1, None)
    assert first["shares"]["words"] > 0
    assert "locker (in 1)" in run("why", "locker code").out
    assert "nothing was found" in run("why", "zeppelin").out


def test_facts_and_their_history(run: Run, filled: LocalMemoryProvider) -> None:
    """Those that hold; with --former the others, marked."""
    assert [fact["text"] for fact in run("list", "--facts", "--json").json] == ["Ann works at Initech"]
    former = run("list", "--former").out
    assert "corrected" in former
    assert "Acme" in former


def test_show(run: Run, filled: LocalMemoryProvider) -> None:
    """A message whole; a fact with its source and what it corrected; an unknown id is exit code 3."""
    assert run("show", str(1 << 20)).out.endswith("\n\nMy locker code is xylo4471\n")
    shown = run("show", str(fact_of(filled)), "--json").json
    assert (shown["person"], shown["tool"], shown["session_id"]) == ("Ann", "local_update", "s1")
    assert [fact["text"] for fact in shown["corrected"]] == ["Ann works at Acme, floor nine"]
    missing = run("show", "77")
    assert (missing.code, "77" in missing.err) == (3, True)


def test_stats(run: Run, filled: LocalMemoryProvider) -> None:
    """Counts, place, retention and what is owed."""
    shown = run("stats", "--json", retention={"max_turns": 100}).json
    assert (shown["turns"], shown["notes"], shown["facts"], shown["former_facts"]) == (2, 1, 1, 1)
    assert shown["retention"] == "at most 100 turns; facts stay"
    assert "memory.db" in run("stats").out


# -- changing -----------------------------------------------------------------------------------------------


def test_pin_and_unpin(run: Run, filled: LocalMemoryProvider) -> None:
    """A fact, or a message, of which a fact is made; it is then part of every recall."""
    assert run("pin", str(fact_of(filled))).code == 0
    pinned = run("pin", str(2 << 20), "--json").json
    assert (pinned["text"], pinned["message"], pinned["tool"]) == (
        "We met at the harbour cafe",
        2 << 20,
        "pin",
    )
    block = filled.prefetch("something else entirely?")
    assert "harbour cafe" in block
    assert "Initech" in block
    assert run("unpin", str(pinned["id"])).code == 0
    assert "harbour cafe" not in filled.prefetch("something else entirely?")
    assert [run(how, "77").code for how in ("pin", "unpin")] == [3, 3]


def test_optimize_applies_the_limits(run: Run, filled: LocalMemoryProvider) -> None:
    """What is beyond them is gone afterwards, and the command says how much went."""
    done = run("optimize", "--json", retention={"max_turns": 1})
    assert done.json["let_go"] == 2
    assert "My locker code is xylo4471" not in texts(filled)


@pytest.mark.parametrize(
    ("words", "messages", "facts"),
    [
        (["--session", "s1"], 2, 2),
        (["--session", "s2"], 2, 0),
        (["--before", "2024-01-01"], 2, 0),
        (["--before", "1d"], 4, 0),
        (["--matching", "HARBOUR"], 1, 0),
        (["--matching", "floor nine"], 0, 1),
        (["--matching", "ann works"], 0, 2),
        ([str(1 << 20), str((1 << 20) + 1)], 2, 0),
        (["--matching", "zeppelin"], 0, 0),
    ],
)
def test_forget(run: Run, filled: LocalMemoryProvider, words: list[str], messages: int, facts: int) -> None:
    """A dry run counts and deletes nothing; the real one deletes exactly that, and finds no byte of it."""
    before = texts(filled)
    dry = run("forget", *words, "--dry-run", "--json").json
    assert (dry["messages"], dry["facts"], dry["dry_run"]) == (messages, facts, True)
    assert texts(filled) == before
    done = run("forget", *words, "--yes", "--json")
    assert done.code == 0, done.err
    assert done.json.get("forgotten", 0) == messages + facts
    assert len(texts(filled)) == len(before) - messages - facts
    assert done.json.get("left", {}) == {}
    assert "likes harbour cafes" in texts(filled)  # a note is the built-in memory's


def test_forgetting_leaves_no_byte(run: Run, filled: LocalMemoryProvider, home: Path) -> None:
    """Text, index, log: nothing, and the command says that it looked."""
    done = run("forget", "--matching", "xylo", "--yes")
    assert "no byte" in done.out
    assert not any(b"xylo" in path.read_bytes().lower() for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--session", "s1", "--before", "1d"],
        ["5", "--matching", "x"],
        ["--matching", " "],
        ["--before", "soon"],
        ["--before", "2100-01-01"],
        ["--session", "s1"],
    ],
)
def test_forget_needs_one_way_and_a_yes(run: Run, filled: LocalMemoryProvider, words: list[str]) -> None:
    """Anything unclear, or nobody there to agree, deletes nothing and is a usage error."""
    before = texts(filled)
    assert run("forget", *words).code == 2
    assert texts(filled) == before


def test_forget_an_unknown_id(run: Run, filled: LocalMemoryProvider) -> None:
    """Nothing is deleted where one of the ids is unknown."""
    done = run("forget", str(1 << 20), "77", "--yes")
    assert (done.code, "77" in done.err) == (3, True)
    assert len(texts(filled)) == 7


def test_what_others_still_say_is_no_trace(run: Run, open_local: Open) -> None:
    """The same words in a message that stays are not taken for a deletion that failed."""
    provider = open_local("s1")
    provider.sync_turn("see you at the harbour", "", session_id="a")
    provider.sync_turn("see you at the harbour", "", session_id="b")
    done = run("forget", "--session", "a", "--yes")
    assert (done.code, done.err) == (0, "")
    assert texts(provider) == ["see you at the harbour"]


def test_a_trace_elsewhere_is_named(run: Run, filled: LocalMemoryProvider, home: Path) -> None:
    """Another file of the profile that holds the text is named, and the exit code is 1."""
    (home / "notes.txt").write_text("he said: My locker code is xylo4471")
    done = run("forget", str(1 << 20), "--yes", "--json")
    assert done.code == 1
    assert done.json["left"] == {str(home / "notes.txt"): 1}
    assert "notes.txt still holds 1" in done.err


def test_a_reader_that_holds_the_log_is_told(
    run: Run, filled: LocalMemoryProvider, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that cannot leave the log yet are not said to be gone."""
    from hermes.plugins.memory.local.connections import Connections

    real = Connections.scrub
    monkeypatch.setattr(Connections, "scrub", lambda self: real(self, seconds=0.1))
    with closing(sqlite3.connect(home / "local" / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        done = run("forget", "--matching", "xylo", "--yes")
    assert done.code == 1
    assert "memory.db-wal still holds 1" in done.err
    assert "owed" in filled.get_status_config({})


def test_the_journal_and_the_log_are_cleared_too(home: Path) -> None:
    """A turn that came through the journal leaves it as well."""
    line = '{"role": "user", "content": "The word is xylophagerz, said Rosa"}'
    assert hermes("memory", "ingest", home=home, stdin=line).returncode == 0
    done = hermes("local", "forget", "--matching", "xylophagerz", "--yes", "--json", home=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["forgotten"] == 1
    assert not any(b"xylophagerz" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_other_profiles_are_not_searched(tmp_path: Path) -> None:
    """The root's own profile does not look into the homes below it."""
    for folder in ("local", "profiles/work/local"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text("a rather telling text")
    found = erasure.search(tmp_path, ["a rather telling text", "no"])
    assert list(found.files) == [tmp_path / "local" / "file"]
    assert (found.searched, found.texts) == (1, 2)  # "no" is too short to be looked for


# -- out and in ---------------------------------------------------------------------------------------------


def test_export_and_import(run: Run, filled: LocalMemoryProvider, tmp_path: Path) -> None:
    """Into a private file, and back from it; a malformed line is named, and exit code 1."""
    file = tmp_path / "out.jsonl"
    assert run("export", "--output", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("export").out == file.read_text()
    again = run("import", str(file), "--json")
    assert (again.code, again.json["known"], again.json["messages"]) == (0, 7, 0)
    with file.open("a") as out:
        out.write("oops\n")
    broken = run("import", str(file))
    assert broken.code == 1
    assert broken.err.startswith("line 8: ")
    assert run("import", str(tmp_path / "none")).code == 4
    assert run("export", "-o", str(tmp_path / "no" / "such")).code == 4


# -- models -------------------------------------------------------------------------------------------------


def test_models(run: Run, home: Path, tmp_path: Path) -> None:
    """What is known is listed; a folder is taken in after a yes, and let go after another; nothing is downloaded."""
    assert [(one["name"], one["folder"]) for one in run("model", "list", "--json").json] == [("minilm", None)]
    assert "licence: Apache-2.0; not installed" in run("model").out
    own = tmp_path / "my-model"
    own.mkdir()
    assert run("model", "install", str(own), "--yes").code == 2  # it holds no model
    for name in ("model.onnx", "tokenizer.json"):
        (own / name).write_text("{}")
    asked = run("model", "install", str(own))
    assert (asked.code, "as its maker says" in asked.err) == (2, True)
    assert not (home / "models").exists()
    assert run("model", "install", str(own), "--yes", "--json").json["name"] == "my-model"
    assert [one["name"] for one in run("model", "list", "--json").json] == ["minilm", "my-model"]
    assert run("model", "remove", "my-model").code == 2
    assert run("model", "remove", "my-model", "--yes").code == 0
    assert [run("model", how, "nothing", "--yes").code for how in ("install", "remove")] == [3, 3]
    assert run("model", "instal").code == 2


# -- as a person meets them ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["lst"], ["show"], ["show", "abc"], ["list", "-n", "0"], ["list", "--nope"], ["search"]]
)
def test_a_slip_is_one_line(run: Run, words: list[str]) -> None:
    """A wrong word says what is expected and where to look, with exit code 2."""
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert "\n" not in done.err
    assert "--help)" in done.err


def test_a_home_that_cannot_be_written(reachable: Path) -> None:
    """Looking goes on; what changes something says why it cannot, with exit code 4."""
    home = reachable / "home"
    provider = LocalMemoryProvider()
    provider.initialize("s1", hermes_home=str(home), platform="cli")
    provider.sync_turn("see you at the harbour", "")
    provider.handle_tool_call("local_remember", {"text": "Ann lives in Lisbon"})
    fact = str(fact_of(provider))
    provider.shutdown()
    lines = reachable / "lines.jsonl"
    lines.write_text('{"role": "user", "text": "one more", "time": 5, "session_id": "s"}')
    looking = [("list",), ("search", "harbour"), ("why", "harbour"), ("show", fact), ("stats",), ("export",)]
    changing = [("pin", fact), ("optimize",), ("forget", fact, "--yes"), ("import", str(lines))]
    for words in (*looking, *changing[:1]):  # imports what the child, which cannot reach root's Python, needs
        run_in(home, *words)
    give_to_nobody(reachable)

    def attempt() -> None:
        for folder in (home / "local", home):
            folder.chmod(0o500)
        for words in looking:
            assert run_in(home, *words).code == 0, words
        for words in changing:
            done = run_in(home, *words)
            assert (done.code, str(home) in done.err, "\n" in done.err) == (4, True, False), (words, done)

    unprivileged(attempt)


def test_help_says_what_each_does(run: Run) -> None:
    """Every command has a sentence."""
    out = run("--help").out
    for name in (
        "search",
        "why",
        "show",
        "list",
        "stats",
        "forget",
        "pin",
        "unpin",
        "optimize",
        "export",
        "import",
    ):
        assert f"    {name} " in out
    assert "Delete messages and facts for good" in run("forget", "--help").out


def test_root_options_hold_for_it(home: Path) -> None:
    """--json and --set before the word, and another profile after it."""
    assert hermes("profile", "create", "work", home=home).returncode == 0
    line = '{"role": "user", "content": "A turn about zebras at work"}'
    assert hermes("-p", "work", "memory", "ingest", home=home, stdin=line).returncode == 0
    done = hermes(
        "--json",
        "--set",
        "local.retention.max_turns=9",
        "local",
        "stats",
        "--target-profile",
        "work",
        home=home,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["turns"], shown["retention"]) == (1, "at most 9 turns; facts stay")
    assert json.loads(hermes("local", "stats", "--json", home=home).stdout)["turns"] == 0
    wrong = hermes("--set", "local.scope=everyone", "local", "stats", home=home)
    assert (wrong.returncode, "local.scope" in wrong.stderr) == (78, True)


def test_forget_at_a_terminal(home: Path, open_local: Open) -> None:
    """It shows what goes and asks; no, and Ctrl-C, change nothing; yes deletes."""
    provider = open_local("s1")
    provider.sync_turn("see you at the harbour", "")
    for answer, code in (("n\r", 1), ("\x03", 130), ("y\r", 0)):
        with Terminal("local", "forget", "--session", "s1", home=home) as terminal:
            terminal.expect("see you at the harbour")
            terminal.expect("Delete 1 message for good? [y/N]")
            terminal.send(answer)
            assert terminal.wait() == code
        assert texts(provider) == ([] if answer == "y\r" else ["see you at the harbour"])
