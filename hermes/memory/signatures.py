"""Calling the members of a provider with what they really accept, found out once per function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from hermes.memory.layers import signatures


@attrs.frozen
class Convention:
    """How the contract calls one member.

    *positional* and *keywords* name the arguments of the contract in order. *explicit* are keywords that only
    a member which names them is given. *by_place* are keywords that may also stand after the positional
    arguments under any name.
    """

    positional: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    explicit: tuple[str, ...] = ()
    by_place: tuple[str, ...] = ()


CONVENTIONS: Mapping[str, Convention] = {
    "initialize": Convention(("session_id",)),
    "initialize_for_inspection": Convention(("session_id",)),
    "prefetch": Convention(("query",), ("session_id",)),
    "queue_prefetch": Convention(("query",), ("session_id",)),
    "sync_turn": Convention(
        ("user_content", "assistant_content"),
        ("session_id", "messages", "turn_author"),
        ("idempotency_key", "turn_time", "identity"),
    ),
    "handle_tool_call": Convention(("tool_name", "args")),
    "on_turn_start": Convention(("turn_number", "message")),
    "on_session_end": Convention(("messages",), (), ("session_id", "idempotency_key")),
    "on_session_switch": Convention(
        ("new_session_id",),
        ("parent_session_id", "reset", "rewound", "reason"),
        ("idempotency_key", "identity"),
    ),
    "on_pre_compress": Convention(("messages",), ("require_checkpoint",)),
    "on_memory_write": Convention(
        ("action", "target", "content"),
        ("metadata",),
        ("idempotency_key", "identity"),
        by_place=("metadata",),
    ),
    "on_delegation": Convention(("task", "result"), ("child_session_id",), ("idempotency_key", "identity")),
}
"""Members without an entry are called with what the caller gives, in that order."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@attrs.frozen
class Shape:
    """What a callable accepts."""

    places: tuple[str, ...]
    """Names of the parameters that can be given by place."""
    required: frozenset[str]
    """Those without a default."""
    names: frozenset[str]
    """Names that can be given as keywords."""
    many: bool
    """``*args``."""
    any_name: bool
    """``**kwargs``."""

    def accepts(self, name: str) -> bool:
        """True if the callable names the keyword *name* itself."""
        return name in self.names

    def bind(
        self, convention: Convention, positional: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for a call: *positional* by place, *keywords* by name, nothing it does not accept."""
        args = list(positional) if self.many else list(positional[: len(self.places)])
        kwargs: dict[str, Any] = {}
        unplaced = zip(convention.positional[len(args) :], positional[len(args) :], strict=False)
        if self.names or self.any_name:  # keyword-only, or all of it in **kwargs
            kwargs = {n: v for n, v in unplaced if n in self.names or self.any_name}
        left = {name: value for name, value in keywords.items() if name not in self.places[: len(args)]}
        for name in self.names & left.keys():
            kwargs[name] = left.pop(name)
        self._fill(args, kwargs, convention, left)
        if self.any_name:
            kwargs |= {name: value for name, value in left.items() if name not in convention.explicit}
        return args, kwargs

    def _fill(
        self, args: list[Any], kwargs: Mapping[str, Any], convention: Convention, left: dict[str, Any]
    ) -> None:
        """Give by place what has no name that the contract knows: required parameters, and *by_place*."""
        spare = [name for name in convention.keywords if name in left]
        for place in self.places[len(args) :]:
            if place in left:  # it has the name, but takes it by place only
                args.append(left.pop(place))
            elif place in kwargs or place in convention.keywords or place in convention.explicit:
                return
            elif spare and (place in self.required or spare[0] in convention.by_place):
                args.append(left.pop(spare.pop(0)))
            else:
                return


PLAIN = Shape((), frozenset(), frozenset(), many=True, any_name=False)
"""A callable that does not say what it accepts: it is given the positional arguments."""


def shape_of(fn: Callable[..., Any]) -> Shape:
    """What *fn* accepts; where it is a decorated function, what all the layers of it accept."""
    result: Shape | None = None
    for signature in signatures(fn):
        own = _shape(signature)
        result = own if result is None else _within(result, own)
        if not (own.many or own.any_name):
            break  # nothing is passed through to the layers below
    return result or PLAIN


def _shape(signature: inspect.Signature) -> Shape:
    parameters = signature.parameters.values()
    return Shape(
        places=tuple(p.name for p in parameters if p.kind in _POSITIONAL),
        required=frozenset(
            p.name
            for p in parameters
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ),
        names=frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)),
        many=any(p.kind is p.VAR_POSITIONAL for p in parameters),
        any_name=any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def _within(outer: Shape, inner: Shape) -> Shape:
    """What gets through *outer*, which passes its ``*args`` and ``**kwargs`` on, into *inner*."""
    places = outer.places + inner.places[len(outer.places) :] if outer.many else outer.places
    names = outer.names | inner.names if outer.any_name else outer.names
    return Shape(
        places=places,
        required=outer.required | (inner.required & (set(places) | names)),
        names=names,
        many=outer.many and inner.many,
        any_name=outer.any_name and inner.any_name,
    )


_NOTHING = Convention()


class Members:
    """The members of one provider, inspected on first use and again only where a function was exchanged."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self._shapes: dict[str, tuple[Any, Shape]] = {}
        self._plans: dict[tuple[Any, ...], tuple[Shape, list[int], dict[str, int]]] = {}

    def get(self, name: str) -> Callable[..., Any] | None:
        """The member, if the provider has it. Raises what a property of that name raises."""
        member = getattr(self.provider, name, None)
        return member if callable(member) else None

    def shape(self, name: str, member: Callable[..., Any]) -> Shape:
        """What *member* accepts."""
        function = getattr(member, "__func__", member)
        known = self._shapes.get(name)
        if known is None or known[0] is not function:
            known = self._shapes[name] = (function, shape_of(member))
        return known[1]

    def bind(
        self, name: str, member: Callable[..., Any], positional: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments to call *member* with."""
        convention = CONVENTIONS.get(name)
        if convention is None:
            return positional, keywords
        shape = self.shape(name, member)
        way = (name, len(positional), *keywords)
        known = self._plans.get(way)
        if known is None or known[0] is not shape:
            numbers = {key: -1 - place for place, key in enumerate(keywords)}
            known = self._plans[way] = (shape, *shape.bind(convention, range(len(positional)), numbers))
        _, args, named = known
        given = (*positional, *tuple(keywords.values())[::-1])  # so that both are found by their number
        return [given[number] for number in args], {key: given[number] for key, number in named.items()}

    def accepts(self, name: str, keyword: str) -> bool:
        """True if member *name* would be given *keyword*."""
        member = self.get(name)
        if member is None:
            return False
        shape = self.shape(name, member)
        explicit = keyword in CONVENTIONS.get(name, _NOTHING).explicit
        return shape.accepts(keyword) or (shape.any_name and not explicit)
