"""Which way of finding is in use: words alone, meaning too, or token by token; and what leads to the next."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import ModelUnavailable
from hermes.plugins.memory.local import models
from hermes.plugins.memory.local.options import LATE, LEXICAL, SEMANTIC, Options

if TYPE_CHECKING:
    from hermes.plugins.memory.local.embedding.encoder import Encoder
    from hermes.plugins.memory.local.embedding.meaning import Meaning
    from hermes.plugins.memory.local.store import SqliteStore

log = logging.getLogger(__name__)

INSTALL_EXTRA = "pip install 'hermes-framework[semantic]'"
INSTALL_MODEL = "hermes local model install"
Secret = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Tier:
    """The tier in use, *source* of its model (empty for words alone), why not the one that is wanted, and the
    command that leads to the next."""

    name: str
    source: str = ""
    problem: str = ""
    next_step: str = ""


def choose(options: Options, home: Path) -> Tier:
    """The tier that the settings and what is installed allow."""
    wanted = options.tier
    if wanted == LEXICAL:
        return Tier(LEXICAL, next_step="hermes config set local.tier auto")
    if missing := _missing("numpy"):
        return _words_alone(wanted, missing, INSTALL_EXTRA)
    if options.endpoint:
        if not options.model:
            return _words_alone(
                "semantic", "local.endpoint needs local.model", "hermes config set local.model NAME"
            )
        source = {"endpoint": options.endpoint, "model": options.model, "key": options.endpoint_key}
        problem = "an endpoint gives no vectors of tokens" if wanted == LATE else ""
        return Tier(SEMANTIC, json.dumps(source), problem, INSTALL_MODEL)
    folder = _folder(options.model, home)
    if folder is None:
        problem = f"no model {options.model!r} is installed" if options.model else "no model is installed"
        return _words_alone(wanted, problem, INSTALL_MODEL)
    if missing := _missing("onnxruntime", "tokenizers"):
        return _words_alone(wanted, missing, INSTALL_EXTRA)
    name = SEMANTIC if wanted == SEMANTIC else LATE
    return Tier(
        name,
        json.dumps({"folder": str(folder)}),
        next_step="hermes config set local.tier late-interaction" if name == SEMANTIC else "",
    )


def open_meaning(tier: Tier, store: SqliteStore, secret: Secret) -> Meaning | None:
    """What searches by meaning in *tier*; None where words are all there is."""
    if not tier.source:
        return None
    from hermes.plugins.memory.local.embedding.meaning import Meaning

    return Meaning(
        store.vectors(),
        tier.source,
        lambda source: open_encoder(source, secret),
        store.path.with_name("embedding.lock"),
        by_tokens=tier.name == LATE,
    )


def open_encoder(source: str, secret: Secret) -> Encoder:
    """The model that *source* describes. Raises ModelUnavailable."""
    described = json.loads(source)
    if "folder" in described:
        from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

        return OnnxEncoder(Path(described["folder"]))
    from hermes.plugins.memory.local.embedding.endpoint import EndpointEncoder

    key = secret(described["key"]) if described["key"] else ""
    if key is None:
        raise ModelUnavailable(
            f"there is no secret {described['key']}", next_step=f"hermes config set {described['key']}"
        )
    return EndpointEncoder(described["endpoint"], described["model"], key)


def _words_alone(wanted: str, problem: str, next_step: str) -> Tier:
    return Tier(LEXICAL, problem="" if wanted == "auto" else problem, next_step=next_step)


def _missing(*packages: str) -> str:
    """Which of *packages* is not installed, in words."""
    gone = [package for package in packages if importlib.util.find_spec(package) is None]
    return f"{gone[0]} is not installed" if gone else ""


def _folder(model: str, home: Path) -> Path | None:
    """The folder of *model*, a name or a path; of any that is installed if it is empty."""
    found = models.installed(models.folder_of_models(home))
    if not model:
        return found[0].folder if found else None
    for one in found:
        if one.name == model:
            return one.folder
    folder = Path(model).expanduser()
    return folder if folder.is_absolute() and folder.is_dir() else None
