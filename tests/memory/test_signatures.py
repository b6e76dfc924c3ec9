"""Members of a provider are called with what they accept."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest

from hermes.memory.signatures import CONVENTIONS, Members, shape_of

KEYWORDS = {
    "session_id": "s",
    "messages": ["m"],
    "turn_author": "ann",
    "idempotency_key": "k",
    "turn_time": 1.0,
}


def called(fn: Callable[..., Any], *args: Any, hook: Any = "sync_turn", **keywords: Any) -> Any:
    """What *fn* returns when it is called as the contract calls *hook*."""
    bound, kwargs = shape_of(fn).bind(CONVENTIONS[hook], args, keywords)
    return fn(*bound, **kwargs)


def passing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as most are written."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def narrow(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that claims the signature of what it wraps and takes less."""

    @functools.wraps(fn)
    def wrapper(user: str, assistant: str) -> Any:
        return fn(user, assistant, session_id="of the wrapper")

    return wrapper


SYNC_FORMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "seed": (lambda user_content, assistant_content: (user_content, assistant_content), ("u", "a")),
    "session": (lambda user, assistant, session_id="": (user, assistant, session_id), ("u", "a", "s")),
    "session keyword": (lambda user, assistant, *, session_id="": session_id, "s"),
    "session without default": (lambda user, assistant, session_id: session_id, "s"),
    "session by another name": (lambda user, assistant, sid: sid, "s"),
    "another name beside kwargs": (
        lambda user, assistant, sid, **kw: (sid, sorted(kw)),
        ("s", ["messages", "turn_author"]),
    ),
    "another optional name": (lambda user, assistant, limit=3: limit, 3),
    "messages": (lambda u, a, *, session_id="", messages=None: (session_id, messages), ("s", ["m"])),
    "messages first": (lambda u, a, messages=None, session_id="": (session_id, messages), ("s", ["m"])),
    "author": (lambda u, a, *, session_id="", messages=None, turn_author=None: turn_author, "ann"),
    "kwargs": (lambda u, a, **kwargs: sorted(kwargs), ["messages", "session_id", "turn_author"]),
    "session and kwargs": (
        lambda u, a, *, session_id="", **kw: (session_id, sorted(kw)),
        ("s", ["messages", "turn_author"]),
    ),
    "args": (lambda *args: args, ("u", "a")),
    "args and kwargs": (
        lambda *args, **kw: (args, sorted(kw)),
        (("u", "a"), ["messages", "session_id", "turn_author"]),
    ),
    "keywords only": (
        lambda *, user_content, assistant_content: (user_content, assistant_content),
        ("u", "a"),
    ),
    "all in kwargs": (lambda **kw: (kw["user_content"], kw["assistant_content"]), ("u", "a")),
    "one": (lambda user: user, "u"),
    "none": (lambda: "called", "called"),
    "key": (lambda u, a, *, idempotency_key: idempotency_key, "k"),
    "key and time": (
        lambda u, a, *, turn_time=0.0, idempotency_key="", **kw: (turn_time, idempotency_key),
        (1.0, "k"),
    ),
    "decorated": (passing(lambda u, a, *, session_id="": session_id), "s"),
    "decorated without session": (passing(lambda u, a: (u, a)), ("u", "a")),
    "decorated twice": (passing(passing(lambda u, a, session_id: session_id)), "s"),
    "narrowed by its decorator": (narrow(lambda u, a, session_id="": session_id), "of the wrapper"),
    "partial": (functools.partial(lambda extra, u, a, session_id="": (extra, session_id), "x"), ("x", "s")),
}


@pytest.mark.parametrize("form", SYNC_FORMS)
def test_every_form_of_sync_turn(form: str) -> None:
    """Each form of sync_turn is given exactly what it can take."""
    fn, expected = SYNC_FORMS[form]
    assert called(fn, "u", "a", **KEYWORDS) == expected


def positional_only(user: str, assistant: str, session_id: str, /) -> str:
    """Take everything by place."""
    return session_id


def test_positional_only() -> None:
    """A parameter that takes its value by place only is given it there."""
    assert called(positional_only, "u", "a", **KEYWORDS) == "s"


def test_callable_object() -> None:
    """An object with __call__ is inspected like a function."""

    class Sync:
        def __call__(self, user: str, assistant: str, *, session_id: str = "") -> str:
            return session_id

    assert called(Sync(), "u", "a", **KEYWORDS) == "s"


def test_decorated_method_keeps_its_self() -> None:
    """A decorated method is inspected without its self, however deep it is wrapped."""

    class Provider:
        @passing
        def sync_turn(self, user: str, assistant: str, *, session_id: str = "") -> str:
            return session_id

        @narrow
        def prefetch(self, query: str) -> str:
            return query

    assert called(Provider().sync_turn, "u", "a", **KEYWORDS) == "s"


def test_builtin_without_signature() -> None:
    """A C callable that has no signature is given the positional arguments alone."""
    assert called(operator.itemgetter(0), ["first"], hook="on_session_end", idempotency_key="k") == "first"
    assert called(max, "a", "b", **KEYWORDS) == "b"


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda action, target, content: 3, 3),
        (lambda action, target, content, metadata=None: metadata, {"m": 1}),
        (lambda action, target, content, meta=None: meta, {"m": 1}),
        (lambda action, target, content, meta: meta, {"m": 1}),
        (lambda action, target, content, **kw: kw["metadata"], {"m": 1}),
        (lambda *args: len(args), 3),
    ],
)
def test_metadata_of_memory_write(fn: Callable[..., Any], expected: Any) -> None:
    """The metadata of a memory write reach every form that has room for them."""
    assert called(fn, "add", "user", "x", hook="on_memory_write", metadata={"m": 1}) == expected


def test_switch_without_rewound() -> None:
    """A member that lacks rewound is not given it; reason goes through **kwargs."""
    given = {"parent_session_id": "p", "reset": False, "rewound": True, "reason": "undo"}
    assert (
        called(
            lambda new, *, parent_session_id="", reset=False: parent_session_id,
            "n",
            hook="on_session_switch",
            **given,
        )
        == "p"
    )
    assert called(lambda new, **kw: kw["reason"], "n", hook="on_session_switch", **given) == "undo"


def test_initialize_gets_its_keywords() -> None:
    """initialize is given what it names, everything through **kwargs, or nothing at all."""
    given = {"hermes_home": "/h", "platform": "cli"}
    assert called(lambda session_id, hermes_home: hermes_home, "s", hook="initialize", **given) == "/h"
    assert called(lambda session_id, **kw: kw, "s", hook="initialize", **given) == given
    assert called(lambda **kw: kw["session_id"], "s", hook="initialize", **given) == "s"
    assert called(lambda: "called", "s", hook="initialize", **given) == "called"


def test_tool_call_takes_no_keywords() -> None:
    """Keywords of a tool call are dropped for a member that takes none."""
    assert called(lambda name, args: name, "t", {}, hook="handle_tool_call", task_id="1") == "t"


def test_inspected_once_per_function() -> None:
    """A member exchanged on the object is inspected anew, an unchanged one is not."""

    class Provider:
        def prefetch(self, query: str) -> str:
            return query

    provider: Any = Provider()
    members = Members(provider)
    first = members.shape("prefetch", provider.prefetch)
    assert members.shape("prefetch", provider.prefetch) is first
    provider.prefetch = lambda query, session_id: session_id
    member = members.get("prefetch")
    assert member is not None
    args, kwargs = members.bind("prefetch", member, ("q",), {"session_id": "s"})
    assert member(*args, **kwargs) == "s"


def test_accepts() -> None:
    """Whether a keyword would be given can be asked: ours only where it is named."""

    class Provider:
        def sync_turn(self, user: str, assistant: str, **kwargs: Any) -> None:
            """Take anything."""

    members = Members(Provider())
    assert members.accepts("sync_turn", "messages")
    assert not members.accepts("sync_turn", "idempotency_key")
    assert not members.accepts("prefetch", "session_id")
