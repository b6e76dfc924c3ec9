"""The built-in memory as a memory provider: always there, first, inert where it is switched off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from hermes.errors import HermesError
from hermes.memory.builtin import arguments, prompt
from hermes.memory.builtin.memory import BuiltinMemory
from hermes.memory.builtin.tool import MemoryTool
from hermes.memory.builtin.values import Enabled, Entry, Limits, Origin, Target
from hermes.memory.provider import BUILTIN, MemoryProvider
from hermes.paths import ProfilePaths


class BuiltinMemoryProvider(MemoryProvider):
    """One session's view of the built-in memory: a frozen prompt block, and the ``memory`` tool.

    ``memory`` is what the person uses. *read_only* gives the block without the tool, for jobs that shall
    know and not write. The paths are those given here, whatever the environment says later.
    """

    delivery: ClassVar[Literal["accepted", "stored"]] = "stored"

    def __init__(
        self,
        paths: ProfilePaths,
        *,
        limits: Limits | None = None,
        enabled: Enabled | None = None,
        write_approval: bool = False,
        read_only: bool = False,
    ) -> None:
        self.memory = BuiltinMemory(paths, limits=limits, enabled=enabled)
        self.write_approval = write_approval
        self.read_only = read_only
        self._tool = MemoryTool(self.memory, write_approval=write_approval)
        self._block = ""
        self._session: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Always ``builtin``."""
        return BUILTIN

    def is_available(self) -> bool:
        """Always: a half that is off is inert, and a file that cannot be read is said to be so."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Freeze the prompt block of the session. Creates nothing; never fails because of a file."""
        self._session = _texts(
            {**kwargs, "session_id": session_id, "execution_context": kwargs.get("agent_context", "")}
        )
        self._freeze()

    def system_prompt_block(self) -> str:
        """Both files as they were when the session began, each under a header with the per cent used."""
        return self._block

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The ``memory`` tool with the targets that are on; no tool if none is."""
        targets = self.memory.enabled.targets
        return [arguments.schema(targets)] if targets and not self.read_only else []

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run the ``memory`` tool. *kwargs* may say where the write comes from: the fields of ``Origin``."""
        if tool_name != arguments.TOOL or not self.get_tool_schemas():
            raise NotImplementedError(f"provider {self.name} has no tool {tool_name}")
        origin = {"write_origin": "model", "tool_name": tool_name, **self._session, **_texts(kwargs)}
        return self._tool.run(args, Origin.of(origin))

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """A new turn: failures are counted from zero."""
        self._tool.new_turn()

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """A turn has ended; for hosts that do not tell when one begins."""
        self._tool.new_turn()

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Another session gets a new block; one that was rewound keeps its own, for the model's cache."""
        self._session |= {"session_id": new_session_id, "parent_session_id": parent_session_id}
        self._tool.new_turn()
        if not rewound:
            self._freeze()

    def search_records(self, query: str, *, limit: int = 10) -> list[dict[str, Any]] | None:
        """The entries that hold every word of *query*."""
        return [_record(entry) for entry in self.memory.search(query)[:limit]]

    def export_records(self) -> Iterable[dict[str, Any]] | None:
        """Every entry of the halves that are on."""
        memory = self.memory
        return [_record(entry) for target in memory.enabled.targets for entry in memory.entries(target)]

    def _freeze(self) -> None:
        parts = [self._block_of(target) for target in self.memory.enabled.targets]
        try:
            if waiting := self.memory.waiting():
                parts.append(prompt.pending(waiting))
        except HermesError:  # the person is told by warnings()
            pass
        self._block = "\n\n".join(part for part in parts if part)

    def _block_of(self, target: Target) -> str:
        try:
            document = self.memory.store.read(target)
        except HermesError as exc:
            return prompt.unreadable(target, str(exc))
        return prompt.block(target, document, self.memory.usage_of(target, document))


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {k: v for k, v in fields.items() if isinstance(v, str) and v}


def _record(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "text": entry.text,
        "time": entry.time,
        "session_id": entry.origin.session_id if entry.origin else "",
        "target": entry.target,
    }
