"""Plugins for tests, written to disk as authors and installers write them."""

from __future__ import annotations

from pathlib import Path

PROVIDER = """\
from hermes.memory.provider import MemoryProvider


class Notes(MemoryProvider):
    name = "notes-own-name"
    said = "{said}"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self.home = kwargs.get("hermes_home")

    def get_tool_schemas(self):
        return []

    def prefetch(self, query, *, session_id=""):
        return self.said


def register(ctx):
    ctx.register_memory_provider(Notes())
"""
PLAIN_REGISTER = "def register(ctx):\n    pass\n"


def provider(said: str = "") -> str:
    """The source of a provider that recalls *said*."""
    return PROVIDER.format(said=said)


def plugin(
    folder: Path, source: str | None = PROVIDER, manifest: str | bytes | None = None, **files: str
) -> Path:
    """A plugin in *folder*: its ``__init__.py``, its ``plugin.yaml``, and other modules by name."""
    folder.mkdir(parents=True, exist_ok=True)
    if source is not None:
        (folder / "__init__.py").write_text(source, encoding="utf-8")
    if isinstance(manifest, bytes):
        (folder / "plugin.yaml").write_bytes(manifest)
    elif manifest is not None:
        (folder / "plugin.yaml").write_text(manifest, encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def package(site: Path, name: str, source: str = PROVIDER, *, version: str = "1.0", **groups: str) -> Path:
    """An installed package in *site* whose module is *name*; *groups* maps a group to lines of entry points.

    In the name of a group ``__`` stands for a dot.
    """
    folder = plugin(site / name, source)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    record = [f"{name}/__init__.py,,", f"{info.name}/METADATA,,"]
    text = "".join(f"[{group.replace('__', '.')}]\n{lines}\n\n" for group, lines in groups.items())
    if text:
        (info / "entry_points.txt").write_text(text)
    (info / "RECORD").write_text("\n".join(record) + "\n")
    return folder


def overlay(site: Path, dist: str, kind: str, name: str, source: str = PROVIDER) -> Path:
    """A wheel in *site* that puts a folder into ``plugins/<kind>/``."""
    folder = plugin(site / "plugins" / kind / name, source)
    info = site / f"{dist}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 2.0\n")
    (info / "RECORD").write_text(f"plugins/{kind}/{name}/__init__.py,sha256=x,1\n{info.name}/METADATA,,\n")
    return folder
