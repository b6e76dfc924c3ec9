"""Which settings hold a secret: told by the name of the key, or by the look of the value."""

from __future__ import annotations

import re

from hermes.memory.redact import MASK, find_secrets

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LAST = {
    "apikey", "authorization", "bearer", "cookie", "credential", "dsn", "jwt", "pass", "passphrase", "passwd",
    "password", "pat", "pwd", "secret", "token",
}  # fmt: skip
_BEFORE_KEY = {
    "access", "account", "admin", "api", "app", "auth", "client", "deploy", "encryption", "license", "master",
    "private", "secret", "service", "signing", "ssh", "subscription",
}  # fmt: skip
_REFERENCE = re.compile(r"\$\{?\w+\}?|env:\w+|%\w+%|\*+|<[^>]*>")
_IN_COMMENT = re.compile(
    r"""(?P<key>[A-Za-z][\w.-]*)(?P<sign>["']?\s*[:=]\s*)(?P<value>["']?[^\s"'#]+["']?)"""
)


def names_secret(key: str) -> bool:
    """Whether *key* is the name of a secret: ``api_key``, ``apiKey``, ``OPENAI_API_KEY``, ``password``.

    Names of limits and of places (``max_tokens``, ``token_limit``, ``api_key_env``) are not.
    """
    words = [word.lower() for word in _WORD.findall(key)]
    if not words or words[0] in {"max", "min", "context", "num"}:
        return False
    last = words[-1].removesuffix("s") if words[-1] not in {"pass"} else words[-1]
    return last in _LAST or (last == "key" and len(words) > 1 and words[-2] in _BEFORE_KEY)


def is_secret(key: str, value: object) -> bool:
    """Whether *value* under *key* must not be handed on. References such as ``${NAME}`` may be."""
    if isinstance(value, bool | float) or value is None:
        return False
    if isinstance(value, int):
        return names_secret(key) and not re.search("token", key, re.IGNORECASE)
    text = str(value).strip()
    if not text or _REFERENCE.fullmatch(text):
        return False
    return names_secret(key) or looks_secret(text)


def looks_secret(text: str) -> bool:
    """Whether *text* holds something with the form of a known kind of key, or a password in a URL."""
    return bool(find_secrets(text))


def without_secrets(comment: str) -> str:
    """A comment with what looks like a secret in it taken out."""

    def emptied(match: re.Match[str]) -> str:
        if not is_secret(match["key"], match["value"].strip("'\"")):
            return match[0]
        return f"{match['key']}{match['sign']}"

    comment = _IN_COMMENT.sub(emptied, comment)
    for secret in sorted(find_secrets(comment), key=len, reverse=True):
        comment = comment.replace(secret, MASK)
    return comment
