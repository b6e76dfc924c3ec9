"""Delivery: one thread that hands the journal's records to the provider, in order, until all are taken."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

from hermes.errors import HermesError, PermanentError
from hermes.memory.journal.circuit import Backoff, Circuit
from hermes.memory.journal.journal import Journal
from hermes.memory.journal.outbox import Outbox
from hermes.memory.journal.queries import Candidate
from hermes.memory.journal.records import DrainState, Health, Kind, Record, Sent
from hermes.memory.lanes import CallStillRunning, LaneClosed

POLL = 0.5
"""Seconds between two looks at what other processes have written."""
STUCK_POLL = 1.0
CHORES = 5.0
BEAT = 20.0
PURGE = 3600.0
MOST_TOGETHER = 100
"""Turns that are handed over in one call."""
SILENCE = 300.0
"""Seconds without a sign of life after which another process delivers."""


class Deliverer:
    """Hands records to ``send``: a newer one never passes an older one of its session, other sessions go on.

    *providers* names those that can take records now. ``send`` returns how the provider took the record.
    PermanentError sets it aside; CallStillRunning (an earlier call has not returned) waits and counts as no
    attempt; anything else is tried again, later and later. *between* is called every few seconds.

    ``send_many`` hands over turns that follow each other, of one session or several, all or none: to the
    providers of which *together* says so. Where that fails they are sent one by one, so that the one that
    cannot be taken is found. *chosen* names the providers that are in use, whether or not they are ready.
    """

    def __init__(
        self,
        journal: Journal,
        send: Callable[[Record], Sent],
        *,
        providers: Callable[[], Collection[str]],
        chosen: Callable[[], Collection[str]] | None = None,
        send_many: Callable[[Sequence[Record]], Sent] | None = None,
        together: Callable[[str], bool] | None = None,
        between: Callable[[], None] | None = None,
        backoff: Backoff | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        log: logging.Logger | None = None,
    ) -> None:
        self._log = log or logging.getLogger("hermes.memory.journal")
        self._journal = journal
        self._send = send
        self._send_many = send_many
        self._together = together
        self._providers = providers
        self._chosen = chosen or providers
        self._between = between
        self._backoff = backoff or Backoff()
        self._monotonic = monotonic
        self._outbox = Outbox(journal)
        self._circuits: dict[str, Circuit] = {}
        self._batches: dict[str, deque[Candidate]] = {}
        self._failing: dict[str, dict[str, float]] = {}  # provider -> session -> when it may be tried again
        self._singly: dict[str, int] = {}  # provider -> how many records are sent one by one
        self._leads = False
        self._due = {"chores": 0.0, "beat": 0.0, "purge": 0.0}
        self._sending = ""
        self._unsynced = False
        self._start_over()

    def _start_over(self) -> None:
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self._bell = threading.Lock()  # free when it has rung: half the price of an Event on the turn
        self._looked = threading.Condition()  # guards the two numbers below
        self._hurries = 0
        self._looks = 0  # the hurries after which nothing more could be sent
        self._hurried = 0
        self._freed = 0  # how often a provider that was stuck could be called again
        self._stopping = False

    # -- the thread --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to deliver, with what earlier processes left. The thread is a daemon; calling twice is harmless."""
        if self._pid != os.getpid():
            self._start_over()
        if self._thread is None or not self._thread.is_alive():
            self._stopping = False
            self._thread = threading.Thread(target=self._run, name="hermes-delivery", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """There is something new, or a call that was stuck has returned."""
        for circuit in list(self._circuits.values()):
            if circuit.stuck_until:
                circuit.stuck_until = 0.0
                self._freed += 1
        if self._thread is not None and self._pid != os.getpid():
            self.start()  # this is a forked child
        self._ring()

    def flush(self, timeout: float) -> bool:
        """Try everything now and wait, *timeout* seconds at most; whether nothing is left undelivered.

        Returns early where the provider fails: waiting would not help.
        """
        end = time.monotonic() + timeout
        while True:
            with self._looked:
                self._hurries += 1
                mine = self._hurries
            self.wake()
            freed = self._freed
            with self._looked:
                looked = self._looked.wait_for(
                    lambda mine=mine: self._looks >= mine or self._stopping,  # type: ignore[misc]
                    max(0.0, end - time.monotonic()),
                )
            try:
                left = self._outbox.undelivered(self._providers())
            except HermesError:
                return False
            stuck = any(circuit.stuck_until for circuit in list(self._circuits.values()))
            waits = not self._leads or stuck or freed != self._freed  # it may have returned just now
            if left <= 0 or not looked or self._stopping or not waits or time.monotonic() >= end:
                return left <= 0
            time.sleep(
                min(0.05, max(0.0, end - time.monotonic()))
            )  # another process delivers, or a call is stuck

    def stop(self, timeout: float) -> DrainState:
        """End the thread within *timeout* seconds, let another process deliver, and say what is left."""
        self._stopping = True
        self._ring()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, timeout))
        stuck = self._sending if thread is not None and thread.is_alive() else ""
        with self._looked:
            self._looked.notify_all()
        if self._leads and not stuck:
            self._outbox.give_lease_up()
            self._leads = False
        stats = self._journal.stats()
        return DrainState(stats.undelivered, stats.handed_over, stats.dead, stats.held, stuck)

    def _run(self) -> None:
        while not self._stopping:
            try:
                pause = self.step()
            except HermesError as exc:
                self._log.warning("the journal cannot be read: %s", exc)
                pause = STUCK_POLL
            except Exception:  # noqa: BLE001 - delivery goes on whatever happens; the failure is in the log
                self._log.exception("delivery failed")
                pause = STUCK_POLL
            if pause > 0 and not self._stopping:
                self._bell.acquire(timeout=pause)

    def _ring(self) -> None:
        if self._bell.locked():
            with contextlib.suppress(RuntimeError):  # another thread rang at the same moment
                self._bell.release()

    # -- one thing at a time -----------------------------------------------------------------------------

    def step(self) -> float:
        """Deliver what goes in one call, if any is due; seconds until there may be more, 0.0 for at once.

        Raises StoreUnavailable if the journal cannot be read.
        """
        now = self._monotonic()
        with self._looked:
            hurry, self._hurried = self._hurries > self._hurried, self._hurries
            seen = self._hurries
        if hurry:
            self._forget_waits()
        if hurry or now >= self._due["chores"] or self._outbox.needs_lease:
            self._chores(now)
        found = self._next(now) if self._leads else []
        if self._outbox.needs_lease:  # another process has made the file meanwhile
            self._batches.clear()
            return 0.0
        if not found:
            if self._unsynced:
                self._unsynced = False
                self._outbox.sync()
            with self._looked:
                self._looks = seen
                self._looked.notify_all()
            return self._pause(now)
        if len(found) > 1:
            self._deliver_together(found)
        else:
            self._deliver(found[0])
        self._unsynced = True
        return 0.0

    def _chores(self, now: float) -> None:
        self._due["chores"] = now + CHORES
        self._outbox.catch_up()
        led, self._leads = self._leads, self._outbox.take_lease(now, SILENCE)
        if now >= self._due["beat"]:
            self._due["beat"] = now + BEAT
            self._outbox.beat()
        if self._leads:
            if not led:
                self._batches.clear()
            self._outbox.end_orphans(self._providers(), now)
            self._outbox.checkpoint()
            if not led or now >= self._due["purge"]:
                self._age(now, at_start=not led)
            if now >= self._due["purge"]:
                self._due["purge"] = now + PURGE
                self._outbox.purge()
        if self._between is not None:
            self._between()

    def _age(self, now: float, *, at_start: bool) -> None:
        """Set aside what is too old. What can be tried is tried first, as after a month of holidays."""
        healthy = [one for one in self._providers() if self._circuit(one).is_well_at(now)]
        number = self._outbox.set_old_aside([*healthy, *(self._chosen() if at_start else ())])
        if number:
            self._batches.clear()
            self._log.warning("%d records are set aside: they are older than journal.max_age", number)

    def _next(self, now: float) -> list[Record]:
        for provider in self._providers():
            if self._circuit(provider).is_closed_at(now):
                record = self._next_of(provider, now)
                if record is not None:
                    return self._with_more(record)
        return []

    def _next_of(self, provider: str, now: float) -> Record | None:
        batch = self._batches.get(provider)
        if not batch:
            batch = self._batches[provider] = self._look(provider, now)
        while batch:
            candidate = batch.popleft()
            blocker = self._outbox.held_back_by(provider, candidate)
            if blocker is not None:
                failing = self._failing.setdefault(provider, {})
                failing[candidate.session] = max(now, failing.get(blocker, now))
                self._leave_out(provider, candidate.session)
                batch = self._batches[provider]
                continue
            record = self._outbox.load(provider, candidate)
            if record is not None:
                return record
        return None

    def _with_more(self, first: Record) -> list[Record]:
        """*first*, and the turns that may go with it in one call."""
        provider = first.provider
        if self._singly.get(provider):
            return [first]
        batch = self._batches[provider]
        if first.kind is not Kind.TURN or first.attempts or not batch or self._circuit(provider).failures:
            return [first]
        if self._together is None or not self._together(provider):
            return [first]
        free = list(
            itertools.takewhile(
                lambda one: self._outbox.held_back_by(provider, one) is None,
                itertools.islice(batch, MOST_TOGETHER - 1),
            )
        )
        records = self._outbox.load_more(provider, first, free)
        taken = {record.key for record in records}
        while batch and batch[0].key in taken:
            batch.popleft()
        return records

    def _look(self, provider: str, now: float) -> deque[Candidate]:
        """What may be sent now; while nothing succeeds, sessions that have not failed come first."""
        failing = self._failing.get(provider, {})
        if failing and self._circuit(provider).is_open:
            fresh = self._outbox.candidates(provider, list(failing))
            if fresh:
                return deque(fresh)
        return deque(self._outbox.candidates(provider, [one for one, due in failing.items() if due > now]))

    def _deliver(self, record: Record) -> None:
        self._sending = f"{record.kind} of session {record.session_id}"
        try:
            sent = self._send(record)
        except (CallStillRunning, LaneClosed):
            self._circuit(record.provider).stuck_until = self._monotonic() + STUCK_POLL
            self._batches.pop(record.provider, None)
            return  # it is as it was, however often this is looked at
        except PermanentError as exc:
            self._log.warning("%s refused %s for good: %s", record.provider, self._sending, exc)
            self._outbox.dead(record, _describe(exc))
        except BaseException as exc:  # noqa: BLE001 - whatever a provider raises, the record is tried again
            self._failed(record, _describe(exc))
        else:
            self._succeeded(record, sent)
        finally:
            self._sending = ""
        if self._singly.get(record.provider):
            self._singly[record.provider] -= 1

    def _deliver_together(self, records: Sequence[Record]) -> None:
        provider = records[0].provider
        self._sending = f"{len(records)} turns, the first of session {records[0].session_id}"
        assert self._send_many is not None
        try:
            sent = self._send_many(records)
        except BaseException as exc:  # noqa: BLE001 - whatever it is, each record is tried for itself
            self._log.info("%s did not take %s: %s", provider, self._sending, _describe(exc))
            self._singly[provider] = len(records)
            self._batches.pop(provider, None)
            if isinstance(exc, CallStillRunning | LaneClosed):
                self._circuit(provider).stuck_until = self._monotonic() + STUCK_POLL
        else:
            self._outbox.taken(records, sent)
            self._circuit(provider).succeeded()
        finally:
            self._sending = ""

    def _succeeded(self, record: Record, sent: Sent) -> None:
        self._outbox.taken([record], sent)
        failing = self._failing.get(record.provider)
        if self._circuit(record.provider).succeeded():
            self._failing.pop(record.provider, None)  # it is back: nobody has to wait
            self._batches.pop(record.provider, None)
        elif failing:
            failing.pop(record.session_id, None)

    def _failed(self, record: Record, error: str) -> None:
        now = self._monotonic()
        circuit = self._circuit(record.provider)
        circuit.failed(error, now)
        wait = self._backoff.wait(record.attempts + 1)
        retry_at = self._journal.clock() + circuit.retry_at - now if circuit.retry_at is not None else None
        health = Health(
            failing=circuit.failures, last_error=error, circuit=circuit.state_at(now), retry_at=retry_at
        )
        self._log.info("%s did not take %s: %s", record.provider, self._sending, error)
        if self._outbox.failed(record, error, wait, health):
            self._failing.get(record.provider, {}).pop(record.session_id, None)
            self._log.warning("%s: %s is set aside: %s", record.provider, self._sending, error)
        else:
            self._failing.setdefault(record.provider, {})[record.session_id] = now + wait
        self._leave_out(record.provider, record.session_id)

    def _leave_out(self, provider: str, session: str) -> None:
        """Nothing of *session* may pass the record that did not go."""
        batch = self._batches.get(provider, ())
        self._batches[provider] = deque(one for one in batch if one.session != session)

    def _circuit(self, provider: str) -> Circuit:
        return self._circuits.setdefault(provider, Circuit(self._backoff))

    def _forget_waits(self) -> None:
        self._failing.clear()
        self._batches.clear()
        for circuit in self._circuits.values():
            circuit.try_now()

    def _pause(self, now: float) -> float:
        """Seconds until the next look: something is due, or another process may have written."""
        dues = [self._due["chores"], now + POLL]
        return max(0.001, min(dues) - now)


def _describe(exc: BaseException) -> str:
    """One line that says what was raised."""
    text = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {text}"[:500] if text else type(exc).__name__
