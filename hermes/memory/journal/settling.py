"""What becomes of records. Every function writes within the transaction that it is given.

Records are named by provider and key: their *seq* may change when a record that was only in memory is written.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence

from hermes.memory.journal import queries
from hermes.memory.journal.encoding import Row, compact, digest
from hermes.memory.journal.records import DAY, Health, Kind, Record, State
from hermes.memory.latency import HookStats

Change = Callable[[sqlite3.Connection], object]

HOOK_DAYS_KEPT = 30
_TOGETHER = 50


def insert(con: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Add *rows*, leaving out those whose key is there already; how many were new.

    Many rows go into one statement: SQLite lets go of the interpreter for each, and gets it back late.
    """
    if len(rows) == 1:
        return con.execute(_insert_of(1), rows[0]).rowcount
    number = 0
    for start in range(0, len(rows), _TOGETHER):
        some = rows[start : start + _TOGETHER]
        number += con.execute(_insert_of(len(some)), [value for row in some for value in row]).rowcount
    return number


@functools.cache
def _insert_of(number: int) -> str:
    return (
        "INSERT OR IGNORE INTO record (provider, session, kind, key, time, opens, payload, added) "  # noqa: S608
        f"VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?, ?)'] * number)}"
    )


def insert_new(con: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Add those of *rows* that were never ingested, and note them as ingested; how many were new."""
    noted = [
        con.execute("INSERT OR IGNORE INTO ingested VALUES (?, ?)", (row.provider, digest(row.key))).rowcount
        for row in rows
    ]
    return insert(con, [row for row, new in zip(rows, noted, strict=True) if new])


def delivered(con: sqlite3.Connection, record: Record, now: float) -> None:
    """*record* is in the backend: it goes, or stays without its extras where the end of its session needs it."""
    row = con.execute(
        "SELECT payload FROM record WHERE provider = ? AND key = ?", (record.provider, record.key)
    ).fetchone()
    if row is None:
        return
    if record.kind is Kind.TURN and _is_open(con, record):
        con.execute(
            "UPDATE record SET state = 'transcript', settled = ?, payload = ?, error = '' "
            "WHERE provider = ? AND key = ?",
            (now, compact(row[0]), record.provider, record.key),
        )
    else:
        con.execute("DELETE FROM record WHERE provider = ? AND key = ?", (record.provider, record.key))
    _after_end(con, record)


def handed_over(con: sqlite3.Connection, record: Record, now: float) -> None:
    """*record* was accepted; whether it was stored nobody knows."""
    con.execute(
        "UPDATE record SET state = 'handed_over', settled = ?, confirmed = 0, error = '' "
        "WHERE provider = ? AND key = ?",
        (now, record.provider, record.key),
    )
    _after_end(con, record)


def text_to_forget(con: sqlite3.Connection, record: Record) -> str:
    """The text that must be scrubbed once *record* is delivered; empty for none."""
    row = con.execute(
        "SELECT forget FROM record WHERE provider = ? AND key = ?", (record.provider, record.key)
    ).fetchone()
    return str(row[0]) if row else ""


def failed(con: sqlite3.Connection, record: Record, error: str, now: float, next_try: float) -> None:
    """*record* was not taken; it is tried again at *next_try* (Unix seconds)."""
    con.execute(
        "UPDATE record SET attempts = attempts + 1, error = ?, next_try = ?, "
        "successes_then = CASE WHEN first_failed IS NULL "
        "  THEN coalesce((SELECT successes FROM health WHERE health.provider = record.provider), 0) "
        "  ELSE successes_then END, "
        "first_failed = coalesce(first_failed, ?) WHERE provider = ? AND key = ? AND state = 'pending'",
        (error, next_try, now, record.provider, record.key),
    )


def poisoned(con: sqlite3.Connection, record: Record, attempts: int) -> bool:
    """Whether *record* failed *attempts* times while the provider took another one."""
    row = con.execute(
        "SELECT r.attempts, r.successes_then < h.successes FROM record r JOIN health h ON h.provider = r.provider "
        "WHERE r.provider = ? AND r.key = ?",
        (record.provider, record.key),
    ).fetchone()
    return row is not None and row[0] >= attempts and bool(row[1])


def dead(con: sqlite3.Connection, record: Record, error: str, now: float) -> None:
    """*record* is set aside until a person retries or drops it."""
    con.execute(
        "UPDATE record SET state = 'dead', settled = ?, error = ? WHERE provider = ? AND key = ?",
        (now, error, record.provider, record.key),
    )


def set_old_aside(
    con: sqlite3.Connection, before: float, healthy: Collection[str], reason: str, now: float
) -> int:
    """Set aside what was written down before that time and is still owed; how many.

    Of the providers that are *healthy*, what waits untried will be delivered: only what failed there.
    """
    providers = [
        name for (name,) in con.execute("SELECT DISTINCT provider FROM record WHERE state = 'pending'")
    ]
    old: list[int] = []
    for provider in providers:
        for seq, added, attempts in con.execute(
            "SELECT seq, added, attempts FROM record INDEXED BY record_pending "
            "WHERE provider = ? AND state = 'pending' ORDER BY seq",
            (provider,),
        ):
            if added >= before:
                break  # what follows is younger
            if added and (attempts or provider not in healthy):
                old.append(seq)
    con.executemany(
        "UPDATE record SET state = 'dead', settled = ?, error = CASE WHEN error = '' THEN ? ELSE ? || error END "
        "WHERE seq = ?",
        ((now, reason, f"{reason}: ", seq) for seq in old),
    )
    return len(old)


def note_health(con: sqlite3.Connection, provider: str, health: Health) -> None:
    """Keep how deliveries to *provider* go, but for the number of successes."""
    con.execute(
        "INSERT INTO health (provider, last_success, failing, last_error, circuit, retry_at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (provider) DO UPDATE SET last_success = coalesce(excluded.last_success, last_success), "
        "failing = excluded.failing, last_error = excluded.last_error, circuit = excluded.circuit, "
        "retry_at = excluded.retry_at",
        (provider, health.last_success, health.failing, health.last_error, health.circuit, health.retry_at),
    )


def note_success(con: sqlite3.Connection, provider: str, now: float, number: int = 1) -> None:
    """*number* more records of *provider* were taken."""
    con.execute(
        "INSERT INTO health (provider, successes, last_success) VALUES (?, ?, ?) "
        "ON CONFLICT (provider) DO UPDATE SET successes = successes + excluded.successes, "
        "last_success = excluded.last_success, failing = 0, circuit = 'closed', retry_at = NULL",
        (provider, number, now),
    )


def confirm(con: sqlite3.Connection, provider: str, session: str) -> int:
    """The provider shut down cleanly: what it accepted for *session* counts as stored."""
    return con.execute(
        "UPDATE record SET confirmed = 1 "
        "WHERE provider = ? AND session = ? AND state = 'handed_over' AND state <> 'pending'",
        (provider, session),
    ).rowcount


def purge(con: sqlite3.Connection, handed_over_before: float) -> int:
    """Delete confirmed records handed over before that time; how many."""
    return con.execute(
        "DELETE FROM record WHERE state = 'handed_over' AND state <> 'pending' AND confirmed = 1 AND settled < ? "
        "AND NOT EXISTS (SELECT 1 FROM session s WHERE s.provider = record.provider AND s.session = record.session)",
        (handed_over_before,),
    ).rowcount


def to_pending(con: sqlite3.Connection, state: State, seqs: Sequence[int] | None, now: float) -> int:
    """Records in *state* (of those at *seqs*, or all) are owed again, as if never tried."""
    return con.execute(
        "UPDATE record SET state = 'pending', attempts = 0, first_failed = NULL, next_try = 0, confirmed = 0, "
        "settled = NULL, added = ? WHERE state = ? AND (? IS NULL OR seq IN (SELECT value FROM json_each(?)))",
        (now, state.value, *_chosen(seqs)),
    ).rowcount


def drop(con: sqlite3.Connection, seqs: Sequence[int]) -> int:
    """Delete the records at *seqs*, never to be delivered; how many."""
    ends = con.execute(
        "SELECT provider, session, key FROM record WHERE kind = 'session_end' "
        "AND seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)),),
    ).fetchall()
    number = con.execute(
        "DELETE FROM record WHERE seq IN (SELECT value FROM json_each(?)) AND state <> 'transcript'",
        (json.dumps(list(seqs)),),
    ).rowcount
    for provider, session, key in ends:
        end_session(con, provider, session, key)
    return number


def take_back(con: sqlite3.Connection, provider: str, session: str, switch: str) -> None:
    """The last turn of *session* was undone, as the record *switch* tells: no end of the session tells of it."""
    con.execute(
        "UPDATE record SET undone = ?1 WHERE seq = (SELECT max(seq) FROM record WHERE provider = ?2 "
        "AND session IN (SELECT value FROM json_each(?3)) AND kind = 'turn' AND undone = '') "
        "AND NOT EXISTS (SELECT 1 FROM record WHERE provider = ?2 AND undone = ?1)",
        (switch, provider, json.dumps(queries.session_chain(con, provider, session))),
    )


def end_session(con: sqlite3.Connection, provider: str, session: str, key: str) -> None:
    """The end told by the record *key* is done with: what was kept for it goes."""
    row = con.execute(
        "SELECT 1 FROM session WHERE provider = ? AND session = ? AND ending = ?", (provider, session, key)
    ).fetchone()
    if row is None:
        return  # it was opened again since
    over = json.dumps(
        [
            name
            for name in queries.session_chain(con, provider, session)
            if con.execute(
                "SELECT 1 FROM session WHERE provider = ? AND session = ? AND ending <> ''", (provider, name)
            ).fetchone()
        ]
    )
    con.execute(
        "DELETE FROM record WHERE provider = ? AND state = 'transcript' AND state <> 'pending' "
        "AND session IN (SELECT value FROM json_each(?))",
        (provider, over),
    )
    con.execute(
        "DELETE FROM session WHERE provider = ? AND session IN (SELECT value FROM json_each(?))",
        (provider, over),
    )


def add_hooks(con: sqlite3.Connection, provider: str, stats: Mapping[str, HookStats], now: float) -> None:
    """Add calls to those of today."""
    day = int(now // DAY)
    for hook, more in stats.items():
        row = con.execute(
            "SELECT stats FROM hook WHERE provider = ? AND hook = ? AND day = ?", (provider, hook, day)
        ).fetchone()
        total = queries.load_hook(row[0]) if row else HookStats()
        total.merge(more)
        con.execute(
            "INSERT OR REPLACE INTO hook VALUES (?, ?, ?, ?)", (provider, hook, day, queries.dump_hook(total))
        )
    con.execute("DELETE FROM hook WHERE day < ?", (day - HOOK_DAYS_KEPT,))


def _is_open(con: sqlite3.Connection, record: Record) -> bool:
    return (
        con.execute(
            "SELECT 1 FROM session WHERE provider = ? AND session = ?", (record.provider, record.session_id)
        ).fetchone()
        is not None
    )


def _after_end(con: sqlite3.Connection, record: Record) -> None:
    if record.kind is Kind.SESSION_END:
        end_session(con, record.provider, record.session_id, record.key)


def _chosen(seqs: Sequence[int] | None) -> tuple[str | None, str | None]:
    text = None if seqs is None else json.dumps(list(seqs))
    return text, text
