"""One key of a YAML file is changed; every other byte stays."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from hermes.errors import ConfigError, EditRefused
from hermes.settings.edit import set_key, unset_key, written

TYPICAL = b"""\
# my settings
model:
  default: some/model   # the big one
  base_url: 'http://127.0.0.1:8080/v1'

memory:
  provider: "mem0"  # why not
  memory_char_limit: 2200
  # what mem0 wants
  mem0:
    top_k: 5
    tags:
    - a
    - b

# the rest
agent:
  prompt: |
    Be kind.

    # not a comment
  max_turns: 60
when: yes
"""


def lines_changed(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """The lines that went and the lines that came."""
    diff = list(
        difflib.ndiff(before.decode().splitlines(keepends=True), after.decode().splitlines(keepends=True))
    )
    return [line[2:] for line in diff if line[0] == "-"], [line[2:] for line in diff if line[0] == "+"]


def read_both(raw: bytes) -> list[Any]:
    """The document as a reader of YAML 1.1 and one of 1.2 has it."""
    text = raw.decode("utf-8-sig")
    return [yaml.safe_load(text), YAML(typ="safe", pure=True).load(text)]


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("memory.provider", "local", '  provider: "mem0"  # why not\n', "  provider: local  # why not\n"),
        ("memory.memory_char_limit", 3000, "  memory_char_limit: 2200\n", "  memory_char_limit: 3000\n"),
        (
            "model.default",
            "a: b",
            "  default: some/model   # the big one\n",
            '  default: "a: b"   # the big one\n',
        ),
        ("memory.mem0.top_k", 9, "    top_k: 5\n", "    top_k: 9\n"),
        ("agent.max_turns", None, "  max_turns: 60\n", "  max_turns: null\n"),
        ("when", False, "when: yes\n", "when: false\n"),
    ],
)
def test_only_the_value_of_the_key_changes(key: str, value: Any, old: str, new: str) -> None:
    """A replaced value is one changed line; the comment at its end stays."""
    assert lines_changed(TYPICAL, set_key(TYPICAL, key.split("."), value)) == ([old], [new])


@pytest.mark.parametrize(
    ("key", "value", "after", "new"),
    [
        ("memory.write_approval", True, "    - b\n", ["  write_approval: true\n"]),
        ("memory.mem0.host", "x", "    - b\n", ["    host: x\n"]),
        ("agent.name", "n", "  max_turns: 60\n", ["  name: n\n"]),
        ("context.engine", "compressor", "when: yes\n", ["context:\n", "  engine: compressor\n"]),
        ("zone", "here", "when: yes\n", ["zone: here\n"]),
    ],
)
def test_a_new_key_is_inserted_after_its_siblings(key: str, value: Any, after: str, new: list[str]) -> None:
    """Nothing goes; the new lines follow the last line of the section, before what belongs to the next."""
    result = set_key(TYPICAL, key.split("."), value)
    assert lines_changed(TYPICAL, result) == ([], new)
    text = result.decode().splitlines(keepends=True)
    assert text[text.index(new[0]) - 1] == after


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("memory.provider", ['  provider: "mem0"  # why not\n']),
        ("memory.mem0.tags", ["    tags:\n", "    - a\n", "    - b\n"]),
        ("agent.prompt", ["  prompt: |\n", "    Be kind.\n", "\n", "    # not a comment\n"]),
        ("when", ["when: yes\n"]),
    ],
)
def test_unset_removes_the_lines_of_the_key_only(key: str, gone: list[str]) -> None:
    """What goes is the key and its value; comments and neighbours stay."""
    result = unset_key(TYPICAL, key.split("."))
    assert result is not None
    assert lines_changed(TYPICAL, result) == (gone, [])


def test_unset_of_the_last_key_removes_the_empty_section() -> None:
    """``section:`` with nothing below it is null to other programs, so it goes too."""
    raw = b"a: 1\nmemory:\n  # kept\n  provider: x\nb: 2\n"
    assert unset_key(raw, ["memory", "provider"]) == b"a: 1\n  # kept\nb: 2\n"


@pytest.mark.parametrize("key", ["nothing", "memory.nothing", "memory.mem0.nothing"])
def test_unset_of_what_is_not_there(key: str) -> None:
    """A key that is not there is reported as such."""
    assert unset_key(TYPICAL, key.split(".")) is None


@pytest.mark.parametrize("key", ["memory.provider.deeper", "memory.mem0.tags.x"])
def test_unset_below_a_value(key: str) -> None:
    """Below a text or a list there are no keys."""
    with pytest.raises(EditRefused, match="no mapping"):
        unset_key(TYPICAL, key.split("."))


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "off", "true", "null", "~", "1:30", "1_000", "0o7", "0x1f"]
)
@pytest.mark.parametrize("more", [False, True])
def test_a_text_that_a_reader_would_take_for_something_else_is_quoted(text: str, more: bool) -> None:
    """Readers of YAML 1.1 and of 1.2 both read the text back."""
    result = set_key(b"a: 1\n" if more else b"", ["k"], text)
    assert [data["k"] for data in read_both(result)] == [text, text]


TEXTS = [
    "",
    " lead",
    "trail ",
    "a #b",
    "a: b",
    "- x",
    "'q'",
    '"',
    "\\",
    "é",
    "日本",
    "😀",
    "\u2028",
    "\ufeff",
    "<<",
]
TEXTS += [
    "\x00\x1b",
    "a\nb",
    "\t",
    "1e3",
    "1.5",
    "2024-01-02",
    "=",
    "!x",
    "&x",
    "*x",
    "%x",
    "@x",
    "{a}",
    "[a]",
]
TEXTS += ["---", "..."]
OTHERS: list[Any] = [True, False, None, 0, -5, 10**15, 1.5, 1e300, 1e-7, -0.1, [], {}, ["yes", 1, None, True]]


@pytest.mark.parametrize("value", [*TEXTS, *OTHERS, TEXTS])
def test_every_value_is_read_back_by_both_readers(value: Any) -> None:
    """What is written is what YAML 1.1 and YAML 1.2 read, in value and type."""
    for data in read_both(set_key(b"x: 1\n", ["a", "b"], value)):
        assert data == {"x": 1, "a": {"b": value}}
        assert type(data["a"]["b"]) is type(value)


@pytest.mark.parametrize(
    ("raw", "key", "line", "reason"),
    [
        (b"a: 1\nb:\n\tc: 1\n", "a", 3, "tab"),
        (b"a: &x 1\n", "a", 1, "anchor"),
        (b"a: &x {}\nb: *x\n", "b", 1, "anchor"),
        (b"m: &x\n  k: 1\nn: *x\n", "m.k", 1, "anchor"),
        (b"m: &x\n  k: 1\nn:\n  <<: *x\n  j: 1\n", "n.j", 4, "merge key"),
        (b"m: {k: 1}\n", "m.k", 1, "braces"),
        (b"m: {k: 1}\n", "m", 1, "braces"),
        (b"m: null\n", "m.k", 1, "null"),
        (b"m: ~\n", "m.k", 1, "null"),
        (b"m: |\n  text\n", "m", 1, "several lines"),
        (b"m: one\n  two\n", "m", 1, "several lines"),
        (b"m: 'one\n  two'\n", "m", 1, "several lines"),
        (b"x: 1\nm:\n- a\n", "m", 3, "several lines"),
        (b"x: 1\nm:\n  a: 1\n", "m", 3, "several lines"),
        (b"a: 1\na: 2\n", "b", 2, "twice"),
        (b"a: 1\n---\nb: 1\n", "a", 2, "document"),
        (b"a: !x 1\n", "b", 1, ""),
        (b"a: !!str 1\n", "a", 1, "tag"),
        (b"a: 1\n", "a.b", 1, "no mapping"),
        (b"? a\n: 1\n", "a", 1, "start of its line"),
        (b"- a\n", "a", 1, "mapping"),
        (b"a: [1\n", "a", None, "YAML"),
        (b"a: \xff\n", "a", 1, "UTF-8"),
        (b"{}\n", "a", 1, "braces"),
        (b"... \n", "a", None, ""),
    ],
)
def test_what_cannot_be_changed_in_one_line_is_refused(
    raw: bytes, key: str, line: int | None, reason: str
) -> None:
    """The refusal names the line and the reason."""
    with pytest.raises(ConfigError) as caught:
        set_key(raw, key.split("."), "v")
    problem = caught.value.problems[0]
    assert reason in problem.what
    if line is not None:
        assert problem.line == line


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "half \ud83d", {"a": 1}, [[1]], object()])
def test_values_that_are_not_written(value: Any) -> None:
    """Infinity, not-a-number, lone surrogates and nested values are refused, in an error of ours."""
    with pytest.raises(EditRefused):
        set_key(b"", ["a"], value)


def test_a_key_is_quoted_like_a_text() -> None:
    """A key that is no plain word is read back as it was given."""
    for key in ("yes", "1", "a: b", "ü", "a b"):
        assert [list(data) for data in read_both(set_key(b"x: 1\n", [key], 1))] == [["x", key]] * 2


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", b"a:\n  b: 1\n"),
        (b"# only a comment", b"# only a comment\na:\n  b: 1\n"),
        (b"---\n", b"---\na:\n  b: 1\n"),
        (b"x: 1", b"x: 1\na:\n  b: 1\n"),
        (b"x: 1\r\n", b"x: 1\r\na:\r\n  b: 1\r\n"),
        (b"\xef\xbb\xbfx: 1\n", b"\xef\xbb\xbfx: 1\na:\n  b: 1\n"),
        (b"a:\n", b"a:\n  b: 1\n"),
        (b"a: # none yet\n  # b: 5\nx: 1\n", b"a: # none yet\n  b: 1\n  # b: 5\nx: 1\n"),
        (b"x:\n    y: 1\n", b"x:\n    y: 1\na:\n    b: 1\n"),
        (b"x: 1\n...\n", b"x: 1\na:\n  b: 1\n...\n"),
        (b"a:\n  c: |\n    text\n\n\nx: 1\n", b"a:\n  b: 1\n  c: |\n    text\n\n\nx: 1\n"),
        (b"a:\n  b:\n", b"a:\n  b: 1\n"),
        (b"a:\n  b: # unset\n", b"a:\n  b: 1 # unset\n"),
        (b"a:\n  b:\n    2\n", b"a:\n  b:\n    1\n"),
        (b"'a':\n  \"b\" : [1, 2] # c\n", b"'a':\n  \"b\" : 1 # c\n"),
        (b"a:\n  z:\n  - {y: 1}\n  -\nx: 1\n", b"a:\n  b: 1\n  z:\n  - {y: 1}\n  -\nx: 1\n"),
    ],
)
def test_where_a_value_goes(raw: bytes, expected: bytes) -> None:
    """Line ends, indentation, byte order mark and a missing final newline are kept as the file has them."""
    assert set_key(raw, ["a", "b"], 1) == expected


def test_an_untouched_part_may_hold_anything() -> None:
    """Anchors, merge keys, flow mappings and not-a-number elsewhere do not stand in the way."""
    raw = b"x: &x {a: .nan}\ny:\n  <<: *x\nd: 2024-01-02\nm:\n  k: 1 # c\n"
    assert set_key(raw, ["m", "k"], 2) == raw.replace(b"k: 1", b"k: 2")


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(words, trees, max_size=4)


@given(
    documents, st.lists(words, min_size=1, max_size=3), scalars, st.sampled_from([None, 40]), st.booleans()
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_edit_changes_its_key_or_refuses(
    document: dict[str, Any], keys: list[str], value: Any, width: int | None, block: bool
) -> None:
    """Whatever the file holds: the key reads back as given and all else as before, or nothing is done."""
    raw = yaml.safe_dump(document, width=width, default_flow_style=not block, allow_unicode=True).encode()
    try:
        result = set_key(raw, keys, value)
    except ConfigError:
        return
    node, old = yaml.safe_load(result), yaml.safe_load(raw) or {}
    for depth, key in enumerate(keys):
        rest = {k: v for k, v in node.items() if k != key}
        assert rest == {k: v for k, v in old.items() if k != key}
        node, old = node[key], (old.get(key) or {}) if depth < len(keys) - 1 else None
    assert node == value
    removed = unset_key(result, keys)
    assert removed is not None


@given(scalars)
@settings(max_examples=200, deadline=None)
def test_a_scalar_is_written_in_one_line(value: Any) -> None:
    """No value breaks the line or reads back as another."""
    text = written(value)
    assert len(text.splitlines()) <= 1
    assert yaml.safe_load(f"k: {text}") == {"k": value}
