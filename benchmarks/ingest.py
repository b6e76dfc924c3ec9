"""MemoryBank's conversations through the command line: a home, and in it a profile for each person.

``ingest.py --data FOLDER [--questions N] [--keep]``: FOLDER holds ``memory_bank_en.json``,
``memory_bank_cn.json`` and ``mbank_labels.json`` (per person: questions, and the messages that answer them).

Printed: what is stored, how fast, how many of the labelled questions bring back the message that answers
them, and whether anything crossed. Exit code 1 if a message is lost, stored twice, or found where it does not
belong.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

LANGUAGES = {"en": "memory_bank_en.json", "zh": "memory_bank_cn.json"}
DISTINCT = {"en": 40, "zh": 12}
"""Characters from which a message counts as somebody's own words: "Thank you." is said by everybody."""


@attrs.frozen
class Person:
    """One of MemoryBank's people in one language: what was said each day, and what can be asked about it."""

    name: str
    language: str
    profile: str
    days: dict[str, list[str]]
    questions: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def messages(self) -> list[str]:
        """Everything that was said, in order; what the person says and what is answered take turns."""
        return [text for day in self.days.values() for text in day]

    def lines(self) -> Iterator[dict[str, str]]:
        """The messages as the command line takes them: OpenAI style, a conversation per day."""
        for day, texts in self.days.items():
            began = datetime.fromisoformat(day).replace(hour=20, tzinfo=UTC)
            for position, text in enumerate(texts):
                yield {
                    "conversation_id": day,
                    "role": "assistant" if position % 2 else "user",
                    "content": text,
                    "timestamp": (began + timedelta(seconds=20 * position)).isoformat(),
                }


@attrs.define
class Totals:
    """What adds up over the people."""

    turns: int = 0
    messages: int = 0
    calls: int = 0
    ingest_cpu: float = 0.0
    repeat_cpu: float = 0.0
    asked: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(LANGUAGES, 0))
    answered: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(LANGUAGES, 0))
    recall_cpu: list[float] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)


@attrs.frozen
class CommandLine:
    """``hermes`` as a person runs it, a process for every call, in one home."""

    home: Path

    def __call__(self, *words: str) -> tuple[str, float]:
        """What ``hermes`` *words* prints, and its CPU seconds. Ends the benchmark if it fails."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(
            [sys.executable, "-m", "hermes", *words],
            env={**environ, "HERMES_HOME": str(self.home), "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if result.returncode != 0:
            raise SystemExit(
                f"hermes {' '.join(words)} ended with {result.returncode}: {result.stderr.strip()}"
            )
        return result.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def people(folder: Path, per_person: int) -> list[Person]:
    """Everybody in the files of *folder*, with at most *per_person* questions each."""
    labels = json.loads((folder / "mbank_labels.json").read_text(encoding="utf-8"))
    found = []
    for language, file in LANGUAGES.items():
        asked = {name.strip(): items for name, items in labels[language].items()}
        for number, (name, data) in enumerate(
            json.loads((folder / file).read_text(encoding="utf-8")).items(), 1
        ):
            days = {
                day: [text for said in turns for text in (said["query"].strip(), said["response"].strip())]
                for day, turns in data["history"].items()
            }
            questions = tuple(
                (item["q"], tuple(_said(days, gold) for gold in item["gold"]))
                for item in asked.get(name.strip(), [])[:per_person]
            )
            found.append(Person(name.strip(), language, f"{language}-{number:02d}", days, questions))
    return found


def _said(days: dict[str, list[str]], place: str) -> str:
    """The message at *place*, written ``day/position``."""
    day, _, position = place.partition("/")
    return days[day][int(position)]


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def squeezed(text: str) -> str:
    """*text* without white space: however it was wrapped or indented, it compares equal."""
    return "".join(text.split())


def store(hermes: CommandLine, person: Person, folder: Path, totals: Totals) -> str:
    """Take one person's conversations in, twice, and export them; the whole export as text.

    What is missing, and what the second time added, goes to the faults.
    """
    file = folder / f"{person.profile}.jsonl"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in person.lines())
    file.write_text(text, encoding="utf-8")
    hermes("profile", "create", person.profile)
    totals.ingest_cpu += hermes("--profile", person.profile, "memory", "ingest", str(file))[1]
    once, _ = hermes("--profile", person.profile, "memory", "export")
    totals.repeat_cpu += hermes("--profile", person.profile, "memory", "ingest", str(file))[1]
    twice, _ = hermes("--profile", person.profile, "memory", "export")
    totals.calls += 1
    totals.turns += sum(len(day) // 2 for day in person.days.values())
    totals.messages += len(person.messages)
    exported = "\n".join(squeezed(s) for line in twice.splitlines() for s in strings(json.loads(line)))
    lost = [said for said in person.messages if squeezed(said) not in exported]
    totals.faults += [f"{person.profile} lost: {said[:60]}" for said in lost]
    if len(once.splitlines()) != len(twice.splitlines()):
        totals.faults.append(f"{person.profile}: a second time the same file added something")
    return exported


def foreign(person: Person, everybody: list[Person]) -> set[str]:
    """What others said in their own words and *person* never did."""
    own = squeezed("\n".join(person.messages))
    texts = {squeezed(said) for other in everybody if other is not person for said in other.messages}
    return {text for text in texts if len(text) >= DISTINCT[person.language] and text not in own}


def ask(hermes: CommandLine, person: Person, others: set[str], totals: Totals) -> int:
    """Put the labelled questions in new sessions; how many bring back the message that answers them."""
    hits = 0
    for question, golds in person.questions:
        text, cpu = hermes("--profile", person.profile, "memory", "recall", "--", question)
        recalled = squeezed(text)
        hits += any(squeezed(gold)[:60] in recalled for gold in golds)
        totals.recall_cpu.append(cpu)
        totals.faults += [f"{person.profile} was told of another: {t[:60]}" for t in others if t in recalled]
    totals.asked[person.language] += len(person.questions)
    totals.answered[person.language] += hits
    return hits


def pry(hermes: CommandLine, person: Person, other: Person, others: set[str], totals: Totals) -> None:
    """Ask *person*'s memory with the first half of the longest thing that *other* said: no rest may come."""
    secret = max((said for said in other.messages if squeezed(said) in others), key=len)
    text, cpu = hermes("--profile", person.profile, "memory", "recall", "--", secret[: len(secret) // 2])
    totals.recall_cpu.append(cpu)
    recalled = squeezed(text)
    known = [said for said in others if said in recalled]
    totals.faults += [f"{person.profile} knew of {other.profile}: {said[:60]}" for said in known]


def run(folder: Path, scratch: Path, per_person: int) -> Totals:
    """The whole benchmark in *scratch*; one line per person is printed as it goes."""
    hermes, totals = CommandLine(scratch / "home"), Totals()
    everybody = people(folder, per_person)
    exports = {person.profile: store(hermes, person, scratch, totals) for person in everybody}
    print("profile  person      days  messages  exported  answered")
    for number, person in enumerate(everybody):
        others = foreign(person, everybody)
        crossed = [text for text in others if text in exports[person.profile]]
        totals.faults += [f"{person.profile} exports another's words: {text[:60]}" for text in crossed]
        hits = ask(hermes, person, others, totals)
        pry(hermes, person, everybody[number - 1], others, totals)
        there = sum(squeezed(said) in exports[person.profile] for said in person.messages)
        print(
            f"{person.profile:<9}{person.name:<10}{len(person.days):>6}{len(person.messages):>10}{there:>10}"
            f"{hits:>7}/{len(person.questions)}",
            flush=True,
        )
    return totals


def report(totals: Totals) -> int:
    """Print the sums; 1 if there was a fault."""
    rate, net = totals.turns / totals.ingest_cpu, totals.ingest_cpu - totals.repeat_cpu
    print(f"\nstored: {totals.turns} turns, {totals.messages} messages")
    print(f"ingest: {totals.ingest_cpu:.1f} CPU s in {totals.calls} calls, {rate:.0f} turns per CPU second")
    print(f"        {totals.repeat_cpu:.1f} CPU s for the same calls again, which add nothing")
    print(f"        {net:.1f} CPU s between them, {totals.turns / max(net, 0.01):.0f} turns per CPU second")
    for language, asked in totals.asked.items():
        if asked:
            answered = totals.answered[language]
            print(f"recall: {language} {answered} of {asked} questions answered ({answered / asked:.0%})")
    if totals.recall_cpu:
        mean = sum(totals.recall_cpu) / len(totals.recall_cpu) * 1000
        print(f"        {mean:.0f} CPU ms a question, start of the process included")
    for fault in totals.faults[:20]:
        print(f"FAULT   {fault}")
    print(f"faults: {len(totals.faults)} (lost, stored twice, or crossed)")
    return int(bool(totals.faults))


def main() -> int:
    """Read the arguments, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of MemoryBank's files")
    parser.add_argument("--questions", type=int, default=10, help="at most so many for each person")
    parser.add_argument("--keep", action="store_true", help="leave the home, and say where it is")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="hermes-ingest-"))
    try:
        return report(run(arguments.data, scratch, arguments.questions))
    finally:
        if arguments.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
