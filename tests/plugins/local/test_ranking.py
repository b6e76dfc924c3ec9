"""The order of what is found: neighbours, corrections, repetitions, roles and times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from hermes.plugins.memory.local import dates, text
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.question import understand
from hermes.plugins.memory.local.records import Role
from hermes.plugins.memory.local.stem import stem

Open = Callable[..., LocalMemoryProvider]

NOW = datetime(2026, 6, 17, 12).timestamp()  # a Wednesday


def at(day: str) -> float:
    """Noon of an ISO day, local time."""
    return datetime.fromisoformat(f"{day}T12:00:00").timestamp()


def found(provider: LocalMemoryProvider, asked: str) -> list[str]:
    """The texts found, best first."""
    return [record["text"] for record in provider.search_records(asked) or []]


def test_an_answer_is_found_beside_its_question(open_local: Open) -> None:
    """The message next to a match is found though it holds no word of the question; "ok" is not."""
    provider = open_local("a")
    provider.sync_turn("Which restaurant did you book for the anniversary?", "")
    provider.sync_turn("The Golden Lotus on Pine Street", "ok")
    provider.sync_turn("Unrelated talk of the garden fence", "", session_id="b")
    assert found(provider, "restaurant for the anniversary")[:2] == [
        "Which restaurant did you book for the anniversary?",
        "The Golden Lotus on Pine Street",
    ]
    assert "ok" not in found(provider, "restaurant for the anniversary")


def test_a_correction_stands_before_what_it_corrects(open_local: Open) -> None:
    """Of two statements alike in all but a detail the newer comes first, and the older is kept."""
    provider = open_local("a")
    provider.sync_turn("I have 5 years of experience with Rust", "", session_id="a", turn_time=1.0)
    provider.sync_turn("I have 6 years of experience with Rust", "", session_id="b", turn_time=2.0)
    assert found(provider, "How many years of experience with Rust do I have?")[:2] == [
        "I have 6 years of experience with Rust",
        "I have 5 years of experience with Rust",
    ]


def test_repetitions_do_not_fill_the_list(open_local: Open) -> None:
    """The same sentence said ten times is one result, and its newest saying is the one shown."""
    provider = open_local("a")
    for i in range(10):
        provider.sync_turn("My locker code is 4471", "", session_id=f"s{i}", turn_time=float(i))
    provider.sync_turn("The locker room code changes in May", "", session_id="z")
    records = provider.search_records("locker code") or []
    assert [r["text"] for r in records].count("My locker code is 4471") == 1
    assert next(r for r in records if "4471" in r["text"])["time"] == 9.0


def test_a_busy_session_does_not_hide_the_others(open_local: Open) -> None:
    """However much the current session says on a subject, what others said is still recalled."""
    open_local("old").sync_turn("The locker code is 4471", "")
    provider = open_local("now")
    provider.sync_turns([{"user_content": f"the locker code again, number {i}"} for i in range(150)])
    assert "4471" in provider.prefetch("What is the locker code?")


def test_whose_words_are_asked_for(open_local: Open) -> None:
    """ "What did you recommend" asks for the assistant's words; a name for that person's."""
    provider = open_local("a")
    provider.sync_turn(
        "Tell me about hiking trails", "For hiking trails try the Eagle Ridge", turn_author="Ann"
    )
    assert found(provider, "Which hiking trails did you recommend?")[0].startswith("For hiking")
    group = open_local("g", platform="slack", chat_id="c")
    group.sync_turn("I like climbing in winter", "", turn_author="Ann", session_id="1")
    group.sync_turn("I like climbing in summer", "", turn_author="Bob", session_id="2")
    assert found(group, "What does Bob like, climbing?")[0] == "I like climbing in summer"


@pytest.mark.parametrize(
    "asked",
    [
        "What did we discuss last week about the budget?",
        "Was haben wir letzte Woche zum budget besprochen?",
        "上周我们讨论的budget是什么",
        "the budget on June 10",
        "the budget on 2026-06-10",
        "6月10日的budget",
        "das budget vom 10. Juni",
        "budget a week ago",
        "budget vor 7 Tagen",
    ],
)
def test_a_time_in_the_question_is_heeded(open_local: Open, asked: str) -> None:
    """Of equal matches the one said at the time asked for comes first, in three languages."""
    provider = open_local("a", clock=lambda: NOW)
    for i, day in enumerate(["2026-03-02", "2026-06-10", "2026-05-20", "2026-06-16"]):
        provider.sync_turn(f"The budget stands at {i}00", "", session_id=day, turn_time=at(day))
    assert found(provider, asked)[0] == "The budget stands at 100"


def test_a_question_of_nothing_but_a_time(open_local: Open) -> None:
    """Where no word is left to look for, what was said then is found."""
    provider = open_local("a", clock=lambda: NOW)
    provider.sync_turn("We painted the fence", "", session_id="x", turn_time=at("2026-06-16"))
    provider.sync_turn("We mowed the lawn", "", session_id="y", turn_time=at("2026-06-01"))
    assert found(provider, "What did we do yesterday?") == ["We painted the fence"]
    assert "fence" in open_local("b", clock=lambda: NOW).prefetch("What did we do yesterday?")


@pytest.mark.parametrize(
    ("asked", "inside", "outside"),
    [
        ("yesterday", "2026-06-16", "2026-06-17"),
        ("vorgestern", "2026-06-15", "2026-06-16"),
        ("last Tuesday", "2026-06-16", "2026-06-09"),
        ("letzten Dienstag", "2026-06-16", "2026-06-17"),
        ("last Wednesday", "2026-06-10", "2026-06-17"),
        ("last week", "2026-06-08", "2026-06-15"),
        ("last weekend", "2026-06-13", "2026-06-15"),
        ("last month", "2026-05-31", "2026-06-01"),
        ("letzten Monat", "2026-05-01", "2026-04-30"),
        ("上个月", "2026-05-15", "2026-06-15"),
        ("上周二", "2026-06-16", "2026-06-17"),
        ("去年", "2025-07-01", "2026-01-01"),
        ("this month", "2026-06-02", "2026-05-31"),
        ("two weeks ago", "2026-06-03", "2026-06-10"),
        ("vor drei Tagen", "2026-06-14", "2026-06-15"),
        ("三天前", "2026-06-14", "2026-06-15"),
        ("in March", "2024-03-09", "2026-04-01"),
        ("im März", "2025-03-09", "2026-04-01"),
        ("in May 2025", "2025-05-31", "2026-05-31"),
        ("7 May 2023", "2023-05-07", "2023-05-08"),
        ("May 7th, 2023", "2023-05-07", "2022-05-07"),
        ("2023年5月7日", "2023-05-07", "2023-05-08"),
        ("am 7. Mai", "2021-05-07", "2021-05-08"),
        ("in 2024", "2024-12-31", "2025-01-01"),
    ],
)
def test_times_are_understood(asked: str, inside: str, outside: str) -> None:
    """A phrase means these days and not those."""
    dated = dates.find(f"what was said {asked}?", NOW)
    assert dated.matches(at(inside))
    assert not dated.matches(at(outside))


@pytest.mark.parametrize(
    "asked",
    [
        "may I ask",
        "version 2.21",
        "March 99",
        "the last one",
        "10.10.10.10",
        "2023-13-45",
    ],
)
def test_what_is_no_time_is_left_alone(asked: str) -> None:
    """Words that only look like a time narrow nothing and break nothing."""
    assert dates.find(asked, NOW).spans == []
    assert dates.find(asked, NOW).recurring == []
    assert dates.find(asked, float("nan")).spans == []


def test_a_question_is_understood() -> None:
    """Function words go, in the language that it is written in; roles and names are noticed."""
    assert [t.text for t in understand("Where is the red bicycle?", NOW).terms] == ["red", "bike"]
    assert [t.text for t in understand("Wo ist die rote Mappe?", NOW).terms] == ["rote", "mapp"]
    assert [t.text for t in understand("der die das war die", NOW).terms] != []
    assert understand("What did you suggest?", NOW).leans is Role.ASSISTANT
    assert understand("你推荐过什么电影", NOW).leans is Role.ASSISTANT
    assert understand("what I like", NOW).leans is None
    assert understand("what does Ann want", NOW, ["Ann", "Bob"]).authors == {"Ann"}


@pytest.mark.parametrize(
    ("forms", "same"),
    [
        ("running runs ran", True),
        ("charity charities", True),
        ("children child", True),
        ("swimming swims", True),
        ("relational relate", True),
        ("agreed agree", True),
        ("university universe", True),
        ("sky skies", False),
        ("cat category", False),
    ],
)
def test_stems(forms: str, same: bool) -> None:
    """Forms of one word share a stem."""
    assert (len({stem(form) for form in forms.split()}) == 1) is same


def test_passages_overlap_and_are_few() -> None:
    """A long text is cut into overlapping pieces that hold every word, and never into too many."""
    words = [f"w{i}" for i in range(1000)]
    pieces = text.passages(" ".join(words))
    assert {w for p in pieces for w in p.split()} == set(words)
    assert all(len(p.split()) <= text.PASSAGE_WORDS for p in pieces)
    many = text.passages(" ".join(f"w{i}" for i in range(100_000)))
    assert len(many) <= text.MAX_PASSAGES
    assert many[-1].endswith("w99999")
