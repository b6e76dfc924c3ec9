"""Secrets are found by their form and masked wherever they stand; ordinary text is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.memory.redact import MASK, Redactor, find_secrets, redact_text

SECRETS = [
    ("api_key: sk-test-abc123", "sk-test-abc123"),
    ("OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwx", "sk-proj-abcdefghijklmnopqrstuvwx"),
    ("use sk-ant-api03-" + "a1B2" * 6 + " please", "sk-ant-api03-" + "a1B2" * 6),
    ("the password is hunter2", "hunter2"),
    ("Password: correct-horse-1", "correct-horse-1"),
    ("postgres://bob:s3cr3t@db/x", "s3cr3t"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpA\n-----END RSA PRIVATE KEY-----", "MIIEpA"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz (cut off", "b3BlbnNz"),
    ("Authorization: Bearer abcdef1234567890", "abcdef1234567890"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("git clone with ghp_" + "a1" * 18, "ghp_" + "a1" * 18),
    ('{"password": "two words here"}', "two words here"),
    ('"client_secret": "abcdefgh"', "abcdefgh"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("my github token: 8f3a9bc2d1", "8f3a9bc2d1"),
    ("密码是abc12345", "abc12345"),
    ("Das Passwort ist geheim99", "geheim99"),
    ("x-api-key: 0123456789abcdef", "0123456789abcdef"),
    ("https://x.example/?api_key=abcdef123&q=1", "abcdef123"),
    ("passcode: 4711", "4711"),
    ("DB_PASSWORD=swordfish", "swordfish"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def-ghi123", "eyJzdWIiOiIxMjM0In0"),
    ("bot 123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "AAabcdefghijklmnopqrstuvwxyz0123456"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
]

HARMLESS = [
    "SSH key for deploy is ~/.ssh/id_ed25519_org",
    "max_tokens: 4096",
    "the token: it expired yesterday",
    "password: please choose one",
    "The secret is patience",
    "api_key=os.environ['X']",
    "password = getpass()",
    "commit 8f3a9bc2d1e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8",
    "tokens: 123456 used",
    "http://localhost:8080/path and https://example.com:443/@x",
    "the key is under the mat",
    "API_KEY=${API_KEY}",
    "access token is refreshed hourly",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "sk-learn is nice, so is task-oriented-programming-with-python",
    "session token: null",
    "password: <your password>",
    "git@github.com:org/repo.git",
    "password reset link",
    "secret santa: December",
    "My password manager is Bitwarden",
    "passport: X1234567",
    "foreign key: user_id1",
    "密码很重要",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_secrets_are_masked(text: str, secret: str) -> None:
    """No part of the secret is left, and the text around it is."""
    masked = redact_text(f"before {text} after")
    assert secret not in masked
    assert MASK in masked
    assert masked.startswith("before ")


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Paths, numbers, placeholders and prose about secrets are no secrets."""
    assert redact_text(text) == text


def test_seen_once_masked_everywhere() -> None:
    """A secret that is recognised in one part of a hand-off is masked in all, in every spelling."""
    secret = 'p@ss"w/ör d1'
    payload = {
        "user": f"my password: `{secret}`",
        "assistant": f"noted: {secret}",
        "messages": [
            {"role": "tool", "content": json.dumps({"said": secret})},
            {"role": "tool", "content": "https://x.example/p%40ss%22w%2F%C3%B6r%20d1"},
        ],
    }
    masked = Redactor(payload).mask(payload)
    text = json.dumps(masked, ensure_ascii=False)
    assert "p@ss" not in text
    assert "p%40ss" not in text
    assert "\\u00f6r" not in text
    assert masked["assistant"] == f"noted: {MASK}"


def test_values_of_named_keys() -> None:
    """In structured data the key tells: the value of ``password`` is masked, that of ``token_count`` is not."""
    given = {"args": {"api_key": "abcdefghij", "token_count": "12345678", "user": "ann", "password": "pw"}}
    assert Redactor(given).mask(given) == {
        "args": {"api_key": MASK, "token_count": "12345678", "user": "ann", "password": "pw"}
    }


def test_short_secrets_are_masked_as_words() -> None:
    """A short secret is masked where it stands alone, not inside other words."""
    text = "the passcode: 4711. Model 47110 costs 4711 euros"
    assert redact_text(text) == f"the passcode: {MASK}. Model 47110 costs {MASK} euros"


def test_other_values_pass_through() -> None:
    """Numbers, nulls and truth values stay what they are."""
    given = {"a": 1, "b": None, "c": True, "d": [1.5, ("password=hunter22",)]}
    assert Redactor(given).mask(given) == {"a": 1, "b": None, "c": True, "d": [1.5, [f"password={MASK}"]]}


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_looked_at(text: str) -> None:
    """Whatever is in the text, looking for secrets does not fail, and masking leaves none of them."""
    masked = redact_text(text)
    assert all(secret not in masked or secret in MASK for secret in find_secrets(text))
