"""Secrets in what is handed over: found by their form, and masked wherever they stand in it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

MASK = "***"

_ALNUM = r"[A-Za-z0-9]"
_WORD = r"[A-Za-z0-9_-]"
_FORMS = {
    "-": {
        "sk-": rf"sk-(?:ant-|proj-|or-v1-|svcacct-|test-|live-)?{_WORD}{{16,}}",
        "glpat-": rf"glpat-{_WORD}{{18,}}",
        "xox": r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
        "xapp-": r"xapp-[A-Za-z0-9-]{20,}",
        "GOCSPX-": rf"GOCSPX-{_WORD}{{20,}}",
        "pypi-": rf"pypi-{_WORD}{{40,}}",
        "xai-": rf"xai-{_ALNUM}{{40,}}",
        "tvly-": r"tvly-[A-Za-z0-9-]{20,}",
        "pplx-": rf"pplx-{_ALNUM}{{40,}}",
        "key-": r"key-[0-9a-f]{32}",
        "AGE-SECRET-KEY-1": r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    },
    "_": {
        "sk_": rf"sk_(?:live|test)_{_ALNUM}{{16,}}",
        "rk_": rf"rk_(?:live|test)_{_ALNUM}{{16,}}",
        "ghp_": rf"ghp_{_ALNUM}{{30,}}",
        "gho_": rf"gho_{_ALNUM}{{30,}}",
        "ghu_": rf"ghu_{_ALNUM}{{30,}}",
        "ghs_": rf"ghs_{_ALNUM}{{30,}}",
        "ghr_": rf"ghr_{_ALNUM}{{30,}}",
        "github_pat_": r"github_pat_[A-Za-z0-9_]{30,}",
        "hf_": rf"hf_{_ALNUM}{{30,}}",
        "npm_": rf"npm_{_ALNUM}{{36}}",
        "dop_v1_": r"dop_v1_[a-f0-9]{64}",
        "gsk_": rf"gsk_{_ALNUM}{{40,}}",
        "r8_": rf"r8_{_ALNUM}{{37}}",
    },
    "": {
        "AKIA": r"AKIA[A-Z0-9]{16}",
        "ASIA": r"ASIA[A-Z0-9]{16}",
        "AIza": rf"AIza{_WORD}{{35}}",
        "ya29.": rf"ya29\.{_WORD}{{20,}}",
        "SG.": rf"SG\.{_WORD}{{20,}}\.{_WORD}{{30,}}",
        "eyJ": rf"eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}",
        ":AA": rf"[0-9]{{8,10}}:AA{_WORD}{{32,}}",
        "hooks.slack.com": r"hooks\.slack\.com/services/T[A-Za-z0-9_/]{20,}",
    },
}
"""Tokens by a sign that all of a group have in them, which prose seldom has, and by how they begin."""
_TOKENS = {
    sign: {hint: re.compile(rf"{form}(?![A-Za-z0-9])") for hint, form in forms.items()}
    for sign, forms in _FORMS.items()
}
_JOINED = re.compile(r"[A-Za-z0-9_-]\Z")
_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)", re.DOTALL
)

# What follows is looked up in the text in lower case: a pattern without IGNORECASE scans many times faster.
_PLACES = {
    "://": re.compile(r"://[^\s/:@'\"<>]*:(?P<secret>[^\s/@'\"<>]+)@"),
    "=": re.compile(
        r"[?&](?:api[_-]?key|key|token|access[_-]?token|secret|sig|signature|password|auth)="
        r"(?P<secret>[^&\s#'\"<>]{6,})"
    ),
    "bearer ": re.compile(r"bearer\s+(?P<secret>[a-z0-9+/=._~-]{12,})"),
    "authorization": re.compile(
        r"authorization\"?\s*:\s*\"?(?:basic|token|apikey)\s+(?P<secret>[a-z0-9+/=._~-]{8,})"
    ),
    "x-api-key": re.compile(r"x-api-key\"?\s*:\s*\"?(?P<secret>[^\s\"',]{8,})"),
}
_KEY_ENDS = ("key", "secret", "token", "pass", "pwd", "contrase", "credential", "string", "密码", "口令")
_SIGNS = re.compile(
    r"(?:key|secret|token|password|passwort|passwd|passphrase|passcode|pwd|contraseña|mot de passe|"
    r"credentials?|string|密码|口令)[\"'`]?\s{0,3}(?P<sign>:=|=>|[=:：]|is\b|ist\b|是)\s{0,3}"
)
_KEY = re.compile(
    r"(?:\A|.*[^a-z])(?:(?:api|access|secret|private|encryption|signing|master|account|subscription|service|license)"
    r"[ _-]?key|(?:client|app|consumer|shared|webhook|jwt|session|api)?[ _-]?secret"
    r"|(?:access|auth|bearer|refresh|id|api|bot|session|oauth|csrf|security)?[ _-]?token"
    r"|(?:[a-z]{0,12}[ _-]?)?pass(?:word|wd|phrase|code|wort)|pwd|contraseña|mot de passe|密码|口令"
    r"|credentials?"
    r"|connection[ _-]?string)\Z",
    re.DOTALL,
)
_VALUE = re.compile(
    r"(?P<quote>[\"'`])(?P<quoted>(?:\\.|(?!(?P=quote))[^\n\\]){4,400})(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;，。()<>\[\]{}]{4,400})"
)
_PASSWORD = re.compile(r"pass|pwd|contrase|密码|口令", re.IGNORECASE)
_LONGEST_KEY = 60
_CAPITALS = {n: n + 32 for n in range(ord("A"), ord("Z") + 1)}
_PLACEHOLDER = re.compile(
    r"(?:[*x•.…_-]+|<.*|\$.*|\{.*|%.*%|none|null|nil|true|false|undefined|changeme|redacted|secret|password|token|"
    r"(?:os\.|process\.|env[.(\[]|getenv|config\.|settings\.|self\.|var\.).*|"
    r"(?:your|my)[-_ ](?:own[-_ ])?(?:api[-_ ]?)?(?:key|token|secret|password)(?:[-_ ]here)?|\.{3}.*)\Z",
    re.IGNORECASE,
)
_SHORT = 8


def find_secrets(text: str) -> set[str]:
    """The secrets in *text*: tokens of known forms, private keys, passwords in addresses, named values."""
    return set(_found(text))


def _found(text: str) -> Iterator[str]:
    # Every turn passes here and few have a secret: what costs is to find out that there is none.
    for sign, tokens in _TOKENS.items():
        if sign in text:
            for hint, token in tokens.items():
                if hint in text:
                    yield from (
                        match.group() for match in token.finditer(text) if _begins(text, match.start())
                    )
    if "-----BEGIN" in text:
        yield from (match.group() for match in _BLOCK.finditer(text))
    lower = text.lower()
    if len(lower) != len(text):  # a letter that becomes two: the places would not be the same
        lower = text.translate(_CAPITALS)
    for hint, place in _PLACES.items():
        if hint in lower:
            for match in place.finditer(lower):
                value = text[slice(*match.span("secret"))]
                if not _PLACEHOLDER.match(value):
                    yield value
    for end in _KEY_ENDS:
        if end in lower:
            yield from _named(text, lower)
            return


def _begins(text: str, at: int) -> bool:
    """True if what stands at *at* is not the rest of a longer word."""
    return not _JOINED.search(text, max(at - 1, 0), at)


def _named(text: str, lower: str) -> Iterator[str]:
    """Values that follow a name such as ``api_key`` and a sign such as ``=``."""
    for match in _SIGNS.finditer(lower):
        before = slice(max(match.start() - _LONGEST_KEY, 0), match.start("sign"))
        if not _KEY.match(lower[before].rstrip(" \t\"'`")):
            continue
        value = _VALUE.match(text, match.end())
        if value is None:
            continue
        secret = value["quoted"] or value["bare"].rstrip(".!?:")
        key = text[before].split()[-1]
        if _is_secret(key, match["sign"], secret, quoted=value["quoted"] is not None):
            yield secret


def _is_secret(key: str, sign: str, value: str, *, quoted: bool) -> bool:
    """True if *value*, which follows *key*, is a secret and not prose, a number or a name of one."""
    if (
        len(value) < 4
        or _PLACEHOLDER.match(value)
        or value.startswith(("/", "~", "./", "http://", "https://"))
    ):
        return False
    is_password = _PASSWORD.search(key) is not None
    if value.isdigit():
        return is_password
    if any(map(str.isspace, value)):
        return quoted and is_password and sign in ("=", ":", ":=", "=>", "：")
    mixed = any(map(str.isdigit, value)) or not value.replace("-", "").replace("_", "").isalnum()
    if quoted or (sign in ("=", ":=") and key.upper() == key):
        return mixed or len(value) >= 8 or is_password
    return mixed and len(value) >= 6


class Redactor:
    """Masks the secrets of one hand-off: what is found in any part of it is masked in every part."""

    def __init__(self, *parts: Any) -> None:
        secrets: set[str] = set()
        for part in parts:
            _collect(part, secrets)
        self.count = len(secrets)
        self._pattern = _pattern(secrets)

    def mask(self, value: Any) -> Any:
        """*value* (text, or made of dicts and lists) with every secret of the hand-off masked."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._pattern.sub(MASK, value)
        if isinstance(value, Mapping):
            return {key: self.mask(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask(item) for item in value]
        return value


def redact_text(text: str) -> str:
    """*text* with its secrets masked."""
    masked: str = Redactor(text).mask(text)
    return masked


def _collect(value: Any, secrets: set[str], key: str = "") -> None:
    if value is None:
        return
    if isinstance(value, str):
        secrets.update(_found(value))
        if key and _is_key(key) and _is_secret(key, "=", value, quoted=True):
            secrets.add(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _collect(item, secrets, name if isinstance(name, str) else "")
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, secrets)


@functools.lru_cache(maxsize=512)
def _is_key(name: str) -> bool:
    """True if *name* is what a secret is called in structured data."""
    return _KEY.match(name.lower()) is not None


def _unescaped(secret: str) -> str:
    """*secret* as it was before it was written as JSON, if it was."""
    try:
        return str(json.loads(f'"{secret}"'))
    except ValueError:
        return secret


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Finds every form in which *secrets* may stand: as they are, in JSON, in an address; longest first."""
    forms: set[str] = set()
    for secret in secrets:
        if "\\" in secret:
            forms.add(_unescaped(secret))
        forms |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        forms.add(quote(secret, safe="", errors="replace"))
    parts = [
        re.escape(form) if len(form) >= _SHORT else rf"(?<!\w){re.escape(form)}(?!\w)"
        for form in sorted(forms, key=len, reverse=True)
    ]
    return re.compile("|".join(parts)) if parts else None
