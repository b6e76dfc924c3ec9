"""Memories of Mem0: what ``get_all`` returns, of its library or its platform, or a bare array of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import IO

from hermes.importers.common import Found, elements, moment, said
from hermes.memory.conversations import Malformed

SOURCE = "mem0"


def read_results(file: IO[bytes], name: str) -> Iterator[Found]:
    """The memories below ``results``."""
    yield from _read(file, name, "results.item")


def read_array(file: IO[bytes], name: str) -> Iterator[Found]:
    """The memories of a bare array."""
    yield from _read(file, name, "item")


def _read(file: IO[bytes], name: str, path: str) -> Iterator[Found]:
    now = time.time()
    for where, item in elements(file, name, path):
        if isinstance(item, Malformed):
            yield item
        elif not isinstance(item, Mapping) or not isinstance(item.get("memory"), str):
            yield Malformed(where, "no memory: it has no text")
        elif (moment(item.get("expiration_date")) or now) >= now and item["memory"].strip():
            identity = str(item.get("id") or "")
            when = moment(item.get("updated_at")) or moment(item.get("created_at"))
            author = item.get("user_id")
            # each is a conversation of its own: they were not said one after the other
            yield said(
                SOURCE,
                identity or item["memory"][:60],
                identity,
                "user",
                item["memory"],
                when,
                author=author if isinstance(author, str) else None,
            )
