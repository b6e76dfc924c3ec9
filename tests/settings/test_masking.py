"""Masking: what looks like a secret is never shown, and what does not is."""

from __future__ import annotations

import pytest

from hermes.secret import Secret
from hermes.settings.masking import is_secret_key, masked

SECRETS = [
    "api_key",
    "apiKey",
    "API_KEY",
    "openai-api-key",
    "token",
    "botToken",
    "password",
    "DB_PASSWORD_2",
    "key",
]
SECRETS += ["secrets", "client_secret", "credentials", "authorization", "passphrase", "private_key"]
OTHERS = ["max_tokens", "token_limit", "api_key_env", "monkey", "provider", "session_key", "5"]


@pytest.mark.parametrize("key", SECRETS)
def test_names_of_secrets(key: str) -> None:
    """In any spelling."""
    assert is_secret_key(key)


@pytest.mark.parametrize("key", OTHERS)
def test_names_of_other_things(key: str) -> None:
    """A name that merely holds such a word is shown."""
    assert not is_secret_key(key)


def test_values_are_masked_wherever_they_stand() -> None:
    """Below a secret key everything is; elsewhere what has the form of one."""
    assert masked(
        {
            "a": {"api_key": "x", "n": 1, None: "y"},
            "secrets": {"one": "x", "many": ["y", 5]},
            "url": "postgres://me:pw@host/db",
            "query": "https://x/?api_key=abc&d=1",
            "args": ["--key", "sk-abcdefghijklmnop1234"],
            "redact_secrets": True,
            "token": "",
            "typed": Secret("x"),
            "max_tokens": 4096,
        }
    ) == {
        "a": {"api_key": "***", "n": 1, None: "y"},
        "secrets": {"one": "***", "many": ["***", "***"]},
        "url": "postgres://***@host/db",
        "query": "https://x/?api_key=***&d=1",
        "args": ["--key", "***"],
        "redact_secrets": True,
        "token": "",
        "typed": "***",
        "max_tokens": 4096,
    }
