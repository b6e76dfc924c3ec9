"""What can be done in the middle of a conversation: ``/new``, ``/undo`` and the like."""

from __future__ import annotations

from collections.abc import Callable

from hermes.cli.output import ago, styled, table, write
from hermes.conversation import Conversation
from hermes.errors import UsageError
from hermes.memory.turns import flatten_content

HELP = (
    ("/new", "end this session and begin another"),
    ("/resume [ID]", "go on in an earlier session; without an id, list them"),
    ("/branch", "go on in a copy of this session"),
    ("/undo", "take the last turn back"),
    ("/compress [FOCUS]", "summarise the middle of the conversation now"),
    ("/memory", "what is remembered in MEMORY.md and USER.md"),
    ("/usage", "tokens, and how full the context is"),
    ("/help", "this list"),
    ("Alt-Enter", "a new line; Enter sends"),
    ("Ctrl-C", "stop the answer"),
    ("Ctrl-D", "leave"),
)


class Slash:
    """The commands of one conversation."""

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk
        self._commands: dict[str, Callable[[str], None]] = {
            "new": self._new,
            "resume": self._resume,
            "branch": self._branch,
            "undo": self._undo,
            "compress": self._compress,
            "memory": self._memory,
            "usage": self._usage,
            "help": self._help,
        }

    def run(self, text: str) -> bool:
        """Run *text*, which begins with a slash; False if it is a path or the like, and no command at all.

        Raises UsageError for a command that does not exist, with the one that may be meant.
        """
        name, _, rest = text[1:].partition(" ")
        if command := self._commands.get(name):
            command(rest.strip())
            return True
        if not name.isalpha():
            return False
        import difflib

        near = difflib.get_close_matches(name, self._commands, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise UsageError(f"there is no command /{name}", next_step=hint)

    def _new(self, rest: str) -> None:
        write(styled(f"session {self._talk.new()}", "dim"))

    def _resume(self, rest: str) -> None:
        if rest:
            write(styled(f"session {self._talk.resume(rest)}", "dim"))
            self._show_last()
            return
        found = [
            (s.id, f"{s.title}  {styled(ago(s.updated), 'dim')}")
            for s in self._talk.sessions.listing(limit=10)
        ]
        write(table(found) or "there is no session yet")

    def _show_last(self) -> None:
        for message in self._talk.sessions.said(self._talk.session_id)[-2:]:
            write(styled(f"{message['role']}: {flatten_content(message.get('content'))[:500]}", "dim"))

    def _branch(self, rest: str) -> None:
        write(styled(f"session {self._talk.branch()}, a copy of the one before", "dim"))

    def _undo(self, rest: str) -> None:
        gone = self._talk.undo()
        write(styled(f"taken back: {flatten_content(gone[0].get('content'))[:200]}", "dim"))

    def _compress(self, rest: str) -> None:
        outcome = self._talk.compress(rest)
        if not outcome.done:
            write(styled(f"not compressed: {outcome.reason}", "yellow"))

    def _memory(self, rest: str) -> None:
        write(self._talk.memory.build_system_prompt() or "nothing is remembered yet")

    def _usage(self, rest: str) -> None:
        rows = [(name.replace("_", " "), f"{count:,}") for name, count in self._talk.figures().items()]
        write(table(rows))

    def _help(self, rest: str) -> None:
        write(table(HELP))
