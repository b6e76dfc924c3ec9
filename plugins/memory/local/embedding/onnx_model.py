"""A model in a folder: ``model.onnx`` and ``tokenizer.json``, run on this machine by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hermes.errors import ModelUnavailable
from hermes.plugins.memory.local.embedding.encoder import LATIN, Array, Encoded, Said, Traits

TEXT_TOKENS = 160
"""Tokens of a text that are read; passages are shorter."""
BEFORE_TOKENS = 60
"""Tokens, at most, of what was said before it."""
BATCH = 16
EXTRA = "pip install 'hermes-framework[semantic]'"


class OnnxEncoder:
    """See ``encoder.Encoder``. One forward pass gives the vector of a text and those of its tokens."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise ModelUnavailable(f"{exc.name} is not installed", next_step=EXTRA) from exc
        model = model_file(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as exc:  # both libraries raise classes of their own
            raise ModelUnavailable(
                f"{folder} holds no model that can be run: {exc}", next_step="hermes local model install"
            ) from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TEXT_TOKENS)
        self._lock = threading.Lock()
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._first_token = _pooled_by_first_token(folder)
        width = self._session.get_outputs()[0].shape[-1]
        name = _name(folder, model)
        self.traits = Traits(name, int(width), has_tokens=True, script=_script(folder))
        self.calibration_file = folder / f"calibration-{name.rpartition(':')[2]}.bin"

    def encode(self, said: Sequence[Said]) -> list[Encoded]:
        """The vectors of stored texts; short ones are run together."""
        order = sorted(range(len(said)), key=lambda i: len(said[i].text) + len(said[i].before))
        found: list[Encoded | None] = [None] * len(said)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            for i, encoded in zip(batch, self._run([said[i] for i in batch]), strict=True):
                found[i] = encoded
        return [encoded for encoded in found if encoded is not None]

    def encode_question(self, asked: str) -> Encoded:
        """The vectors of a question."""
        return self._run([Said(asked)])[0]

    def vocabulary(self) -> Sequence[str]:
        """The tokens of the model in their order."""
        known = self._tokenizer.get_vocab()
        return sorted(known, key=known.__getitem__)

    def _run(self, said: Sequence[Said]) -> list[Encoded]:
        with self._lock:  # a tokenizer that several threads use at once takes turns anyway
            read = [self._tokenizer.encode(one.text) for one in said]
            before = [
                self._tokenizer.encode(one.before, add_special_tokens=False).ids[-BEFORE_TOKENS:]
                if one.before
                else []
                for one in said
            ]
        sequences = [[*r.ids[:1], *b, *r.ids[1:]] for r, b in zip(read, before, strict=True)]
        longest = max(map(len, sequences))
        ids = np.zeros((len(said), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (states, *_) = self._session.run(None, {k: v for k, v in given.items() if k in self._inputs})
        except Exception as exc:  # onnxruntime raises classes of its own
            raise ModelUnavailable(f"the model failed: {exc}") from exc
        return [
            self._encoded(states[row], r, len(b)) for row, (r, b) in enumerate(zip(read, before, strict=True))
        ]

    def _encoded(self, states: Array, read: Any, before: int) -> Encoded:
        own = np.concatenate([states[:1], states[1 + before : len(read.ids) + before]])
        kept = [i for i, special in enumerate(read.special_tokens_mask) if not special]
        words = [read.offsets[i][0] for i in kept]
        return Encoded(unit(own[0] if self._first_token else own.mean(0)), unit(own[kept]), words)


def unit(vectors: Array) -> Array:
    """*vectors* at length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)


def model_file(folder: Path) -> Path:
    """The ONNX file of *folder*, where people and sentence-transformers put it. Raises ModelUnavailable."""
    for name in ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx"):
        if (folder / name).is_file() and (folder / "tokenizer.json").is_file():
            return folder / name
    raise ModelUnavailable(
        f"{folder} holds no model.onnx beside a tokenizer.json", next_step="hermes local model install"
    )


def _name(folder: Path, model: Path) -> str:
    """The same wherever the same model stands, another for another one: texts are embedded anew then."""
    digest = hashlib.sha256()
    for path in (model, folder / "tokenizer.json"):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{folder.name}:{digest.hexdigest()[:16]}"


def _script(folder: Path) -> str:
    """``latin`` for a model that knows words of Latin script alone: pieces of words, lower case, no others."""
    described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    if described.get("model", {}).get("type") != "WordPiece":
        return ""
    others = sum(1 for token in described["model"].get("vocab", {}) if len(token) > 1 and not token.isascii())
    return LATIN if others < 1_000 else ""


def _pooled_by_first_token(folder: Path) -> bool:
    described = folder / "1_Pooling" / "config.json"
    if not described.is_file():
        return False
    return bool(json.loads(described.read_text(encoding="utf-8")).get("pooling_mode_cls_token"))
