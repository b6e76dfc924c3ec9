"""A value that never shows itself."""

from __future__ import annotations

import attrs

MASK = "***"


@attrs.frozen(repr=False, order=False)
class Secret:
    """A secret text: ``repr``, ``str``, format and logs give ``***``; ``reveal()`` gives the value."""

    _value: str = attrs.field(repr=False)

    def reveal(self) -> str:
        """The value itself, for the one call that needs it."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __str__(self) -> str:
        return MASK
