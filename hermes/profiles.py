"""Which profile is meant: the root, the names, the order of the places where a profile is chosen.

Nothing here creates or changes a file.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from hermes.errors import (
    HomeUnusable,
    InvalidProfileName,
    ProfileNotFound,
    StaleActiveProfile,
    StoreUnavailable,
)
from hermes.files import describe_failure, read_bytes
from hermes.paths import ProfilePaths

DEFAULT = "default"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RESERVED = re.compile(r"profiles|con|prn|aux|nul|com[0-9]|lpt[0-9]")
_ON_WINDOWS = sys.platform == "win32"


@attrs.frozen
class Profile:
    """One profile, resolved: nothing about it is looked up again."""

    name: str
    root: Path
    home: Path
    chosen_by: str
    """What decided: ``--profile``, ``HERMES_PROFILE``, ``--home`` or ``HERMES_HOME`` (by lying inside
    ``profiles/``), ``active_profile``, or ``default``."""

    @property
    def paths(self) -> ProfilePaths:
        """Where its files lie."""
        return ProfilePaths(root=self.root, home=self.home)


@attrs.frozen
class RootChoice:
    """The root that is meant, and the profile that its path chose by lying inside ``profiles/``."""

    root: Path
    inside: str | None = None
    chosen_by: str = DEFAULT
    """``--home``, ``HERMES_HOME`` or ``default``."""


def check_name(name: str) -> str:
    """*name* if a profile can be called so; raises InvalidProfileName, before any path is built from it."""
    if not _NAME.fullmatch(name):
        raise InvalidProfileName(name, _what_is_wrong(name), suggestion=_nearest_valid(name))
    if _RESERVED.fullmatch(name):
        raise InvalidProfileName(name, "the word is reserved")
    return name


def check_new_name(name: str) -> str:
    """*name* if a profile of one's own can be called so: as ``check_name``, and not ``default``."""
    if name == DEFAULT:
        raise InvalidProfileName(name, "the word means the profile at the root, which is always there")
    return check_name(name)


def find_root(environ: Mapping[str, str], home_option: Path | None = None) -> RootChoice:
    """The root by ``--home``, else ``HERMES_HOME``, else the place that the system has for it.

    A path ``<root>/profiles/<name>`` chooses that profile, and its root is two levels up. Raises HomeUnusable
    where no path can be told.
    """
    if home_option is not None:
        return _split(_absolute(str(home_option), environ), "--home")
    if given := environ.get("HERMES_HOME", "").strip():
        return _split(_absolute(given, environ), "HERMES_HOME")
    return _split(_default_root(environ), DEFAULT)


def resolve(environ: Mapping[str, str], *, profile: str | None = None, home: Path | None = None) -> Profile:
    """The profile meant by *profile* and *home* (the options), the environment, and ``active_profile``.

    The default profile need not exist yet, any other must. Raises InvalidProfileName, ProfileNotFound,
    StaleActiveProfile, HomeUnusable; never falls back to another profile.
    """
    choice = find_root(environ, home)
    if profile is not None:
        return named(choice.root, profile, chosen_by="--profile")
    if home is None and (wanted := environ.get("HERMES_PROFILE", "")):
        return named(choice.root, wanted, chosen_by="HERMES_PROFILE")
    if choice.inside:
        return named(choice.root, choice.inside, chosen_by=choice.chosen_by)
    _exists(choice.root)
    if (sticky := sticky_choice(choice.root)) is not None:
        return named(choice.root, sticky, chosen_by="active_profile")
    return named(choice.root, DEFAULT, chosen_by=DEFAULT)


def named(root: Path, name: str, *, chosen_by: str = "--profile") -> Profile:
    """The profile called *name* below *root*; it must exist unless it is the default.

    Raises InvalidProfileName, ProfileNotFound, HomeUnusable.
    """
    try:
        home = home_of(root, name)
    except InvalidProfileName as exc:
        exc.message += "" if chosen_by == "--profile" else f" (from {chosen_by})"
        raise
    if not _exists(home) and name != DEFAULT:
        raise _not_found(root, name, chosen_by)
    return Profile(name=name, root=root, home=home, chosen_by=chosen_by)


def list_profiles(root: Path) -> list[Profile]:
    """The default profile, then all others by name. Raises HomeUnusable if the folder cannot be read."""
    return [Profile(name, root, home_of(root, name), "list") for name in (DEFAULT, *_names_below(root))]


def home_of(root: Path, name: str) -> Path:
    """Where the profile *name* lies, or would lie. Raises InvalidProfileName."""
    return root if name == DEFAULT else root / "profiles" / check_name(name)


def active_marker(root: Path) -> Path:
    """The file that holds the sticky choice of ``hermes profile use``."""
    return root / "active_profile"


def sticky_choice(root: Path) -> str | None:
    """The profile that ``active_profile`` names, which exists; None where there is no such file.

    Raises StaleActiveProfile where it names none that exists, HomeUnusable where it cannot be read.
    """
    marker = active_marker(root)
    try:
        content = read_bytes(marker)
    except StoreUnavailable as exc:
        raise HomeUnusable(exc.path, exc.reason) from exc
    if content is None:
        return None
    name = content.decode("utf-8-sig", errors="replace").strip()
    try:
        named(root, name)
    except (InvalidProfileName, ProfileNotFound) as exc:
        raise StaleActiveProfile(name if len(name) <= 64 else name[:61] + "...", marker) from exc
    return name


def _what_is_wrong(name: str) -> str:
    if not name:
        return "it is empty"
    if len(name) > 64:
        return f"it has {len(name)} characters, 64 are allowed"
    if "/" in name or "\\" in name or name.startswith("."):
        return "it is a path, and a name is wanted"
    if _NAME.fullmatch(name.lower()):
        return "it has capital letters"
    if not _NAME.fullmatch(name[0]):
        return "it must begin with a-z or 0-9"
    return "only a-z, 0-9, - and _ may stand in it"


def _nearest_valid(name: str) -> str:
    if "/" in name or "\\" in name or name.startswith("."):
        return ""
    candidate = "-".join(name.lower().split())
    return candidate if _NAME.fullmatch(candidate) and not _RESERVED.fullmatch(candidate) else ""


def _absolute(text: str, environ: Mapping[str, str]) -> Path:
    if not text:
        raise HomeUnusable(Path(), "the path of the home is empty")
    if text == "~" or text.startswith(("~/", "~\\")):
        text = str(_user_home(environ)) + text[1:]
    elif text.startswith("~"):
        raise HomeUnusable(Path(text), "only ~/ is understood", next_step="write the path in full")
    return Path(os.path.abspath(text))  # noqa: PTH100 - Path.absolute keeps the ..


def _user_home(environ: Mapping[str, str]) -> Path:
    variable = "USERPROFILE" if _ON_WINDOWS else "HOME"
    home = environ.get(variable, "")
    if not home or not (_ON_WINDOWS or home.startswith("/")):
        reason = f"{variable} is {'no absolute path' if home else 'not set'}, so there is no place for it"
        raise HomeUnusable(Path("~/.hermes"), reason, next_step="name a folder with --home or HERMES_HOME")
    return Path(home)


def _default_root(environ: Mapping[str, str]) -> Path:
    if not _ON_WINDOWS:
        return _absolute(str(_user_home(environ) / ".hermes"), environ)
    if local := environ.get("LOCALAPPDATA", ""):
        return Path(local) / "hermes"
    return _user_home(environ) / "AppData" / "Local" / "hermes"


def _split(path: Path, chosen_by: str) -> RootChoice:
    """A link counts by where it leads as well: the same folder is the same profile."""
    for place in (path, Path(os.path.realpath(path))):
        if place.parent.name == "profiles" and _may_be_inside(place.name):
            return RootChoice(place.parent.parent, place.name, chosen_by)
    return RootChoice(path, None, chosen_by)


def _may_be_inside(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not _RESERVED.fullmatch(name) and name != DEFAULT


def _exists(home: Path) -> bool:
    """Whether there is a folder at *home* that can be used; raises HomeUnusable for anything in its way."""
    try:
        facts = home.stat()
    except FileNotFoundError:
        if home.is_symlink():
            raise HomeUnusable(home, f"a link to {home.readlink()}, which does not exist") from None
        return False
    except OSError as exc:
        raise HomeUnusable(home, exc.strerror or str(exc)) from exc
    if not stat.S_ISDIR(facts.st_mode):
        raise HomeUnusable(home, "a file, and a folder is needed")
    if not os.access(home, os.R_OK | os.X_OK):
        raise HomeUnusable(home, describe_failure(home, PermissionError(13, "no permission to read it")))
    return True


def _not_found(root: Path, name: str, chosen_by: str) -> ProfileNotFound:
    from difflib import get_close_matches

    known = [DEFAULT, *_names_below(root)]
    near = get_close_matches(name, known, n=1)
    error = ProfileNotFound(name, known=known, suggestion=near[0] if near else "")
    error.message += "" if chosen_by == "--profile" else f" (from {chosen_by})"
    return error


def _names_below(root: Path) -> list[str]:
    folder = root / "profiles"
    try:
        return sorted(
            entry.name for entry in folder.iterdir() if _may_be_inside(entry.name) and entry.is_dir()
        )
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise HomeUnusable(folder, describe_failure(folder, exc)) from exc
