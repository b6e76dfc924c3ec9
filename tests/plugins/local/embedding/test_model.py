"""The model that can be installed by its name, run for real."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes.errors import ModelUnavailable
from tests.plugins.local.embedding import packages
from tests.plugins.local.embedding.conftest import Open, found, settled, tell

SAID = (
    "We adopted a kitten from the shelter",
    "The dentist gave me an appointment on Friday",
    "My brother plays the trombone in a brass band",
    "我昨天买了一辆红色的自行车",
)


@pytest.fixture
def model() -> Path:
    """The folder of the model."""
    return packages.minilm()


def test_finds_paraphrases(open_local: Open, model: Path) -> None:
    """What means the same in other words is found first, token by token where nothing else is said."""
    provider = open_local(model=str(model))
    tell(provider, *SAID)
    status = settled(provider)
    assert status["tier"] == "late-interaction"
    assert status["embedded"] == 3, "a text in a script that the model cannot read has no vector"
    assert found(provider, "which pet do we own?")[0] == SAID[0]
    assert found(provider, "who makes music?")[0] == SAID[2]
    assert provider.memory.explain("who makes music?", 1).tier == "late-interaction"


def test_the_tier_of_the_settings_holds(open_local: Open, model: Path) -> None:
    """``semantic`` compares whole texts alone, and says what leads on."""
    provider = open_local(model=str(model), tier="semantic")
    tell(provider, *SAID)
    status = settled(provider)
    assert (status["tier"], status["next_tier"]) == (
        "semantic",
        "hermes config set local.tier late-interaction",
    )
    assert provider.memory.explain("which pet do we own?", 1).tier == "semantic"


def test_a_script_that_the_model_cannot_read_is_searched_by_words(open_local: Open, model: Path) -> None:
    """A Chinese question goes to the words, and finds what it would without a model."""
    provider = open_local(model=str(model))
    tell(provider, *SAID)
    settled(provider)
    assert found(provider, "自行车是什么颜色的?", 1) == [SAID[3]]
    assert provider.memory.explain("自行车是什么颜色的?", 1).tier == "lexical"


def test_german_is_read(open_local: Open, model: Path) -> None:
    """Letters with accents are Latin script."""
    provider = open_local(model=str(model))
    tell(provider, "Grüße aus Köln über die Brücke")
    assert settled(provider)["embedded"] == 1


def test_long_texts_are_embedded_in_pieces(open_local: Open, model: Path) -> None:
    """What stands at the end of a long message is found as well as its beginning."""
    provider = open_local(model=str(model))
    filler = " ".join(f"Row {i} of the table holds nothing of note." for i in range(80))
    tell(provider, f"{filler} We adopted a kitten from the shelter.", "The weather was fine.")
    settled(provider)
    assert found(provider, "which pet do we own?")[0].endswith("from the shelter.")


def test_the_same_model_in_another_folder_is_the_same(model: Path, tmp_path: Path) -> None:
    """Vectors stay valid when a model is moved, and not when it is changed."""
    from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

    moved = tmp_path / "elsewhere" / model.name
    shutil.copytree(model, moved)
    assert OnnxEncoder(moved).traits == OnnxEncoder(model).traits
    (moved / "tokenizer.json").write_text((moved / "tokenizer.json").read_text() + "\n")
    assert OnnxEncoder(moved).traits.name != OnnxEncoder(model).traits.name


def test_what_is_found_out_about_a_model_is_always_the_same(model: Path) -> None:
    """Calibration depends on the model alone."""
    from hermes.plugins.memory.local.embedding.calibration import calibrate
    from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

    encoder = OnnxEncoder(model)
    kept = calibrate(encoder).to_bytes()
    encoder.calibration_file.unlink(missing_ok=True)
    assert calibrate(encoder).to_bytes() == kept == encoder.calibration_file.read_bytes()


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_model_is_told(tmp_path: Path, missing: str) -> None:
    """The error names the folder and the command that mends it."""
    from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelUnavailable, match=tmp_path.name) as failure:
        OnnxEncoder(tmp_path)
    assert failure.value.next_step == "hermes local model install"


def test_a_damaged_model_is_told(tmp_path: Path) -> None:
    """What onnxruntime says of a broken file becomes an error of ours."""
    from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

    (tmp_path / "model.onnx").write_bytes(b"no model")
    shutil.copy(packages.minilm() / "tokenizer.json", tmp_path)
    with pytest.raises(ModelUnavailable, match="holds no model that can be run"):
        OnnxEncoder(tmp_path)
