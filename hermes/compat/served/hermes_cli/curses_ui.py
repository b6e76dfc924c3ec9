"""Choosing one of several."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.compat import terminal


def curses_radiolist(
    title: str,
    items: Sequence[str],
    selected: int = 0,
    *,
    cancel_returns: int | None = None,
    description: str | None = None,
    searchable: bool = False,
) -> int:
    """The number of the item that the person chooses; *cancel_returns* (default: *selected*) for none."""
    heading = f"{title}\n{description}" if description else title
    cancelled = selected if cancel_returns is None else cancel_returns
    return terminal.choose(heading, items, selected, cancelled)
