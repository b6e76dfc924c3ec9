"""That nothing is written outside the home of the profile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.session import run

_WHY = "What lies elsewhere is shared by all profiles, and is in no backup, clone or deletion of one."
_MEND = 'build every path from kwargs["hermes_home"] of initialize'
_DEVICES = ("/dev/", "/proc/")


def below_home(bench: Bench) -> None:
    """One whole session, watched; then the folders of the person are looked through."""
    seat = bench.start()
    for _ in run(seat, bench):
        pass
    declared = _declared(bench)
    bench.leave(seat)
    root = Path(bench.job.root)
    allowed = (Path(os.environ["HERMES_HOME"]), root / "tmp")
    places = {event.what: event.where for event in bench.watch.seen("write")}
    found: dict[tuple[Where, bool], list[Path]] = {}
    for path in sorted({*_left(root / "home"), *_left(root / "work"), *_written(places)}):
        if not any(path.is_relative_to(place) for place in allowed):
            named = any(path.is_relative_to(place) or place.is_relative_to(path) for place in declared)
            found.setdefault((_where(path, places), named), []).append(path)
    for (where, named), paths in found.items():
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        said = f"it writes to {_shown(paths[0], root)}{more}"
        if named:
            bench.warning(f"{said}, which backup_paths names", why=_WHY, mend=_MEND, where=where)
        else:
            bench.error(said, why=_WHY, mend=_MEND, where=where)


def _where(path: Path, places: dict[str, Where]) -> Where:
    """The line that made *path*, or something in it."""
    inside = (place for name, place in places.items() if Path(name).is_relative_to(path))
    return places.get(str(path)) or next(inside, Where())


def _shown(path: Path, root: Path) -> str:
    if path.is_relative_to(root / "home"):
        return f"~/{path.relative_to(root / 'home')}"
    if path.is_relative_to(root / "work"):
        return f"./{path.relative_to(root / 'work')}"
    return str(path)


def _left(folder: Path) -> Iterator[Path]:
    """The files below *folder*, and folders that are empty."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in files)
        if not folders and not files and Path(place) != folder:
            yield Path(place)


def _written(places: dict[str, Where]) -> Iterator[Path]:
    """What was opened for writing by the plugin itself, whether or not it is still there."""
    for name, where in places.items():
        if where.file and ":memory:" not in name and not name.startswith(_DEVICES):
            path = Path(os.path.realpath(name))
            if not path.is_dir():
                yield path


def _declared(bench: Bench) -> list[Path]:
    given = bench.answer(bench.seat(), "backup_paths")
    return [Path(os.path.realpath(Path(path).expanduser())) for path in given or ()]
