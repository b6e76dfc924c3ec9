"""What may be an entry: text made storable, and refused where it cannot be."""

from __future__ import annotations

import re

from hermes.errors import EntryRefused
from hermes.memory.builtin.entries import is_one_entry
from hermes.memory.threats import first_threat_message

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ufeff]")


def clean(text: str) -> str:
    """*text* as it would be stored: plain line ends, no control characters, whole characters only, trimmed.

    Halves of a character that belong together are joined; one that stands alone becomes U+FFFD.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", text).strip()


def check(text: str, limit: int) -> None:
    """Refuse a clean *text* that is no entry, is longer than *limit* characters, or would act on the model.

    Raises EntryRefused.
    """
    if not text:
        raise EntryRefused("the content is empty", kind="content", next_step="give the text, or use remove")
    if len(text) > limit:
        raise EntryRefused(
            f"the content has {len(text):,} characters and the limit of the whole file is {limit:,}",
            kind="limit",
            next_step="keep what matters, in a sentence or two",
        )
    if not is_one_entry(text):
        raise EntryRefused(
            "it would not be one entry: a line with § alone, or a comment at its beginning or end",
            kind="content",
            next_step="write one entry per fact, and no <!-- comments -->",
        )
    if threat := first_threat_message(text):
        raise EntryRefused(
            f"blocked: {threat}",
            kind="blocked",
            next_step="put the fact itself in other words; an instruction to the model is not a memory",
        )
