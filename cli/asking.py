"""Questions to the person at the terminal. They are drawn on standard error: standard output is for the answer.

Each function raises ``KeyboardInterrupt`` where the person presses Ctrl-C and ``EOFError`` where the input ends.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.setup.places import tail

if TYPE_CHECKING:
    from hermes.setup import Question

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # arrow keys, the marks around what is pasted
    r"|\x1b\].*?(?:\x07|\x1b\\)"  # what a terminal is told: titles, links
    r"|\x1bO.|\x1b.|[\x00-\x1f\x7f-\x9f]",
    re.DOTALL,
)


def at_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def cleaned(text: str) -> str:
    """*text* without escape sequences and control characters, which come along with what is pasted."""
    return _SEQUENCE.sub("", text)


def choose(message: str, options: Sequence[tuple[str, str, str]], *, default: str | None = None) -> str:
    """One of *options*, each a value, what is shown for it, and why it cannot be chosen (empty where it can)."""
    import questionary

    choices = [
        questionary.Choice(title=shown, value=value, disabled=problem or None)
        for value, shown, problem in options
    ]
    usable = [value for value, _, problem in options if not problem]
    return str(
        _asked(questionary.select, message, choices=choices, default=default if default in usable else None)
    )


def agree(message: str, *, default: bool) -> bool:
    """Whether the person says yes."""
    import questionary

    return bool(_asked(questionary.confirm, message, default=default))


def answer(question: Question, error: str) -> Any:
    """The answer to one question of a form, not yet typed; empty for what is shown in brackets.

    *error* is why the last answer was not taken.
    """
    import questionary

    field = question.field
    if error:
        sys.stderr.write(f"  {error}\n")
    elif field.url:
        sys.stderr.write(f"  {field.url}\n")
    text = f"{field.key}: {field.description}" if field.description else field.key
    if field.choices or (field.kind == "boolean" and question.default is None):
        return _choice(text, question)
    if field.kind == "boolean":
        return agree(text, default=question.default)
    message = f"{text}{_in_brackets(question)}"
    if field.secret:
        return cleaned(_asked(questionary.password, message))
    return cleaned(_asked(questionary.text, message)).strip()


def _choice(text: str, question: Question) -> str:
    field = question.field
    values = [str(choice) for choice in field.choices] or ["true", "false"]
    options = [(value, value, "") for value in values]
    if not field.required and question.default is None:
        options.append(("", "(leave it out)", ""))
    shown = {value.lower(): value for value in values}
    return choose(text, options, default=shown.get(str(question.default).lower()))


def _in_brackets(question: Question) -> str:
    if question.default is None:
        return "" if question.field.required else " [leave it out]"
    shown = tail(str(question.default)) if question.field.secret else str(question.default)
    return f" [{shown}]"


def _asked(prompt: Any, message: str, **options: Any) -> Any:
    from prompt_toolkit.output import create_output

    asked = prompt(message, output=create_output(stdout=sys.stderr), **options)
    return asked.unsafe_ask()
