"""Secrets out of everything that is shown, whoever's section they stand in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hermes.secret import MASK, Secret
from hermes.secret_names import looks_secret, names_secret

_IN_TEXT = re.compile(
    r"(?P<scheme>://)[^\s/@]*:[^\s/@]*(?=@)"
    r"|(?P<name>\b(?:api[_-]?key|(?:\w+_)?token|password|passwd|secret)=)[^\s&\"']+",
    re.IGNORECASE,
)


def is_secret_key(key: object) -> bool:
    """Whether *key* names a secret: ``api_key``, ``botToken``, ``DB_PASSWORD_2``; not ``max_tokens``."""
    name = str(key).rstrip("0123456789_-")
    return names_secret(name) or name.lower() == "key"


def masked(value: Any, *, secret: bool = False) -> Any:
    """*value* with every secret in it shown as ``***``; *secret* if it stands under such a key itself.

    Switches and empty values stay: ``redact_secrets: true`` is no secret.
    """
    if isinstance(value, Secret):
        return MASK if value else ""
    if isinstance(value, Mapping):
        return {key: masked(item, secret=secret or is_secret_key(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, secret=secret) for item in value]
    if secret and value is not None and value != "" and not isinstance(value, bool):
        return MASK
    return mask_text(value) if isinstance(value, str) else value


def mask_text(text: str) -> str:
    """*text* without a password in a URL or a query; ``***`` for what has the form of a well-known key."""
    if looks_secret(_IN_TEXT.sub("", text)):
        return MASK
    return _IN_TEXT.sub(lambda match: (match["scheme"] or match["name"]) + MASK, text)
