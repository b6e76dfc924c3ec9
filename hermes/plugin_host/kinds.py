"""Of which kind a plugin is, told without importing it: by where it lies, by its manifest, by its source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import FIRED
from hermes.plugin_host.manifest import FILE, Manifest
from hermes.plugin_host.plugin import CONTEXT_ENGINE, GENERAL, MEMORY

_WORDS = {
    "memory": MEMORY,
    "memory_provider": MEMORY,
    "context_engine": CONTEXT_ENGINE,
    "context": CONTEXT_ENGINE,
}
_UNDECIDED = frozenset({"", "exclusive", "plugin"})
"""What ``kind`` may say of a plugin of any kind: ``exclusive`` is chosen by a setting, whichever."""
_PROVIDER_ONLY = frozenset(name for name in vars(MemoryProvider) if not name.startswith("_")) - FIRED
_IN_SOURCE = (
    (MEMORY, re.compile(rb"\bregister_memory_provider\b")),
    (CONTEXT_ENGINE, re.compile(rb"\bregister_context_engine\b")),
    (MEMORY, re.compile(rb"\w*MemoryProvider\b")),
    (CONTEXT_ENGINE, re.compile(rb"\w*ContextEngine\b")),
)


def kind_of(manifest: Manifest, sources: Iterable[Path]) -> tuple[str, str]:
    """The kind of a plugin and how it was told. *sources* are read, in order, where the manifest says nothing."""
    said = _plain(manifest.kind)
    for key, value in (
        ("kind", said),
        *((key, _plain(manifest.extra.get(key))) for key in ("category", "type")),
    ):
        if value in _WORDS:
            return _WORDS[value], f"{key} in {FILE}"
    if said not in _UNDECIDED:
        return GENERAL, f"kind in {FILE}"
    if named := sorted(_PROVIDER_ONLY.intersection(manifest.hooks)):
        return MEMORY, f"{named[0]} among the hooks in {FILE}"
    for path in sources:
        text = text_of(path)
        for kind, pattern in _IN_SOURCE:
            if found := pattern.search(text):
                return kind, f"{found[0].decode()} in {path.name}"
    return GENERAL, "nothing says that it is a memory provider or a context engine"


def _plain(value: object) -> str:
    return value.strip().lower().replace("-", "_") if isinstance(value, str) else ""


def text_of(path: Path) -> bytes:
    """The source at *path*; empty where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:  # a broken link beside the plugin is no reason to leave the plugin out
        return b""
