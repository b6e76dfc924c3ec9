"""What a plugin's ``register(ctx)`` is given, and what it leaves there.

Standard library only: worker processes import this module.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hermes.errors import ProviderUnavailable

if TYPE_CHECKING:
    from hermes.plugin_host.host import Host

FIRED = frozenset(
    {"pre_llm_call", "post_llm_call", "on_session_start", "on_session_end", "pre_tool_call", "post_tool_call"}
)
"""The hooks that this host fires; others are recorded and shown."""
_LONGEST_SUMMARY = 80


@dataclass
class Registered:
    """Everything that one plugin has registered."""

    memory_provider: Any = None
    context_engine: Any = None
    hooks: dict[str, list[Callable[..., Any]]] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: ``schema``, ``handler`` and whatever else was said."""
    commands: dict[str, str] = field(default_factory=dict)
    """Commands for a chat, with their descriptions; this host has no such chat."""
    cli_commands: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: ``help``, ``setup_fn``, ``handler_fn`` and whatever else was said."""
    other: list[tuple[str, str]] = field(default_factory=list)
    """Calls that this host accepts and has no use for: the method, and what it was about."""
    problem: str = ""
    """What went wrong after something had been registered that is kept."""

    def fire(self, hook: str, facts: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Call every callback of *hook* with those *facts* that it accepts: the answers, and what was raised."""
        answers, errors = [], []
        for callback in self.hooks.get(hook, ()):
            try:
                answer = callback(**_accepted(callback, facts))
                if inspect.isawaitable(answer):
                    import asyncio  # takes a while to import, and few callbacks are coroutines

                    answer = asyncio.run(_awaited(answer))
            except (Exception, SystemExit) as exc:  # noqa: BLE001 - the next callback is called all the same
                errors.append(f"{type(exc).__name__}: {exc}")
            else:
                if answer is not None:
                    answers.append(answer)
        return answers, errors

    def unused(self) -> list[str]:
        """What was registered and never comes into play on this host, one text each."""
        return [
            *(f"hook {name}" for name in sorted(self.hooks) if name not in FIRED),
            *(f"tool {name}" for name in sorted(self.tools)),
            *(f"command /{name}" for name in sorted(self.commands)),
            *(f"{method}: {summary}" if summary else method for method, summary in self.other),
        ]


class RegistrationContext:
    """Takes what a plugin registers. *host* may be None where nobody is there to be asked.

    *manifest* is what its ``plugin.yaml`` says; *llm* is asked in place of the host's model.
    """

    def __init__(
        self,
        plugin_name: str,
        host: Host | None = None,
        manifest: Mapping[str, Any] | None = None,
        *,
        llm: Llm | None = None,
    ) -> None:
        self.plugin_name = plugin_name
        self.registered = Registered()
        self.manifest = SimpleNamespace(**{**_MANIFEST, "name": plugin_name, **(manifest or {})})
        self.manifest.key = plugin_name
        self._host = host
        self._llm = llm
        self._manager: Any = SimpleNamespace(_hooks=self.registered.hooks)

    # -- what comes into play ----------------------------------------------------------------------------

    def register_memory_provider(self, provider: Any) -> None:
        """Offer *provider*, an object or a class to be made without arguments.

        Raises ``ProviderUnavailable`` for a second one from the same plugin.
        """
        held = self.registered.memory_provider
        if held is not None and held is not provider:
            raise ProviderUnavailable(self.plugin_name, "it registers two memory providers")
        self.registered.memory_provider = provider() if isinstance(provider, type) else provider

    def register_context_engine(self, engine: Any) -> None:
        """Offer *engine*, an object or a class to be made without arguments; the last one counts."""
        self.registered.context_engine = engine() if isinstance(engine, type) else engine

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        """Have *callback* called at *name*; see ``FIRED``."""
        self.registered.hooks.setdefault(str(name), []).append(callback)

    # -- what is kept and shown --------------------------------------------------------------------------

    def register_tool(self, name: str = "", *args: Any, **facts: Any) -> None:
        """Keep a tool: ``toolset``, ``schema`` and ``handler`` by place or name, as its author likes."""
        facts = {**dict(zip(("toolset", "schema", "handler"), args, strict=False)), **facts}
        schema = facts.get("schema")
        own_name = schema.get("name", "") if isinstance(schema, Mapping) else ""
        self.registered.tools[str(name or own_name)] = facts

    def register_command(self, name: str, handler: Any = None, description: str = "", **_: Any) -> None:
        """Keep a command for a chat."""
        self.registered.commands[str(name).lstrip("/")] = str(description or "")

    register_slash_command = register_command

    def register_cli_command(
        self,
        name: str,
        help: str = "",  # noqa: A002 - what plugins call it
        setup_fn: Any = None,
        handler_fn: Any = None,
        **facts: Any,
    ) -> None:
        """Keep a command tree for the terminal, built by ``setup_fn(parser)``."""
        self.registered.cli_commands[str(name)] = {
            "help": help,
            "setup_fn": setup_fn,
            "handler_fn": handler_fn,
            **facts,
        }

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Any other ``register_…``, which another host may know: accepted and recorded."""
        if not name.startswith("register_"):
            raise AttributeError(f"the registration context has no {name!r}")

        def record(*args: Any, **kwargs: Any) -> None:
            self.registered.other.append((name, _summary(args, kwargs)))

        return record

    # -- what a plugin may ask ---------------------------------------------------------------------------

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the profile, merged, without secrets."""
        return self._host.load_config() if self._host else {}

    def secret(self, name: str) -> str | None:
        """The secret of the profile called *name*; None for none."""
        return self._host.secret(name) if self._host else None

    @property
    def profile_name(self) -> str:
        """The name of the profile."""
        return self._host.profile_name() if self._host else "default"

    @property
    def llm(self) -> Llm | None:
        """The model of the profile; None where nobody is there to be asked."""
        return self._llm or (Llm(self._host.call_llm) if self._host else None)

    def dispatch_tool(self, name: str, args: Mapping[str, Any] | None = None, **kwargs: Any) -> str:
        """Run a tool that this plugin has registered; the answer is JSON text, also for what goes wrong."""
        handler = self.registered.tools.get(name, {}).get("handler")
        if not callable(handler):
            return json.dumps({"error": f"this host has no tool {name!r}"})
        answer = handler(dict(args or {}), **kwargs)
        return answer if isinstance(answer, str) else json.dumps(answer, default=str)

    def inject_message(self, content: str, role: str = "user") -> bool:
        """False: this host puts no messages of plugins into a conversation."""
        self.registered.other.append(("inject_message", _short(content)))
        return False


class Llm:
    """The model of the profile, for a plugin that asks ``ctx.llm``; *call* is ``Host.call_llm``.

    Called with messages it returns the text of the answer.
    """

    def __init__(self, call: Callable[..., Mapping[str, Any]]) -> None:
        self._call = call

    def __call__(self, messages: Any) -> str:
        """The text that the model answers to *messages*; raises as ``complete`` does."""
        return str(self.complete(messages).text)

    def complete(self, messages: Any, **options: Any) -> SimpleNamespace:
        """The answer to *messages* (one text, or OpenAI-style messages) as ``text``, with ``model`` and ``usage``.

        Raises ``HermesError`` where the profile has no model, or that gives no answer.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        known = {
            key: options[key]
            for key in ("model", "temperature", "max_tokens")
            if options.get(key) is not None
        }
        completion = self._call(messages=messages, **known)
        message = completion["choices"][0]["message"]
        return SimpleNamespace(
            text=message.get("content") or "",
            model=completion.get("model", ""),
            usage=completion.get("usage") or {},
        )


def _accepted(callback: Callable[..., Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those of *facts* that *callback* names, or all where it takes any."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return dict(facts)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(facts)
    return {parameter.name: facts[parameter.name] for parameter in parameters if parameter.name in facts}


async def _awaited(answer: Any) -> Any:
    return await answer


_MANIFEST: dict[str, Any] = {
    "version": "",
    "description": "",
    "author": "",
    "kind": "",
    "requires_env": [],
    "provides_tools": [],
    "provides_hooks": [],
    "source": "",
    "path": "",
}


def _summary(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What a call was about: its first text, or the name of the first thing that has one."""
    for value in (kwargs.get("name"), *args, *kwargs.values()):
        if isinstance(value, str) and value.strip():
            return _short(value)
        if isinstance(named := getattr(value, "name", None) or getattr(value, "__name__", None), str):
            return _short(named)
    return ""


def _short(text: Any) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_SUMMARY else line[: _LONGEST_SUMMARY - 1] + "…"
