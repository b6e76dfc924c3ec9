"""Leaving no trace: what is forgotten goes from history, pending writes, backups and leftovers too."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hermes.errors import HermesError, StoreUnavailable
from hermes.files import describe_failure, read_bytes, write_atomic
from hermes.memory.builtin.approval import PendingWrites
from hermes.memory.builtin.entries import Document
from hermes.memory.builtin.store import Store
from hermes.memory.builtin.values import FILES, TARGETS, Target


def forget(store: Store, pending: PendingWrites, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Remove every trace of *texts*, and of what they replaced, except for what is an entry now.

    Returns all texts that are to be forgotten by other stores too, and what could not be cleaned, as lines.
    """
    problems: list[str] = []
    everywhere = set(texts)
    with _noted(problems), store.locked(*TARGETS):
        everywhere = store.history.ancestors(texts) - {text for _, text in store.live()}
        store.history.scrub(everywhere)
        _remove_leftovers(store)
    with _noted(problems):
        if pending.items():
            with pending.lock():
                pending.scrub(everywhere)
    for backup in (path for target in TARGETS for path in _backups(store.folder, target)):
        with _noted(problems):
            _clean_backup(backup, everywhere)
    return sorted(everywhere), problems


def reset(store: Store, pending: PendingWrites, target: Target) -> list[Path]:
    """Delete the file of *target* and all that tells of it; the paths that went. Raises StoreUnavailable."""
    path = store.path(target)
    gone = []
    if store.folder.is_dir():
        with store.locked(*TARGETS):
            gone = [old for old in (path, *_backups(store.folder, target)) if _delete(old)]
            _forget_history(store, target)
            _remove_leftovers(store)
    items = [item for item in pending.items() if item.target == target]
    for item in items:
        pending.remove(item.id)
        gone.append(pending.folder / f"{item.id}.json")
    return gone


def _backups(folder: Path, target: Target) -> list[Path]:
    """Copies beside the file, such as ``MEMORY.md.bak.1700000000``, ours or another host's."""
    return sorted(
        path for path in folder.glob(f"{FILES[target]}.*") if path.suffix != ".lock" and path.is_file()
    )


def _clean_backup(path: Path, texts: Collection[str]) -> None:
    data = read_bytes(path)
    if data is None:
        return
    document = Document.parse(data)
    for text in texts:
        document = document.removed(text)
    clean = document.data
    for text in texts:
        clean = clean.replace(text.encode("utf-8", "surrogateescape"), b"")
    if clean != data:
        try:
            write_atomic(path, clean)
        except OSError as exc:
            raise StoreUnavailable(path, describe_failure(path, exc)) from exc


def _delete(path: Path) -> bool:
    """Delete *path*; a link, or a file that cannot be removed because it is mounted there, is emptied."""
    try:
        if not path.exists():
            return False
        if path.is_symlink():
            write_atomic(path, b"")
            return True
        try:
            path.unlink()
        except OSError:
            write_atomic(path, b"")
    except OSError as exc:
        raise StoreUnavailable(path, describe_failure(path, exc)) from exc
    return True


def _remove_leftovers(store: Store) -> None:
    """Remove temporary files of writers that were killed: nobody writes here while both locks are held."""
    for leftover in store.folder.glob(".hermes-*.tmp"):
        leftover.unlink(missing_ok=True)


def _forget_history(store: Store, target: Target) -> None:
    try:
        store.history.remove(target)
    except OSError as exc:
        path = store.history.path
        raise StoreUnavailable(path, describe_failure(path, exc)) from exc


@contextlib.contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except HermesError as exc:
        problems.append(f"{exc}: {exc.next_step}")
    except OSError as exc:
        problems.append(str(exc))
