"""Text that would act on the model that reads it: prompt injection and exfiltration, with few false alarms.

Standard library only: worker processes import this module.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import NamedTuple


class Threat(NamedTuple):
    """One thing found: its *kind*, *why* it is refused, and the *excerpt* that gave it away."""

    kind: str
    why: str
    excerpt: str

    @property
    def message(self) -> str:
        """One line for the person."""
        return f"{self.why} ({self.excerpt!r})"


class _Rule(NamedTuple):
    kind: str
    why: str
    triggers: tuple[str, ...]
    """One of these stands in every text that the pattern can match; without it, nothing is compiled."""
    pattern: str
    quotable: bool = False
    """A warning that quotes the words is no attack."""


_PRIVATE_FILE = (
    r"(?:\.env\b|\.ssh/|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|\.aws/credentials|\.netrc\b|\.pgpass\b"
    r"|\.git-credentials|\.npmrc\b|\.pypirc\b|\.kube/config|/etc/(?:shadow|passwd)\b|\.gnupg\b"
    r"|\bcredentials\.json|\bauth\.json|\.docker/config\.json|\bwallet\.dat|\bcookies\.sqlite)"
)
_PRIVATE_VARIABLE = r"\$(?:env:)?\{?\w*(?:key|token|secret|passwo?r?d|credential)\w*"
_SENDER = (
    r"\b(?:curl|wget|nc|ncat|netcat|socat|telnet|iwr|invoke-webrequest|invoke-restmethod|sendmail|mail|ftp)\b"
)
_SENDERS = ("curl", "wget", "nc ", "ncat", "netcat", "socat", "telnet", "iwr", "invoke-", "mail", "ftp")
_PERSON = r"(?:the |your )?(?:user|human|owner|operator)s?\b"

_EXFILTRATION = "it would send secrets away"

_RULES = (
    _Rule(
        "override",
        "it tells the model to drop its instructions",
        ("ignore", "disregard", "forget", "override", "overrule"),
        r"\b(?:ignore|disregard|forget|override|overrule)\b(?: \w+){0,3}? "
        r"(?:(?:previous|prior|preceding|above|earlier|foregoing|system|initial|original|all)(?: \w+)? "
        r"(?:instructions?|prompts?|directives|guidelines|orders)\b"
        r"|all (?:of )?(?:the |your )?(?:previous|prior|above|earlier) (?:rules|messages|context)\b"
        r"|your (?:instructions|guidelines|programming|training|system prompt|rules)\b"
        r"|everything (?:above|before this|you (?:were told|have been told|know))\b)",
        quotable=True,
    ),
    _Rule(
        "override",
        "it tells the model to drop its instructions",
        (
            "忽略",
            "无视",
            "無視",
            "忽視",
            "ignorier",
            "missachte",
            "ignore",
            "ignora",
            "игнорир",
            "забудь",
            "무시",
        ),
        r"(?:忽略|无视|無視|忽視).{0,8}(?:之前|以上|先前|前面|此前|所有).{0,6}(?:指令|提示|指示|规则|規則|命令)"
        r"|(?:以前|これまで|上記|前).{0,8}(?:指示|命令|プロンプト).{0,3}無視"
        r"|\b(?:ignoriere?|missachte)\b(?: \w+){0,2} (?:vorherigen|bisherigen|obigen|früheren) \w*"
        r"(?:anweisungen|befehle|instruktionen)"
        r"|\bignor(?:e|ez|er)\b(?: \w+){0,2} (?:instructions|consignes) (?:précédentes|antérieures|ci-dessus)"
        r"|\bignora(?:r|d)?\b(?: \w+){0,2} instruc(?:ciones|ções) (?:anteriores|previas|prévias)"
        r"|(?:игнорируй|забудь)\w*(?: \w+){0,2} (?:предыдущие|прежние|прошлые) (?:инструкции|указания)"
        r"|(?:이전|위의).{0,6}(?:지시|명령).{0,4}무시",
        quotable=True,
    ),
    _Rule(
        "role",
        "it gives the model another role",
        ("you are now", "you are no longer", "restrictions", "limits", "rules", "filters", "guidelines"),
        r"\byou are now (?:dan\b|(?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|evil)\b"
        r"|in (?:developer|god|admin|debug|jailbreak) mode|free (?:of|from) (?:all|any|your)\b"
        r"|(?:an?|the|my) (?:\w+ ){0,3}(?:assistant|ai|agent|bot|model|persona|hacker)\b)"
        r"|\byou are no longer (?:bound|restricted|subject|limited|an ai)\b"
        r"|\b(?:act|behave|respond|answer|pretend)\b[^.]{0,40}\b(?:with no|have no|without(?: any)?) "
        r"(?:restrictions|limits|limitations|rules|filters|guidelines)\b",
        quotable=True,
    ),
    _Rule(
        "deception",
        "it tells the model to deceive the person",
        ("user", "human", "owner", "operator"),
        r"\b(?:do not|don'?t|never|must not) (?:"
        rf"(?:tell|inform|alert|notify|warn) {_PERSON}"
        r"(?: (?:about (?:this|it|that|these|what)\b|that you\b|what you\b|anything\b)|(?= ?(?:[.!;]|$)))"
        r"|(?:reveal|disclose|mention|show|report|admit) (?:this|it|that|these|any of this|anything)\b"
        rf"[^.]{{0,20}} to {_PERSON}"
        rf"|let {_PERSON} (?:know|see|notice|find out)\b(?: (?:about )?(?:this|it|that)\b|(?= ?(?:[.!;]|$))))"
        rf"|\b(?:keep|hide|conceal) (?:this|it|these|that)\b[^.]{{0,30}} from {_PERSON}"
        r"|\b(?:send|upload|forward|post|transfer|leak|copy|e-?mail|share)\b[^.]{0,100} "
        rf"without (?:telling|informing|notifying|alerting) {_PERSON}",
        quotable=True,
    ),
    _Rule(
        "exfiltration",
        _EXFILTRATION,
        ("|",),
        r"\b(?:cat|base64|tar|zip|gzip|xxd|head|tail|type|get-content|gc|openssl|strings|less|dd)\b[^;]{0,120}"
        rf"{_PRIVATE_FILE}[^;]{{0,120}}\|[^;]{{0,80}}{_SENDER}"
        rf"|\b(?:env|printenv|export -p)\b *\|[^;]{{0,80}}{_SENDER}",
    ),
    _Rule(
        "exfiltration",
        _EXFILTRATION,
        _SENDERS,
        rf"{_SENDER}[^;]{{0,200}}(?:@|\$\(|`|<|(?:post|body|upload)-file[ =]|\binfile |(?<= )-t ?)"
        rf"[^;|)`]{{0,60}}?{_PRIVATE_FILE}"
        rf"|{_SENDER}[^;|]{{0,200}}https?://[^\s\"']*{_PRIVATE_VARIABLE}"
        rf"|{_SENDER}[^;|]{{0,200}}(?:-d|--data\S*|--post-data)[ =]?[\"']?{_PRIVATE_VARIABLE}",
    ),
    _Rule(
        "exfiltration",
        _EXFILTRATION,
        ("scp ", "requests.post", "urlopen", "fetch("),
        rf"\bscp\b(?: -(?!i)\S+)* [\"']?[^\s-]\S*{_PRIVATE_FILE}\S* \S+:"
        rf"|(?:requests\.post|urlopen|\bfetch)\([^;]{{0,160}}{_PRIVATE_FILE}",
    ),
    _Rule(
        "exfiltration",
        _EXFILTRATION,
        ("http", "@", "webhook", "."),
        r"(?<!never )(?<!not )(?<!n't )"
        r"\b(?:send|forward|upload|post|e-?mail|exfiltrate|transmit|leak|submit)\b[^.]{0,60}"
        r"\b(?:credentials?|passwords?|api[ _-]?keys?|secrets?|(?:access|auth) tokens?|private keys?"
        r"|ssh keys?|environment variables|system prompt"
        r"|(?:this|every|all|the(?: whole| entire| full)?) (?:conversations?|chat history|chat logs?))\b"
        r".{0,60}? (?:to|at|via) .{0,20}?(?:https?://|[\w.+-]+@[\w-]+\.\w|\b\d{1,3}(?:\.\d{1,3}){3}\b|\bwebhook)",
    ),
    _Rule(
        "backdoor",
        "it would open a way in",
        ("authorized_keys",),
        r"\b(?:echo|printf)\b[^;|]{0,20}ssh-\w+ aaaa[^;|]{0,900}authorized_keys"
        r"|\b(?:curl|wget)\b[^;]{0,200}>> ?\S*authorized_keys",
    ),
    _Rule(
        "hidden-code",
        "it would run code that cannot be read",
        ("base64",),
        r"base64 (?:-d|--decode)\b[^;]{0,40}\| ?(?:sudo )?(?:ba|z|da)?sh\b|\beval\b[^;]{0,30}base64",
    ),
    _Rule(
        "template",
        "it imitates the frame of a conversation",
        ("<|", "<<sys", "[/inst]", "</", "system override", "system instructions"),
        r"<\|im_start\|> ?(?:system|assistant|user)\b|<\|start_header_id\|> ?(?:system|assistant)\b"
        r"|<<sys>>|\[/inst\]"
        r"|</ ?(?:memory-context|system-reminder)\b"
        r"|\bsystem override ?:|\b(?:new|updated) system (?:instructions|prompt) ?:",
    ),
    _Rule(
        "disclosure",
        "it asks for the model's own instructions",
        ("your",),
        r"\b(?:reveal|print|output|repeat|leak|disclose|show)\b(?: \w+){0,3} your "
        r"(?:system prompt|(?:hidden|initial|secret|original) (?:instructions|prompt))",
        quotable=True,
    ),
    _Rule(
        "safety",
        "it tells the model to drop its safeguards",
        ("your",),
        r"\b(?:bypass|ignore|disable|circumvent|turn off|override)\b(?: all| any)?(?: of)? your (?:\w+ )?"
        r"(?:safety|security|content|ethical|restrictions|filters?|guardrails|safeguards|limitations)\b",
        quotable=True,
    ),
)

_INVISIBLE = re.compile(
    "[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_HIDDEN = (
    (re.compile("[\u202d\u202e]"), "it turns the direction of reading round"),
    # A flag such as Scotland's is a black flag with tag characters after it: that is a picture.
    (
        re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]"),
        "it holds invisible tag characters",
    ),
    (re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{8,}"), "it holds a run of invisible characters"),
)
_MIXED_WORD = re.compile("[a-z][\u0370-\u04ff]|[\u0370-\u04ff][a-z]")
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһοαενικυρτ", "aeopcyxijsdhoaevikupt")
_WARNING = re.compile(
    r"\b(?:never|don'?t|do not|refuse|reject|beware|watch|attack|injections?|phishing|suspicious|treat"
    r"|such as|like)\b"
)
_QUOTES = "\"'`“”‘’«»「『"
_SPACES = re.compile(r"\s+")
_EXCERPT = 60


@lru_cache(maxsize=1024)
def scan_for_threats(text: str) -> tuple[Threat, ...]:
    """Everything in *text* that would act on the model; empty for a harmless text.

    Case, spacing, line breaks, invisible characters and look-alike letters hide nothing.
    """
    found = [
        Threat("hidden", why, f"U+{ord(match[0][0]):04X}")
        for pattern, why in _HIDDEN
        if (match := pattern.search(text))
    ]
    folded = _fold(text)
    for rule in _RULES:
        if any(trigger in folded for trigger in rule.triggers):
            match = next(
                (m for m in _compiled(rule.pattern).finditer(folded) if not _harmless(rule, folded, m)), None
            )
            if match:
                found.append(Threat(rule.kind, rule.why, _shorten(match[0])))
    return tuple(found)


def first_threat_message(text: str) -> str | None:
    """The first thing found in *text*, as one line; None for a harmless text."""
    threats = scan_for_threats(text)
    return threats[0].message if threats else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _fold(text: str) -> str:
    plain = _INVISIBLE.sub("", text)
    plain = unicodedata.normalize("NFKC", plain).lower().replace("’", "'")
    if _MIXED_WORD.search(plain):
        plain = plain.translate(_LOOKALIKES)
    return _SPACES.sub(" ", plain)


def _harmless(rule: _Rule, text: str, match: re.Match[str]) -> bool:
    """A warning that quotes the attack: a quotation mark just before, and a word of warning before that."""
    if not rule.quotable or not match[0]:
        return False
    before = text[max(0, match.start() - 80) : match.start()]
    return any(mark in before[-12:] for mark in _QUOTES) and _WARNING.search(before) is not None


def _shorten(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
