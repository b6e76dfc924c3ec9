"""The file of the reference memory server of MCP: entities with observations, and relations between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from hermes.importers.common import Found, elements, lines, said
from hermes.memory.conversations import Malformed

SOURCE = "mcp-memory"


def read_lines(file: IO[bytes], name: str) -> Iterator[Found]:
    """The file as the server writes it, one JSON object a line."""
    for where, record in lines(file, name):
        if isinstance(record, Malformed):
            yield record
        elif record.get("type") == "entity":
            yield from _entity(where, record)
        elif record.get("type") == "relation":
            yield from _relation(where, record)
        else:
            yield Malformed(where, f"neither an entity nor a relation: {record.get('type')!r}")


def read_graph(file: IO[bytes], name: str) -> Iterator[Found]:
    """What its tool ``read_graph`` prints."""
    for where, record in elements(file, name, "entities.item"):
        yield from [record] if isinstance(record, Malformed) else _entity(f"{where} of the entities", record)
    file.seek(0)
    for where, record in elements(file, name, "relations.item"):
        if not isinstance(record, Malformed):  # a broken file was told of above
            yield from _relation(f"{where} of the relations", record)


def _entity(where: str, record: Any) -> Iterator[Found]:
    name = _named(record, "name", "entityName", "id")
    observations = record.get("observations") if isinstance(record, Mapping) else None
    if not name or not isinstance(observations, list):
        yield Malformed(where, "an entity needs a name and observations")
        return
    kind = record.get("entityType") or record.get("entity_type")
    about = f"{name} ({kind})" if kind else name
    for observation in observations:
        if not isinstance(observation, str):
            yield Malformed(where, f"an observation is {type(observation).__name__}, expected text")
        elif observation.strip():
            yield _fact(f"{about}: {observation}", f"{name}\0{observation}")


def _relation(where: str, record: Any) -> Iterator[Found]:
    start, end = _named(record, "from", "from_id"), _named(record, "to", "to_id")
    kind = _named(record, "relationType", "relation_type")
    if not (start and end and kind):
        yield Malformed(where, "a relation needs from, to and relationType")
        return
    yield _fact(f"{start} {kind.replace('_', ' ')} {end}", f"{start}\0{kind}\0{end}")


def _named(record: Any, *names: str) -> str:
    if not isinstance(record, Mapping):
        return ""
    return next((record[name] for name in names if isinstance(record.get(name), str)), "")


def _fact(text: str, identity: str) -> Found:
    return said(SOURCE, identity.replace("\0", " ")[:80], identity, "user", text, None)
