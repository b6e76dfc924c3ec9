"""A new memory provider to start from: the working one in ``template/``, under a name of its own."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from hermes.errors import UsageError
from hermes.memory.provider import is_core_memory_provider

FILES = {
    "plugin.yaml": "plugin.txt",
    "__init__.py": "provider.txt",
    "store.py": "store.txt",
    "cli.py": "cli.txt",
    "README.md": "readme.txt",
    "tests/test_my_notes.py": "test.txt",
}
"""What is written, and what it is made from."""
_TEMPLATE = Path(__file__).parent / "template"
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", re.ASCII)
_LONGEST = 40


def write(name: str, into: Path, *, taken: Collection[str] = ()) -> tuple[Path, ...]:
    """Write the provider *name* into a new folder of that name below *into*; the files.

    *taken* are names that mean something else already. Raises ``UsageError`` for a name that cannot be used
    and where something of that name is there: nothing is written over.
    """
    _check(name, taken)
    folder = into / name
    if folder.is_symlink() or folder.exists():
        raise UsageError(f"{folder} is there already", next_step="choose another name, or another folder")
    words = {"my-notes": name, "my_notes": name.replace("-", "_"), "MyNotes": _class_name(name)}
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=into) as place:
            for target, source in FILES.items():
                path = Path(place, name, _renamed(target, words))
                path.parent.mkdir(parents=True, exist_ok=True)
                text = (_TEMPLATE / source).read_text(encoding="utf-8")
                path.write_text(_renamed(text, words), encoding="utf-8")
            Path(place, name).rename(folder)
    except OSError as exc:
        raise UsageError(
            f"{folder} cannot be written: {exc.strerror or exc}", next_step="go to a folder of your own"
        ) from exc
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def _check(name: str, taken: Collection[str]) -> None:
    """Raise ``UsageError`` where *name* is no name for a provider."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:_LONGEST].rstrip("-")
        raise UsageError(
            f"{name!r} is no name for a provider: a-z, 0-9, - and _, a letter first, {_LONGEST} at most",
            next_step=f"did you mean {near!r}?" if near else "for example: my-notes",
        )
    if is_core_memory_provider(name):
        raise UsageError(f"{name!r} means the built-in memory", next_step="choose another name")
    if name in taken:
        raise UsageError(
            f"{name!r} is taken: hermes {name} would mean two things", next_step="choose another name"
        )


def _renamed(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[-_]", name))
