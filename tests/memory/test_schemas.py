"""Tool schemas reach a model in one valid shape, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.memory.schemas import (
    DisabledTools,
    memory_provider_tools_enabled,
    normalize_tool_schema,
    usable_tools,
)

GOOD = {
    "name": "t",
    "description": "d",
    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
}


def wrapped(schema: Any) -> dict[str, Any]:
    """As some providers give it."""
    return {"type": "function", "function": schema}


@pytest.mark.parametrize("schema", [GOOD, wrapped(GOOD), wrapped(wrapped(GOOD)), {**GOOD, "name": " t "}])
def test_wrapped_schemas_are_unwrapped(schema: Any) -> None:
    """However often it is wrapped, the bare function schema comes out, as a copy."""
    normal = normalize_tool_schema(schema)
    assert normal == GOOD
    assert normal is not None
    assert normal["parameters"] is not GOOD["parameters"]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "x",
        7,
        [],
        {},
        {"name": None},
        {"name": " "},
        {"name": "a b"},
        {"name": "ü"},
        {"name": "x" * 65},
        {"description": "no name"},
        wrapped(None),
        wrapped({"name": ""}),
        {"name": "t", "parameters": {"properties": {"a": {"default": object()}}}},
        {"name": "t", "parameters": {"properties": {"a": {"default": float("nan")}}}},
    ],
)
def test_what_cannot_be_offered(schema: Any) -> None:
    """Without a usable name, or with what is no JSON, there is no tool."""
    assert normalize_tool_schema(schema) is None


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ("x", {"type": "object", "properties": {}}),
        ({"properties": None}, {"type": "object", "properties": {}}),
        ({"type": None, "required": None}, {"type": "object", "properties": {}}),
        ({"required": "a"}, {"type": "object", "properties": {}}),
        ({"required": ["a", None, 3]}, {"type": "object", "properties": {}, "required": ["a"]}),
        (
            {
                "properties": {
                    "a": {"type": "string", "required": True, "enum": None, "default": None},
                    "b": None,
                }
            },
            {"type": "object", "properties": {"a": {"type": "string", "default": None}}},
        ),
        (
            {
                "properties": {
                    "a": {
                        "type": "array",
                        "items": {"properties": {"b": {"required": None}}, "required": None},
                    }
                }
            },
            {"type": "object", "properties": {"a": {"type": "array", "items": {"properties": {"b": {}}}}}},
        ),
        ({"anyOf": [{"required": None}, None]}, {"type": "object", "properties": {}, "anyOf": [{}]}),
    ],
)
def test_nulls_and_wrong_types_are_left_out(parameters: Any, expected: Any) -> None:
    """What strict endpoints refuse is taken out, at any depth."""
    normal = normalize_tool_schema({"name": "t", "parameters": parameters})
    assert normal is not None
    assert normal["parameters"] == expected
    assert normal["description"] == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "required", "properties", "items", "anyOf", "a"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=200, deadline=None)
def test_every_schema_is_valid_or_none(parameters: Any) -> None:
    """Whatever is given as parameters, the result is JSON with an object schema, and stays as it is."""
    normal = normalize_tool_schema({"name": "t", "parameters": parameters})
    assert normal is not None
    assert normal["parameters"]["type"] == "object"
    assert isinstance(normal["parameters"]["properties"], dict)
    assert normalize_tool_schema(json.loads(json.dumps(normal))) == normal


def test_names_that_are_taken() -> None:
    """A tool named like the agent's own, like another's, or twice, is offered once and by its owner."""
    tools, refused = usable_tools(
        [GOOD, GOOD, {"name": "memory"}, {"name": "terminal"}, {"name": "x"}, None], taken={"x"}
    )
    assert list(tools) == ["t"]
    assert len(refused) == 5
    assert usable_tools("nonsense") == ({}, ["its tools are str, expected a list"])
    assert usable_tools(None) == ({}, [])


@pytest.mark.parametrize(
    ("words", "builtin", "provider", "other"),
    [
        ([], False, False, False),
        (["memory"], True, True, True),
        (["builtin"], True, False, False),
        (["provider"], False, True, True),
        (["Notes"], False, True, True),
        (["notes_search"], False, True, False),
        (["terminal"], False, False, False),
    ],
)
def test_disabled_tools(words: list[str], builtin: bool, provider: bool, other: bool) -> None:
    """The built-in tool and the provider's can be taken away apart, together, or one by one."""
    disabled = DisabledTools(words)
    assert disabled.refuses("memory", "builtin", external=False) is builtin
    assert disabled.refuses("notes_search", "notes", external=True) is provider
    assert disabled.refuses("notes_add", "notes", external=True) is other


@pytest.mark.parametrize(
    ("enabled", "disabled", "expected"),
    [
        (None, None, True),
        (None, ["memory"], False),
        (["web"], None, False),
        (["memory", "web"], [], True),
        (["memory"], ["memory"], False),
        ([], None, False),
    ],
)
def test_toolsets_of_an_agent(enabled: Any, disabled: Any, expected: bool) -> None:
    """A disabled toolset wins; without a list of enabled ones everything is."""
    assert memory_provider_tools_enabled(enabled, disabled) is expected
