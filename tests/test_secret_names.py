"""Which settings hold a secret."""

from __future__ import annotations

import pytest

from hermes.secret_names import is_secret, looks_secret, names_secret, without_secrets


@pytest.mark.parametrize(
    "key",
    ["api_key", "apiKey", "APIKey", "OPENAI_API_KEY", "apikey", "token", "accessToken", "refresh-token",
     "tokens", "password", "DB_PASSWORD", "client_secret", "secrets", "private_key", "passphrase", "cookie",
     "Authorization", "credentials", "api_keys", "bot_token", "jwt", "dsn"],
)  # fmt: skip
def test_names_of_secrets(key: str) -> None:
    """However it is spelled, the name of a secret is known."""
    assert names_secret(key)


@pytest.mark.parametrize(
    "key",
    ["key", "name", "max_tokens", "maxTokens", "context_tokens", "token_limit", "api_key_env", "tokenizer",
     "keyboard", "secretary", "provider", "base_url", "primary_key", "session_key", "", "1", "monkey"],
)  # fmt: skip
def test_names_of_other_settings(key: str) -> None:
    """Limits, places and words that only look alike are not."""
    assert not names_secret(key)


@pytest.mark.parametrize(
    "value", [None, True, 1.5, "", " ", "${KEY}", "$KEY", "env:KEY", "***", "<your key>"]
)
def test_values_that_are_no_secret(value: object) -> None:
    """Nothing, switches and references may be handed on under any name."""
    assert not is_secret("api_key", value)


def test_numbers() -> None:
    """A number is a password and is no token."""
    assert is_secret("password", 1234)
    assert not is_secret("tokens", 1234)


@pytest.mark.parametrize(
    "value",
    ["sk-proj-abcdefghijklmnop", "ghp_" + "a" * 36, "xoxb-1234567890-abc", "AKIA" + "A" * 16,
     "hf_" + "a" * 30, "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abcdefgh", "postgres://me:hunter2@db/x",
     "Bearer abcdefghijklmnopqrst"],
)  # fmt: skip
def test_values_that_give_themselves_away(value: str) -> None:
    """The shape of a known kind of key is enough, whatever it is called."""
    assert looks_secret(value)
    assert is_secret("anything", value)


@pytest.mark.parametrize(
    "value", ["https://host:8080/x", "me@example.org", "sk-short", "a normal sentence", "eye"]
)
def test_values_that_look_like_nothing(value: str) -> None:
    """Addresses and words stay."""
    assert not looks_secret(value)


def test_comment() -> None:
    """What a comment holds of a secret is taken out, the rest of it stays."""
    assert without_secrets("# api_key: hunter2 was old") == "# api_key:  was old"
    assert without_secrets("# see sk-abcdefghijklmnopqrstu") == "# see ***"
    assert without_secrets("# max_tokens: 40, name: x") == "# max_tokens: 40, name: x"
