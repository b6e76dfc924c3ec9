"""The ``memory`` tool: what a call of the model does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.errors import EntryRefused, HermesError
from hermes.memory.builtin import arguments, replies
from hermes.memory.builtin.arguments import Request
from hermes.memory.builtin.entries import Document
from hermes.memory.builtin.guard import TurnGuard
from hermes.memory.builtin.memory import BuiltinMemory
from hermes.memory.builtin.store import Result, numbered
from hermes.memory.builtin.values import Change, Enabled, Origin, Target


class MemoryTool:
    """Runs the calls of one session. Safe to call from several threads."""

    def __init__(self, memory: BuiltinMemory, *, write_approval: bool) -> None:
        self._memory = memory
        self._write_approval = write_approval
        self._guard = TurnGuard()

    def new_turn(self) -> None:
        """Forget what went wrong in the last turn."""
        self._guard.reset()

    def run(self, args: Any, origin: Origin) -> str:
        """Carry out one call; the answer is JSON text, whatever the store or the arguments are like."""
        target: Target | None = None
        try:
            target = _target_of(args, self._memory.enabled)
            request = arguments.parse(args, self._memory.enabled)
            return self._read(request.target) if request.reads else self._write(request, origin)
        except HermesError as exc:
            return self._failed(exc, target)

    def _read(self, target: Target) -> str:
        document = self._memory.store.read(target)
        return replies.read(target, document, self._memory.usage_of(target, document), self._memory.waiting())

    def _write(self, request: Request, origin: Origin) -> str:
        target, operations = request.target, request.operations
        for operation in operations:
            self._guard.check_stopped(target, operation.content)
        if self._write_approval:
            item = self._memory.stage(target, operations, origin)
            return replies.staged(item, self._memory.usage_of(target, self._memory.store.read(target)))
        done = self._memory.store.write(
            target, operations, origin, guard=self._guard.of(target), by_model=True
        )
        return replies.written(done, self._memory.usage_of(target, done.document))

    def _failed(self, exc: HermesError, target: Target | None) -> str:
        failures = self._guard.failed()
        document: Document | None = None
        try:
            document = None if target is None else self._memory.store.read(target)
        except HermesError:  # said by exc already, or by the next call
            pass
        usage = self._memory.usage_of(target, document) if target and document else None
        return replies.failed(exc, failures, target, document, usage)


def changes_of(tool_result: str, tool_args: Any) -> list[Change]:
    """What a call of the tool changed on disk, from its answer and its arguments: what is to be mirrored.

    Empty for a call that failed, was staged, or changed nothing; never raises.
    """
    try:
        reply = json.loads(tool_result)
        if not isinstance(reply, Mapping) or reply.get("success") is not True or reply.get("staged"):
            return []
        request = arguments.parse(tool_args, Enabled())
        done = zip(request.operations, reply["results"], strict=True)
        results = [Result(op, said["status"], said.get("previous_content", "")) for op, said in done]
        changes = [result.change(reply["target"]) for result in results]
    except (EntryRefused, ValueError, KeyError, TypeError):
        return []
    return list(numbered([change for change in changes if change is not None], ""))


def _target_of(args: Any, enabled: Enabled) -> Target | None:
    """The half that a call is about, where that can be told."""
    try:
        return arguments.parse_target(args.get("target") if isinstance(args, Mapping) else None, enabled)
    except EntryRefused:
        return None
