"""What is read from the journal. Every function takes a connection and writes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from hermes.memory.journal.encoding import digest, load, spoken
from hermes.memory.journal.records import DAY, Health, Kind, Record, State
from hermes.memory.latency import HookStats, Latency

COLUMNS = "seq, kind, provider, session, payload, key, time, state, attempts, first_failed, next_try, error, confirmed"
HOOK_DAYS = 7


class Candidate(NamedTuple):
    """A record that may be the next of its session."""

    seq: int
    session: str
    key: str


def record_of(row: tuple[Any, ...]) -> Record:
    """The record in a row of COLUMNS."""
    return Record(
        seq=row[0],
        kind=Kind(row[1]),
        provider=row[2],
        session_id=row[3],
        payload=load(row[4]),
        key=row[5],
        time=row[6],
        state=State(row[7]),
        attempts=row[8],
        first_failed=row[9],
        next_try=row[10],
        error=row[11],
        confirmed=bool(row[12]),
    )


def records(
    con: sqlite3.Connection,
    *,
    state: State | None = None,
    provider: str | None = None,
    session_id: str | None = None,
    limit: int = 100,
    after: int = 0,
) -> list[Record]:
    """Records with a *seq* above *after*, oldest first; those kept for a transcript only on request."""
    wanted = ["seq > ?"]
    values: list[Any] = [after]
    if state is None:
        wanted.append("state <> 'transcript'")
    for column, value in (("state", state), ("provider", provider), ("session", session_id)):
        if value is not None:
            wanted.append(f"{column} = ?")
            values.append(str(value))
    found = con.execute(
        f"SELECT {COLUMNS} FROM record WHERE {' AND '.join(wanted)} ORDER BY seq LIMIT ?",  # noqa: S608
        (*values, limit),
    )
    return [record_of(row) for row in found]


def get(con: sqlite3.Connection, seq: int) -> Record | None:
    """The record at *seq*."""
    row = con.execute(f"SELECT {COLUMNS} FROM record WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
    return record_of(row) if row else None


def pending(con: sqlite3.Connection, provider: str, key: str) -> Record | None:
    """The undelivered record of *provider* with that key."""
    row = con.execute(
        f"SELECT {COLUMNS} FROM record WHERE provider = ? AND key = ? AND state = 'pending'",  # noqa: S608
        (provider, key),
    ).fetchone()
    return record_of(row) if row else None


def load_pending(con: sqlite3.Connection, provider: str, keys: Sequence[str], most: int) -> list[Record]:
    """The undelivered turns of *provider* with those keys that were never tried, in their order.

    Up to the first that is something else, and up to *most* characters.
    """
    found = con.execute(
        f"SELECT {COLUMNS} FROM record WHERE provider = ? AND state = 'pending' "  # noqa: S608
        "AND key IN (SELECT value FROM json_each(?)) ORDER BY seq",
        (provider, json.dumps(list(keys))),
    )
    loaded: list[Record] = []
    for row in found:
        most -= len(row[4])
        if loaded and most < 0:
            break
        record = record_of(row)
        if record.kind is not Kind.TURN or record.attempts:
            break
        loaded.append(record)
    return loaded


def pending_keys(con: sqlite3.Connection, provider: str, session: str) -> list[str]:
    """The keys of what is undelivered of *session*."""
    found = con.execute(
        "SELECT key FROM record WHERE provider = ? AND session = ? AND state = 'pending'", (provider, session)
    )
    return [key for (key,) in found]


def candidates(
    con: sqlite3.Connection, provider: str, without: Collection[str], limit: int
) -> list[Candidate]:
    """Undelivered records of *provider* in their order, leaving out the sessions *without*."""
    leave_out = "AND session NOT IN (SELECT value FROM json_each(?)) " if without else ""
    values = (json.dumps(list(without)),) if without else ()
    found = con.execute(
        "SELECT seq, session, key FROM record INDEXED BY record_pending "  # noqa: S608
        f"WHERE provider = ? AND state = 'pending' {leave_out}ORDER BY seq LIMIT ?",
        (provider, *values, limit),
    )
    return [Candidate(*row) for row in found]


def sessions_waiting(con: sqlite3.Connection, provider: str, sessions: Iterable[str]) -> set[str]:
    """Those of *sessions* that have undelivered records."""
    return {
        session
        for session in sessions
        if con.execute(
            "SELECT 1 FROM record WHERE provider = ? AND session = ? AND state = 'pending' LIMIT 1",
            (provider, session),
        ).fetchone()
    }


def held_back_by(
    con: sqlite3.Connection,
    provider: str,
    candidate: Candidate,
    patience: int,
    settled: Collection[str],
) -> str | None:
    """The session whose switch must be delivered before *candidate*, until *patience* attempts failed.

    *settled*: the keys of records that were delivered although the file still says that they wait.
    """
    leave_out = "AND key NOT IN (SELECT value FROM json_each(?)) " if settled else ""
    values = (json.dumps(list(settled)),) if settled else ()
    switch = con.execute(
        "SELECT session FROM record WHERE provider = ? AND opens = ? AND state = 'pending' AND seq < ? "  # noqa: S608
        f"{leave_out}LIMIT 1",
        (provider, candidate.session, candidate.seq, *values),
    ).fetchone()
    if switch is None:
        return None
    (attempts,) = con.execute(
        "SELECT max(attempts) FROM record WHERE provider = ? AND session = ? AND state = 'pending'",
        (provider, switch[0]),
    ).fetchone()
    return None if attempts >= patience else str(switch[0])


def transcript(
    con: sqlite3.Connection, provider: str, session: str, before: int | None = None
) -> list[dict[str, str]]:
    """The turns of *session*, and of those it took over from, as messages; up to the record *before*."""
    chain = json.dumps(session_chain(con, provider, session))
    limit = before if before is not None else (1 << 62)
    turns = con.execute(
        " UNION ALL ".join(  # noqa: S608 - nothing from outside
            f"SELECT seq, payload FROM record WHERE provider = ?1 AND state {pending} 'pending' AND seq < ?3 "  # noqa: S608
            "AND session IN (SELECT value FROM json_each(?2)) AND kind = 'turn' AND undone = ''"
            for pending in ("=", "<>")  # each has its index
        )
        + " ORDER BY seq",
        (provider, chain, limit),
    )
    return [message for _, payload in turns for message in spoken(load(payload))]


def session_chain(con: sqlite3.Connection, provider: str, session: str) -> list[str]:
    """*session* and those it took over from."""
    chain = [session]
    while True:
        row = con.execute(
            "SELECT continues FROM session WHERE provider = ? AND session = ?", (provider, chain[-1])
        ).fetchone()
        if row is None or not row[0] or row[0] in chain:
            return chain
        chain.append(row[0])


def undelivered(con: sqlite3.Connection) -> dict[str, int]:
    """Provider to its number of undelivered records."""
    found = con.execute("SELECT provider, count(*) FROM record WHERE state = 'pending' GROUP BY provider")
    return dict(found.fetchall())


def oldest(con: sqlite3.Connection) -> float | None:
    """When the oldest undelivered record was made."""
    found: float | None = con.execute(
        "SELECT time FROM record WHERE seq = (SELECT min(seq) FROM record WHERE state = 'pending')"
    ).fetchone()
    return found[0] if found else None  # type: ignore[index]


def count(con: sqlite3.Connection, state: State) -> int:
    """How many records are in *state*; of those handed over, the ones that nobody confirmed."""
    (number,) = con.execute(
        "SELECT count(*) FROM record WHERE state = ? AND state <> 'pending' AND confirmed = 0", (state.value,)
    ).fetchone()
    return int(number)


def health(con: sqlite3.Connection) -> dict[str, Health]:
    """How deliveries to each provider go."""
    found = con.execute(
        "SELECT provider, successes, last_success, failing, last_error, circuit, retry_at FROM health"
    )
    return {row[0]: Health(*row[1:]) for row in found}


def hooks(con: sqlite3.Connection, now: float) -> dict[str, dict[str, HookStats]]:
    """Provider to hook to the calls of the last seven days."""
    total: dict[str, dict[str, HookStats]] = {}
    found = con.execute(
        "SELECT provider, hook, stats FROM hook WHERE day > ? ORDER BY day", (int(now // DAY) - HOOK_DAYS,)
    )
    for provider, hook, text in found:
        total.setdefault(provider, {}).setdefault(hook, HookStats()).merge(load_hook(text))
    return total


def load_hook(text: str) -> HookStats:
    """The calls that ``dump_hook`` wrote."""
    plain = json.loads(text)
    buckets = {int(place): number for place, number in plain.pop("buckets").items()}
    return HookStats(Latency(buckets), **plain)


def dump_hook(stats: HookStats) -> str:
    """*stats* as text."""
    return json.dumps(
        {
            "buckets": stats.latency.buckets,
            "calls": stats.calls,
            "errors": stats.errors,
            "timeouts": stats.timeouts,
            "last_ok": stats.last_ok,
            "last_error": stats.last_error,
        }
    )


def ingested(con: sqlite3.Connection, provider: str, keys: Collection[str]) -> set[str]:
    """Those of *keys* that were ingested for *provider* before."""
    statement = "SELECT 1 FROM ingested WHERE provider = ? AND hash = ?"
    return {key for key in keys if con.execute(statement, (provider, digest(key))).fetchone()}
