"""Sessions that are open, and the processes that opened them: a session gets its end once, whoever dies.

Every function writes within the transaction that it is given.
"""

from __future__ import annotations

import functools
import sqlite3
import uuid
from collections.abc import Collection

from hermes.memory.journal.encoding import Row, dump
from hermes.memory.journal.owner import Owner, Watch
from hermes.memory.journal.records import Kind

DELIVERY = "delivery"
CONTINUED = "continued in another session"
SILENCE = 300.0
"""Seconds without a sign of life after which a process that cannot be looked at counts as gone."""


def enrol(con: sqlite3.Connection, owner: Owner) -> None:
    """Make *owner* known."""
    con.execute(
        "INSERT OR IGNORE INTO owner VALUES (?, ?, ?, ?, 0)", (owner.id, owner.place, owner.pid, owner.born)
    )


def leave(con: sqlite3.Connection, owner: Owner) -> None:
    """*owner* closes the journal: what it had is free at once."""
    con.execute("DELETE FROM lease WHERE owner = ?", (owner.id,))
    con.execute("DELETE FROM owner WHERE id = ?", (owner.id,))


def beat(con: sqlite3.Connection, owner: Owner) -> int:
    """*owner* gives a sign of life, if it is known at all."""
    return con.execute("UPDATE owner SET beat = beat + 1 WHERE id = ?", (owner.id,)).rowcount


def lease_is_mine(
    con: sqlite3.Connection, owner: Owner, watch: Watch, now: float, silence: float
) -> bool | None:
    """Whether *owner* is the one that delivers; None if nobody does, or the one that should is gone or stuck.

    *now* is monotonic. The lease only saves work: two that deliver at once do no harm where the provider
    takes the key.
    """
    row = con.execute(
        "SELECT l.owner, o.beat FROM lease l LEFT JOIN owner o ON o.id = l.owner WHERE l.name = ?",
        (DELIVERY,),
    ).fetchone()
    if row is None or row[1] is None:
        return None
    if row[0] == owner.id:
        return True
    stuck = watch.is_silent(f"{DELIVERY} {row[0]}", row[1], now, silence)
    return None if stuck or watch.is_gone(con, row[0], now, silence) else False


def take_lease(con: sqlite3.Connection, owner: Owner, watch: Watch, now: float, silence: float) -> bool:
    """Become the one that delivers, if the lease is still to be had."""
    mine = lease_is_mine(con, owner, watch, now, silence)
    if mine is None:
        enrol(con, owner)
        con.execute("INSERT OR REPLACE INTO lease VALUES (?, ?)", (DELIVERY, owner.id))
    return mine is not False


def give_lease_up(con: sqlite3.Connection, owner: Owner) -> None:
    """Let another one deliver."""
    con.execute("DELETE FROM lease WHERE owner = ?", (owner.id,))


def open_sessions(
    con: sqlite3.Connection,
    named: Collection[tuple[str, str]],
    owner: Owner,
    now: float,
    linger_until: float = 0.0,
) -> None:
    """*owner* has the sessions *named* (provider, session) open: their ends are owed.

    One that was open elsewhere, or that ended, is taken over.
    """
    if not named:
        return
    values = [value for name in named for value in (*name, owner.id, now, linger_until)]
    if con.execute(_opening_of(len(named)), values).rowcount:
        enrol(con, owner)


@functools.cache
def _opening_of(number: int) -> str:
    return (
        "INSERT INTO session (provider, session, owner, opened, linger) "  # noqa: S608
        f"VALUES {', '.join(['(?, ?, ?, ?, ?)'] * number)} "
        "ON CONFLICT (provider, session) DO UPDATE SET owner = excluded.owner, ending = '', "
        "opened = CASE WHEN ending = '' THEN opened ELSE excluded.opened END, "
        "linger = max(linger, excluded.linger) "
        "WHERE owner <> excluded.owner OR ending <> '' OR linger < excluded.linger"
    )


def continue_session(
    con: sqlite3.Connection, provider: str, old: str, new: str, owner: Owner, now: float
) -> None:
    """*old* goes on as *new*: its turns belong to the end of *new*, and no other end is owed."""
    con.execute(
        "UPDATE session SET ending = ? WHERE provider = ? AND session = ?", (CONTINUED, provider, old)
    )
    open_sessions(con, [(provider, new)], owner, now)
    con.execute("UPDATE session SET continues = ? WHERE provider = ? AND session = ?", (old, provider, new))


def close_session(con: sqlite3.Connection, provider: str, session: str) -> None:
    """No end is owed for *session*."""
    con.execute("DELETE FROM session WHERE provider = ? AND session = ?", (provider, session))
    con.execute(
        "DELETE FROM record WHERE provider = ? AND session = ? AND state = 'transcript' AND state <> 'pending'",
        (provider, session),
    )


def note_end(con: sqlite3.Connection, provider: str, session: str, key: str) -> None:
    """The end of *session* is told by the record *key*."""
    con.execute("UPDATE session SET ending = ? WHERE provider = ? AND session = ?", (key, provider, session))


def others_open(con: sqlite3.Connection, providers: Collection[str], owner: Owner) -> bool:
    """Whether any session of *providers* is held by another owner."""
    held = con.execute("SELECT DISTINCT provider FROM session WHERE ending = '' AND owner <> ?", (owner.id,))
    return any(provider in providers for (provider,) in held)


def orphans(
    con: sqlite3.Connection, providers: Collection[str], owner: Owner, watch: Watch, now: float, time: float
) -> list[Row]:
    """Ends for the sessions of *providers* whose process is gone. *now* is monotonic, *time* Unix seconds.

    A session in which nothing was said is forgotten instead.
    """
    ends = []
    open_ones = con.execute(
        "SELECT provider, session, owner, linger FROM session WHERE ending = ''"
    ).fetchall()
    for provider, session, holder, linger in open_ones:
        if provider not in providers or holder == owner.id or time < linger:
            continue
        if not watch.is_gone(con, holder, now, SILENCE):
            continue
        if _nothing_was_said(con, provider, session):
            con.execute("DELETE FROM session WHERE provider = ? AND session = ?", (provider, session))
            continue
        key = f"end-{uuid.uuid4().hex}"  # written once, with the session: the same again is another end
        ends.append(
            Row(provider, session, Kind.SESSION_END.value, key, time, "", dump({"messages": []}), time)
        )
    return ends


def sweep_owners(con: sqlite3.Connection, owner: Owner) -> None:
    """Forget the processes that hold nothing."""
    con.execute(
        "DELETE FROM owner WHERE id <> ? AND id NOT IN (SELECT owner FROM session) "
        "AND id NOT IN (SELECT owner FROM lease)",
        (owner.id,),
    )


def _nothing_was_said(con: sqlite3.Connection, provider: str, session: str) -> bool:
    for pending in ("=", "<>"):  # each has its index
        turn = con.execute(
            f"SELECT 1 FROM record WHERE provider = ? AND session = ? AND state {pending} 'pending' "  # noqa: S608
            "AND kind = 'turn' LIMIT 1",
            (provider, session),
        ).fetchone()
        if turn is not None:
            return False
    inherited = con.execute(
        "SELECT continues FROM session WHERE provider = ? AND session = ?", (provider, session)
    ).fetchone()
    return not (inherited and inherited[0])
