"""That no key shows up where somebody could read it."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes.memory.lanes import describe
from hermes.testing.conformance.bench import Bench, NotTried
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.recall import in_files
from hermes.testing.conformance.session import run
from hermes.testing.conformance.watch import Watch

_WHY = "Answers reach the model, messages reach the terminal and the log: a key that was there once is known."
_MEND = "never format a key; show its last four characters at most"


def kept(bench: Bench) -> None:
    """A made-up key for every secret of the form; none of them may come out of a whole session."""
    secrets = bench.job.filled["secrets"]
    if not secrets:
        return
    said = Path(bench.job.root, "said.txt")
    ears = Ears(secrets, bench.watch)
    ears.open(said)
    try:
        for way, text, where in _session(bench):
            if any(secret in text for secret in secrets):
                bench.error(f"{way} shows a key", why=_WHY, mend=_MEND, where=where)
    finally:
        ears.close()
        for way, where in ears.heard:
            bench.error(f"a key is {way}", why=_WHY, mend=_MEND, where=where)
        if not ears.heard and any(in_files(said.parent, secret) == said for secret in secrets):
            bench.error("a key is printed by a program that it starts", why=_WHY, mend=_MEND)
    _in_the_open(bench, secrets)


def _session(bench: Bench) -> Iterator[tuple[str, str, Where]]:
    """Everything that is answered or raised from the start to the end."""
    try:
        seat = bench.start()
    except NotTried as exc:
        cause = exc.__cause__
        yield "an error at its start", str(exc), bench.place_raised(cause) if cause else Where()
        raise
    provider = seat.provider
    for name, make in (("repr()", repr), ("str()", str)):
        yield f"{name} of the provider", make(provider), bench.place_of(provider, f"__{name[:-2]}__")
    for heard in run(seat, bench):
        if heard.error is not None:
            yield f"an error of {heard.member}", describe(heard.error), bench.place_raised(heard.error)
        else:
            yield heard.about or heard.member, str(heard.answer), bench.place_of(provider, heard.member)
    config = bench.job.filled["config"]
    for member, args in (("unavailable_reason", ()), ("get_status_config", (config,))):
        answer = seat.ask(member, *args, within=bench.limits.hook)
        yield member, str(answer), bench.place_of(provider, member)
    bench.leave(seat)


def _in_the_open(bench: Bench, secrets: Sequence[str]) -> None:
    """Keys in files other than the ``.env`` that the setup writes."""
    home = Path(os.environ["HERMES_HOME"])
    for folder in (home, Path(bench.job.root, "home"), Path(bench.job.root, "work")):
        for path in sorted(folder.rglob("*")):
            if path == home / ".env" or not path.is_file():
                continue
            if any(secret.encode() in path.read_bytes() for secret in secrets):
                places = [e.where for e in bench.watch.seen("write") if Path(e.what) == path]
                bench.error(
                    f"a key stands in {path.relative_to(folder)}",
                    why="Secrets belong into .env, which is private and is left out of clones and exports.",
                    mend="mark the field as a secret and read it from the environment where it is needed",
                    where=places[0] if places else None,
                )


class Ears:
    """Hears *secrets* in what is printed and logged, and where that was done."""

    def __init__(self, secrets: Sequence[str], watch: Watch) -> None:
        self.heard: list[tuple[str, Where]] = []
        self._secrets = secrets
        self._watch = watch
        self._undo: list[Any] = []

    def listen(self, how: str, text: str) -> None:
        """Take note where *text* holds a secret."""
        if any(secret in text for secret in self._secrets):
            self.heard.append((how, self._watch.place()))

    def open(self, file: Path) -> None:
        """Put everything that is printed into *file*, and listen."""
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._undo = [os.dup(1), os.dup(2), sys.stdout, sys.stderr]
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.close(target)
        sys.stdout, sys.stderr = _Tee(self, 1), _Tee(self, 2)
        root = logging.getLogger()
        root.addHandler(_Handler(self))
        root.setLevel(logging.DEBUG)

    def close(self) -> None:
        """Listen no more to what is printed."""
        sys.stdout.flush()
        out, err, sys.stdout, sys.stderr = self._undo
        os.dup2(out, 1)
        os.dup2(err, 2)


class _Tee(io.TextIOWrapper):
    def __init__(self, ears: Ears, descriptor: int) -> None:
        super().__init__(open(descriptor, "wb", closefd=False), "utf-8", "replace", write_through=True)  # noqa: SIM115
        self._ears = ears

    def write(self, text: str, /) -> int:
        self._ears.listen("printed", text)
        return super().write(text)


class _Handler(logging.Handler):
    def __init__(self, ears: Ears) -> None:
        super().__init__(logging.DEBUG)
        self._ears = ears

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self._ears.listen("logged", f"{record.getMessage()} {trace}")
