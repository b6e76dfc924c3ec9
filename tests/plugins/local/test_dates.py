"""Times in a question, in the languages that people ask in."""

from __future__ import annotations

from datetime import datetime

import pytest

from hermes.plugins.memory.local import dates

NOW = datetime(2026, 3, 12, 12).timestamp()  # a Thursday

SPANS = {
    "what did we do last week": ("2026-03-02", "2026-03-09"),
    "last night": ("2026-03-11", "2026-03-12"),
    "three months ago": ("2025-12-01", "2026-01-01"),
    "letzten Dienstag": ("2026-03-10", "2026-03-11"),
    "vor zwei Wochen": ("2026-02-23", "2026-03-02"),
    "diesen Monat": ("2026-03-01", "2026-03-13"),
    "上个月": ("2026-02-01", "2026-03-01"),
    "去年": ("2025-01-01", "2026-01-01"),
    "上周二": ("2026-03-10", "2026-03-11"),
    "先週": ("2026-03-02", "2026-03-09"),
    "先週の火曜日": ("2026-03-03", "2026-03-04"),
    "先月の旅行": ("2026-02-01", "2026-03-01"),
    "3か月前": ("2025-12-01", "2026-01-01"),
    "2週間前": ("2026-02-23", "2026-03-02"),
    "昨晩": ("2026-03-11", "2026-03-12"),
    "今週": ("2026-03-09", "2026-03-13"),
    "지난주에": ("2026-03-02", "2026-03-09"),
    "지난 화요일": ("2026-03-10", "2026-03-11"),
    "작년": ("2025-01-01", "2026-01-01"),
    "3일 전": ("2026-03-09", "2026-03-10"),
    "이번 달": ("2026-03-01", "2026-03-13"),
    "la semana pasada": ("2026-03-02", "2026-03-09"),
    "el lunes pasado": ("2026-03-09", "2026-03-10"),
    "hace dos semanas": ("2026-02-23", "2026-03-02"),
    "el 14 de marzo de 2025": ("2025-03-14", "2025-03-15"),
    "le mois dernier": ("2026-02-01", "2026-03-01"),
    "lundi dernier": ("2026-03-09", "2026-03-10"),
    "il y a 2 jours": ("2026-03-10", "2026-03-11"),
    "l'année dernière": ("2025-01-01", "2026-01-01"),
    "avant-hier": ("2026-03-10", "2026-03-11"),
}


@pytest.mark.parametrize(("asked", "expected"), SPANS.items())
def test_spans_of_time_are_read(asked: str, expected: tuple[str, str]) -> None:
    """A relative time is the days that it means, seen from now."""
    found = dates.find(asked, NOW).spans
    assert [tuple(datetime.fromtimestamp(t).strftime("%Y-%m-%d") for t in span) for span in found] == [
        expected
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("in March", (3, 0)),
        ("en enero", (1, 0)),
        ("depuis janvier", (1, 0)),
        ("le 1er mars", (3, 1)),
        ("3月14日", (3, 14)),
        ("5월 3일", (5, 3)),
    ],
)
def test_days_of_any_year_are_read(asked: str, expected: tuple[int, int]) -> None:
    """A month or a day without a year is that of any year."""
    assert dates.find(asked, NOW).recurring == [expected]


@pytest.mark.parametrize(
    "asked",
    [
        "the plan for mars rovers",
        "we ordered an animal",
        "what about Tom",
        "may I ask",
        "mon ami",
        "mesa grande",
    ],
)
def test_words_that_only_look_like_times_are_left_alone(asked: str) -> None:
    """Nothing is taken out of a question that names no time."""
    found = dates.find(asked, NOW)
    assert (found.spans, found.recurring, found.rest.split()) == ([], [], asked.split())
