"""Which layer says a value, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from hermes.settings.layers import Keys, Layer, walk
from hermes.settings.own import own_part


@attrs.frozen
class Origin:
    """One layer's word on a key: the kind and the name of the layer, the line in its file, the value."""

    kind: str
    source: str
    line: int | None
    value: Any = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


def origin(layers: Sequence[Layer], key: str | Keys) -> list[Origin]:
    """Every layer that says *key* (dotted, or the keys one by one), the one that wins first.

    Read from the layers themselves: dynaconf's history names every layer that touched the section.
    """
    keys = tuple(key.split(".")) if isinstance(key, str) else key
    return list(_said(layers, keys))


def _said(layers: Sequence[Layer], keys: Keys) -> Iterator[Origin]:
    for layer in reversed(layers):
        own = own_part(layer)
        stands = own.renamed.get(keys, keys)
        try:
            value = walk(layer.data, stands)
        except KeyError:
            continue
        yield Origin(layer.kind, layer.source, layer.line_of(stands), value)
