"""Intervals of small worlds cover as often as they say, and short ones are found."""

import math
from collections.abc import Iterator

import pytest
from bench.coverage import CUT, LEVEL, Coverage, Interval, click_intervals, clicks_world, measure

SEEDS = range(1, 41)
FALSE_ALARM = 1e-6


def counted(intervals: Iterator[Interval]) -> Coverage:
    found = Coverage()
    for _, low, high, truth in intervals:
        found.see(low, high, truth)
    return found


@pytest.mark.statistical
def test_intervals_of_the_corrected_clicks_cover_and_short_ones_do_not() -> None:
    """40 worlds with the epsilons of a grid: kept clicks of a day, their rate, the click-through,
    the dropped share and an attack, false alarm 1e-6 each. The twin: kept clicks cut to 0.6."""
    found: dict[str, Coverage] = {}
    block = {"form": "one-click", "counting_share": 0.2}
    for seed in SEEDS:
        world = {**clicks_world(seed, users=200, **block), "attacks": ["clicks.single-bit"]}
        for name, low, high, truth in click_intervals("one-click", world, seed):
            found.setdefault(name, Coverage()).see(low, high, truth)
    assert len(found) == 5
    for one in found.values():
        assert one.seeds == len(SEEDS)
        assert Coverage.p_value(one.covered, one.seeds) > FALSE_ALARM
    kept = [found[f"one-click: {name}"] for name in ("kept of a day", "kept_rate")]
    cut, seeds = sum(one.cut for one in kept), sum(one.seeds for one in kept)
    assert Coverage.p_value(cut, seeds) < FALSE_ALARM


@pytest.mark.statistical
def test_means_and_shares_cover_and_short_ones_do_not() -> None:
    """200 seeds, false alarm 1e-6 for each of five intervals; the twin as above."""
    found = measure(["shares", "means"], range(200))
    assert len(found) == 5
    for one in found.values():
        assert Coverage.p_value(one.covered, one.seeds) > FALSE_ALARM
    assert Coverage.p_value(sum(one.cut for one in found.values()), 1_000) < FALSE_ALARM


def test_an_interval_counts_if_the_truth_is_in_it_and_its_middle_part_if_it_is_there() -> None:
    inside = ("any", 0.0, 1.0, 0.5)
    edge = ("any", 0.0, 1.0, 0.5 + 1.01 * CUT / 2)
    outside = ("any", 0.0, 1.0, 1.1)
    endless = ("any", 0.0, math.inf, 9.0)
    found = counted(iter([inside, edge, outside, endless]))
    assert (found.seeds, found.covered, found.cut) == (4, 3, 2)
    assert Coverage.p_value(1, 1) == 1.0
    assert Coverage.p_value(0, 2) == pytest.approx((1 - LEVEL) ** 2)
