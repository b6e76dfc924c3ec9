"""Asking for a secret."""

from hermes.compat import terminal


def masked_secret_prompt(prompt: str, *, mask: str = "*") -> str:
    """What the person types, shown as *mask*; a line of standard input where that is no terminal.

    Raises EOFError at its end, KeyboardInterrupt for Ctrl-C.
    """
    return terminal.ask_secret(prompt, mask=mask)
