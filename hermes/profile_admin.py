"""Making, renaming and deleting profiles. Each is done whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_hex

import attrs

from hermes import cloning, holds
from hermes.errors import HomeUnusable, NotFound, StoreUnavailable, UsageError
from hermes.files import describe_failure, locked, private_dir, read_bytes, sync_folder, write_atomic
from hermes.profiles import (
    DEFAULT,
    Profile,
    active_marker,
    check_new_name,
    home_of,
    named,
    sticky_choice,
)

NEW_CONFIG = b"""\
# Settings of this profile. hermes config show --origin: every setting and where it comes from.
memory:
  provider: local
"""
_UNFINISHED = ".unfinished-"


@attrs.frozen
class Created:
    """A profile that was made, and what was taken into it."""

    profile: Profile
    cloned_from: str | None = None
    copied: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Files in which paths into the source's home were led to the new one."""
    removed: tuple[str, ...] = ()
    """``file: key`` of each secret that was taken out."""
    left_out: tuple[str, ...] = ()
    """What else lies in the source's home."""


@attrs.frozen
class Renamed:
    """A profile under its new name."""

    profile: Profile
    old: str
    rewritten: tuple[str, ...]
    was_active: bool


@attrs.frozen
class Deleted:
    """Where a deleted profile lies now, and how it comes back."""

    name: str
    home: Path
    trash: Path
    undo: str
    """A shell command."""
    was_active: bool


@attrs.frozen
class Contents:
    """What a home holds, for a question before it goes."""

    names: tuple[str, ...]
    files: int
    size: int
    """Bytes."""


def create(
    root: Path,
    name: str,
    *,
    clone_from: str | None = None,
    with_secrets: bool = False,
    with_memory: bool = True,
    environ: Mapping[str, str] | None = None,
) -> Created:
    """Make the profile *name*, empty or with the settings and the memory of *clone_from*.

    *environ* tells how a path may be spelled (``~``). Raises InvalidProfileName, UsageError if it exists,
    ProfileNotFound, ConfigError where a settings file cannot be taken over safely, HomeUnusable.
    """
    home = home_of(root, check_new_name(name))
    source = None if clone_from is None else named(root, clone_from)
    parts = cloning.Parts({"config.yaml": NEW_CONFIG})
    if source is not None:
        parts = cloning.collect(source, home, secrets=with_secrets, memory=with_memory, environ=environ or {})
        parts.files.setdefault(
            "config.yaml", NEW_CONFIG
        )  # no settings means the provider local; so does this
    with _changing(root):
        _check_free(home)
        _build(home, parts.files)
    return Created(
        Profile(name, root, home, "created"),
        clone_from,
        tuple(sorted(parts.files)) if source else (),
        parts.rewritten,
        parts.removed,
        parts.left_out,
    )


def rename(root: Path, old: str, new: str, *, environ: Mapping[str, str] | None = None) -> Renamed:
    """Call the profile *old* *new*; ``active_profile`` and paths in its settings follow.

    Raises as ``create``, and ProfileBusy if a process holds it.
    """
    check_new_name(old)
    home = home_of(root, check_new_name(new))
    profile = named(root, old)
    with _changing(root), holds.exclusive(profile.paths, f"rename it to {new!r}"):
        _check_free(home)
        files = cloning.moved_in_place(profile, home, environ=environ or {})
        was_active = _is_sticky(root, old)
        with contextlib.ExitStack() as undo:
            _move(profile.home, home, undo)
            for relative, content in files.items():
                _replace(home / relative, content, undo)
            if was_active:
                _replace(active_marker(root), f"{new}\n".encode(), undo)
            undo.pop_all()
    return Renamed(Profile(new, root, home, "renamed"), old, tuple(sorted(files)), was_active)


def delete(root: Path, name: str) -> Deleted:
    """Move the profile *name* to ``<root>/trash/``; ``active_profile``, if it named it, goes as well.

    Raises InvalidProfileName, ProfileNotFound, ProfileBusy, HomeUnusable.
    """
    check_new_name(name)
    profile = named(root, name)
    with _changing(root), holds.exclusive(profile.paths, "delete it"):
        trash = _free_place(
            private_dir(root / "trash") / f"{name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        )
        was_active = _is_sticky(root, name)
        with contextlib.ExitStack() as undo:
            _move(profile.home, trash, undo)
            if was_active:
                _remove(active_marker(root))
            undo.pop_all()
    command = shlex.join(["mv", str(trash), str(profile.home)])
    return Deleted(name, profile.home, trash, command, was_active)


def use(root: Path, name: str) -> Profile:
    """Make *name* the profile that is used where nothing else chooses one; ``default`` clears the choice.

    Raises InvalidProfileName, ProfileNotFound, HomeUnusable.
    """
    profile = named(root, name)
    if name == DEFAULT and not root.exists():
        return profile
    with _changing(root):
        if name == DEFAULT:
            _remove(active_marker(root))
        else:
            _write(active_marker(root), f"{name}\n".encode())
    return profile


def contents(profile: Profile) -> Contents:
    """What lies in the home of *profile*; locks are not counted, links not followed. Raises HomeUnusable."""
    home = profile.home
    not_its_own = {"locks", "profiles", "trash"} if profile.name == DEFAULT else {"locks"}
    files = size = 0
    names = set()
    try:
        for folder, folders, inside in os.walk(home, onerror=_raise):
            if Path(folder) == home:
                folders[:] = [name for name in folders if name not in not_its_own]
            for place in (Path(folder, name) for name in inside if not name.endswith(".lock")):
                files += 1
                size += place.lstat().st_size
                first, *deeper = place.relative_to(home).parts
                names.add(first + ("/" if deeper else ""))
    except FileNotFoundError:
        pass  # not made yet, or changed while we looked: it is a description, not an inventory
    except OSError as exc:
        raise HomeUnusable(home, describe_failure(home, exc)) from exc
    return Contents(tuple(sorted(names)), files, size)


@contextlib.contextmanager
def _changing(root: Path) -> Iterator[None]:
    """One change at a time to which profiles there are."""
    try:
        with locked(root / "profiles"):
            yield
    except StoreUnavailable as exc:
        raise HomeUnusable(exc.path, exc.reason, next_step=exc.next_step) from exc


def _check_free(home: Path) -> None:
    if os.path.lexists(home):
        raise UsageError(
            f"there is a profile {home.name!r} already ({home})",
            next_step=f"choose another name, or hermes -p {home.name} memory status",
        )


def _build(home: Path, files: Mapping[str, bytes]) -> None:
    """The whole home under a name that no profile can have, then one rename."""
    profiles = private_dir(home.parent)
    for unfinished in profiles.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed: we hold the lock
    temp = profiles / f"{_UNFINISHED}{token_hex(6)}"
    try:
        private_dir(temp)
        for relative, content in sorted(files.items()):
            write_atomic(private_dir((temp / relative).parent) / Path(relative).name, content, mode=0o600)
        temp.rename(home)
        sync_folder(profiles)
    except BaseException as exc:
        shutil.rmtree(temp, ignore_errors=True)
        if isinstance(exc, OSError):
            raise HomeUnusable(home, f"cannot be made: {exc.strerror or exc}") from exc
        raise


def _move(old: Path, new: Path, undo: contextlib.ExitStack) -> None:
    try:
        old.rename(new)
        undo.callback(new.rename, old)
        for folder in {old.parent, new.parent}:
            sync_folder(folder)
    except OSError as exc:
        raise HomeUnusable(old, f"cannot be moved to {new}: {exc.strerror or exc}") from exc


def _replace(path: Path, content: bytes, undo: contextlib.ExitStack) -> None:
    before = read_bytes(path)
    _write(path, content)
    if before is not None:
        undo.callback(_write, path, before)


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomic(path, content)
    except OSError as exc:
        raise HomeUnusable(path, describe_failure(path, exc)) from exc


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as exc:
        raise HomeUnusable(path, describe_failure(path, exc)) from exc


def _is_sticky(root: Path, name: str) -> bool:
    try:
        return sticky_choice(root) == name
    except NotFound:
        return False


def _free_place(path: Path) -> Path:
    place, number = path, 1
    while os.path.lexists(place):
        number += 1
        place = path.with_name(f"{path.name}-{number}")
    return place


def _raise(exc: OSError) -> None:
    raise exc
