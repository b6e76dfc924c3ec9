"""One value of a foreign JSON file changed: everything else stays, byte for byte."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.clients.jsonc import NotJson, loads, put, remove

COMMENTED = """\
// servers of this project
{
    "servers": {
        "other": { // theirs
            "command": "x", /* as is */
            "url": "http://a//b",
        }, // last
    },
    "inputs": [1, 2,],
}
"""
HERMES = {"command": "hermes", "args": ["mcp", "serve"]}


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that went, and lines that came."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return (
        [line[2:] for line in lines if line.startswith("- ")],
        [line[2:] for line in lines if line.startswith("+ ")],
    )


def test_comments_and_trailing_commas_are_read() -> None:
    """What VS Code writes is understood; a comment mark inside a text is text."""
    assert loads(COMMENTED) == {
        "servers": {"other": {"command": "x", "url": "http://a//b"}},
        "inputs": [1, 2],
    }


def test_a_server_is_added_behind_the_others() -> None:
    """No line goes, and the new ones are indented as the file is."""
    after = put(COMMENTED, ["servers", "hermes"], HERMES)
    gone, new = changes(COMMENTED, after)
    assert gone == []
    assert new[0] == '        "hermes": {'
    assert "// last" in after
    assert put(after, ["servers", "hermes"], HERMES) == after


def test_what_was_added_can_be_removed_without_a_trace() -> None:
    """Adding and removing gives the file as it was, but for a comma that was added."""
    for text in (COMMENTED, '{\n  "a": 1\n}\n', '{"a": {"b": 1}}', '{\n\t"a": []\n}'):
        after = remove(put(text, ["servers", "hermes"], HERMES), ["servers", "hermes"])
        left = loads(after)
        if "servers" not in loads(text):
            assert left.pop("servers") == {}
        assert left == loads(text)
    assert remove(put(COMMENTED, ["servers", "hermes"], HERMES), ["servers", "hermes"]) == COMMENTED


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{ }\n", "{\n}", "// only a comment\n{}"])
def test_an_empty_file_becomes_one_with_the_value(text: str) -> None:
    """Nothing, an empty object or a comment: the value is there afterwards."""
    after = put(text, ["mcpServers", "hermes"], HERMES)
    assert loads(after) == {"mcpServers": {"hermes": HERMES}}
    assert "only a comment" in after or "only" not in text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{]",
        '{"a" 1}',
        '{"a": }',
        "[1]",
        '{"a": 1} x',
        '{"a": tru}',
        '{"a": "\n"}',
        "nope",
        '{"a": 1 "b": 2}',
    ],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    """A file that is not understood is not changed."""
    with pytest.raises(NotJson):
        put(text, ["a", "b"], 1)


def test_a_value_on_the_way_that_is_no_object_is_refused() -> None:
    """``"mcpServers": 5`` is not replaced."""
    with pytest.raises(NotJson, match="no object"):
        put('{"mcpServers": 5}', ["mcpServers", "hermes"], HERMES)
    assert remove('{"mcpServers": 5}', ["mcpServers", "hermes"]) == '{"mcpServers": 5}'


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcd"), _VALUES),
    st.sampled_from([None, 2, 4, "\t"]),
    _VALUES,
    st.sampled_from("abcd"),
)
def test_any_object_can_be_changed_and_changed_back(document: Any, indent: Any, value: Any, key: str) -> None:
    """Put and remove do what they do to the values, and only that, however the file is laid out."""
    text = json.dumps(document, indent=indent)
    after = put(text, [key], value)
    assert loads(after) == {**document, key: value}
    assert list(loads(after)) == list({**document, key: value})
    gone = remove(after, [key])
    assert loads(gone) == {k: v for k, v in document.items() if k != key}


def test_a_list_is_added_to_and_taken_from_in_place() -> None:
    """Only the lines of the new item come and go; what others wrote in the list keeps its comments and form."""
    text = """{
  "hooks": {
    "Stop": [
      // theirs
      {"hooks": [{"type": "command", "command": "x"}]} // as is
    ]
  }
}
"""
    after = put(text, ["hooks", "Stop", 1], {"hooks": [1]})
    gone, new = changes(text, after)
    assert gone == ['      {"hooks": [{"type": "command", "command": "x"}]} // as is']
    assert new[0] == '      {"hooks": [{"type": "command", "command": "x"}]}, // as is'
    assert put(after, ["hooks", "Stop", 1, "hooks", 0], 1) == after
    assert remove(after, ["hooks", "Stop", 1]) == text
    assert loads(remove(after, ["hooks", "Stop", 0])) == {"hooks": {"Stop": [{"hooks": [1]}]}}


def test_a_place_that_a_list_does_not_have_is_refused() -> None:
    """Neither a place beyond the end of a list nor a key in one is invented."""
    paths: list[list[str | int]] = [["a", 3], ["a", "x"], ["a", 0, "x"]]
    for path in paths:
        with pytest.raises(NotJson):
            put('{"a": [5]}', path, 1)
    assert remove('{"a": [5]}', ["a", 3]) == '{"a": [5]}'
    assert remove('{"a": [5]}', ["a", 0, "x"]) == '{"a": [5]}'


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3]",
        "[1,2,3]",
        "[\n  1,\n  2,\n  3\n]",
        "[\n  1, // one\n  2, // two\n  3 // three\n]",
        "[ 1 , 2 , 3, ]",
        "[1, /* , */ 2, 3]",
    ],
)
def test_any_item_can_be_removed_however_the_list_is_laid_out(text: str, number: int) -> None:
    """The others stay, and so does every comment."""
    whole = '{"a": ' + text + "}"
    after = remove(whole, ["a", number])
    assert loads(after) == {"a": [n for n in (1, 2, 3) if n != number + 1]}
    assert after.count("//") + after.count("/*") == text.count("//") + text.count("/*")


def test_a_deep_file_costs_no_more_than_its_length() -> None:
    """Forty levels are changed at once; a hundred thousand are refused, not a crash."""
    text = '{"a": ' * 40 + "1" + "}" * 40
    assert loads(put(text, ["b"], 2))["b"] == 2
    with pytest.raises(NotJson, match="deep"):
        loads("[" * 100_000)
