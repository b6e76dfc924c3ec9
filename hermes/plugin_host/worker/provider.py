"""A memory provider that runs in a worker, and everything else its plugin has registered there."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hermes.errors import ProviderUnavailable
from hermes.memory.provider import MemoryProvider, RecallStatus
from hermes.plugin_host.context import Registered
from hermes.plugin_host.loading import LoadFailed
from hermes.plugin_host.worker.child import DELIVERY, END, HOOKS, TURN
from hermes.plugin_host.worker.describing import ATTRIBUTES, MEMBERS
from hermes.plugin_host.worker.failures import unpack
from hermes.plugin_host.worker.restarting import Worker

_DELIVERIES = frozenset(
    {"sync_turn", "sync_turns", "on_memory_write", "on_delegation", "on_session_end", "on_session_switch"}
)
_STARTS = frozenset({"initialize", "initialize_for_inspection"})
_LIMITS: Mapping[str, str] = {
    "prefetch": "prefetch",
    "initialize": "initialize",
    "initialize_for_inspection": "initialize",
    "on_session_end": "session_end",
    "shutdown": "shutdown",
    **dict.fromkeys(("handle_tool_call", "search_records", "export_records", "forget_records"), "tool_call"),
}
"""Which of the limits holds for a member; ``hook`` for the others."""


class WorkerProvider(MemoryProvider):
    """Stands for the provider that *worker* has loaded.

    It has the members that the real one has, with the same signatures; those that the real one takes from the
    base class, it takes from there too. ``shutdown`` ends the process. Where the process ended in between and
    the provider only accepts what it is given, ``shutdown`` raises: nothing says that it kept that.

    Raises LoadFailed where the plugin cannot be loaded or registers no provider.
    """

    def __init__(self, worker: Worker) -> None:
        worker.start()
        self._worker = worker
        self._shown: Mapping[str, Any] = {}
        weakref.finalize(self, worker.close, 0.0)
        self._show()

    @property
    def name(self) -> str:
        """As the provider says. Raises what that raises."""
        provider = self._shown["provider"]
        if "nameless" in provider:
            raise unpack(provider["nameless"])
        name: str = provider["name"]
        return name

    @property
    def registered(self) -> Registered:
        """What the plugin has registered, for a person: hooks, tools and commands by name only."""
        about = self._shown
        return Registered(
            memory_provider=self,
            hooks={name: [] for name in about["hooks"]},
            tools=about["tools"],
            commands=about["commands"],
            cli_commands=about["cli_commands"],
            other=[(method, summary) for method, summary in about["other"]],
            problem=about["problem"],
        )

    @property
    def hook_names(self) -> list[str]:
        """The hooks for which the plugin has a callback."""
        names: list[str] = self._shown["hooks"]
        return names

    def call_hook(self, hook: str, facts: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Call the callbacks of *hook*: their answers, and what they raised. Raises what ``Worker.call`` raises."""
        job = {"on": "hooks", "method": hook, "args": [facts], "kwargs": {}, "lane": HOOKS}
        answers, errors = self._worker.call(job, self._worker.limits.hook)["result"]
        return answers, errors

    def is_available(self) -> bool:  # this and the next two are abstract; an instance has its own
        """As the provider says."""
        return bool(self._ask("is_available"))

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Start the provider; again after every restart of its process."""
        self._ask("initialize", session_id, **kwargs)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools of the provider."""
        found: list[dict[str, Any]] = self._ask("get_tool_schemas")
        return found

    def shutdown(self) -> None:
        """End the provider, then its process. Raises ProviderUnavailable if that had ended before."""
        try:
            if (
                self._worker.pid is not None
                and self._shown["provider"]["members"].get("shutdown") is not None
            ):
                self._ask("shutdown")
        finally:
            self.close()
        if self._worker.ended and self.delivery != "stored":
            raise ProviderUnavailable(
                self._worker.name, f"its process {self._worker.ended}; what it had taken over may be lost"
            )

    def close(self) -> None:
        """End the process."""
        self._worker.close(self._worker.limits.shutdown)

    def _ask(self, hook: str, *args: Any, **kwargs: Any) -> Any:
        lane = DELIVERY if hook in _DELIVERIES else END if hook == "shutdown" else TURN
        job = {"on": "provider", "method": hook, "args": args, "kwargs": kwargs, "lane": lane}
        limit: float = getattr(self._worker.limits, _LIMITS.get(hook, "hook"))
        answer = (self._worker.initialize if hook in _STARTS else self._worker.call)(job, limit)
        self._show()
        result = answer["result"]
        if hook == "on_session_switch":
            self._worker.switched(args[0] if args else kwargs["new_session_id"])
        if hook == "recall_status" and result is not None:
            return RecallStatus(**result)
        return self._records(result) if hook == "export_records" and result is not None else result

    def _records(self, export: str) -> Iterator[dict[str, Any]]:
        job = {"on": "child", "method": "records_of", "args": [export], "kwargs": {}, "lane": TURN}
        while batch := self._worker.call(job, self._worker.limits.tool_call)["result"]:
            yield from batch

    def _show(self) -> None:
        """Have the members that the process said it has."""
        if self._shown is self._worker.about:
            return
        about = self._worker.about
        found = about["provider"]
        if found is None:
            raise LoadFailed(about["problem"] or "its register(ctx) registers no memory provider")
        own = vars(self)
        for hook in MEMBERS:
            if hook == "shutdown":
                continue  # there is always a process to end
            if hook not in found["members"]:
                own[hook] = None
            elif (layers := found["members"][hook]) is None:
                own.pop(hook, None)
            else:
                own[hook] = _forwarding(self._ask, hook, layers)
        for attribute in ATTRIBUTES:
            own.pop(attribute, None)
        own.update(found["attributes"])
        self._shown = about


def _forwarding(ask: Callable[..., Any], hook: str, layers: Sequence[Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return ask(hook, *args, **kwargs)

    forward.__name__ = forward.__qualname__ = hook
    return _signed(forward, layers)


def _signed(function: Any, layers: Sequence[Sequence[tuple[str, str, bool]]]) -> Callable[..., Any]:
    """*function*, which says of its parameters what *layers* (see ``describing.layers``) say."""
    outermost, *inner = layers or [[("args", "VAR_POSITIONAL", False)]]
    function.__signature__ = inspect.Signature([_parameter(*one) for one in outermost])
    if inner:
        function.__wrapped__ = _signed(lambda: None, inner)
    signed: Callable[..., Any] = function
    return signed


def _parameter(name: str, kind: str, optional: bool) -> inspect.Parameter:
    default = None if optional else inspect.Parameter.empty
    return inspect.Parameter(name, getattr(inspect.Parameter, kind), default=default)
