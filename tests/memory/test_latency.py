"""Histograms of durations: small, exact enough, and they add up."""

from __future__ import annotations

import random

import pytest

from hermes.memory.latency import HookStats, Latency


def test_quantiles_are_right_to_an_eighth() -> None:
    """The median and the 99th percentile of ten thousand durations are near the true ones."""
    rng = random.Random(1)
    values = sorted(rng.lognormvariate(-5, 1.5) for _ in range(10_000))
    latency = Latency()
    for value in values:
        latency.add(value)
    assert latency.count == 10_000
    assert latency.quantile(0.5) == pytest.approx(values[5000], rel=0.13)
    assert latency.quantile(0.99) == pytest.approx(values[9900], rel=0.13)
    assert len(latency.buckets) < 70


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e-5, 3600.0])
def test_any_duration_has_a_place(seconds: float) -> None:
    """Nothing at all and an hour can be counted."""
    latency = Latency()
    latency.add(seconds)
    assert latency.quantile(0.5) == pytest.approx(max(seconds, 1e-5), rel=0.13)


def test_without_calls_there_is_no_quantile() -> None:
    """None, not zero."""
    assert Latency().quantile(0.5) is None


def test_adding_up_is_the_same_as_counting_together() -> None:
    """Two histograms merged are the histogram of all."""
    one, two, both = Latency(), Latency(), Latency()
    for number in range(1, 100):
        (one if number % 2 else two).add(number / 100)
        both.add(number / 100)
    one.merge(two)
    assert one == both


def test_the_younger_stats_say_what_was_last() -> None:
    """Counts add up; the last success and the last error are the latest."""
    stats = HookStats(calls=2, errors=1, last_ok=5.0, last_error="old")
    stats.merge(HookStats(calls=1, timeouts=1, last_ok=None, last_error="new"))
    assert (stats.calls, stats.errors, stats.timeouts) == (3, 1, 1)
    assert (stats.last_ok, stats.last_error) == (5.0, "new")
    assert stats.as_dict()["median"] is None
