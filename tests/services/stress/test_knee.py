"""The search for the knee on made-up services."""

import math
from collections import Counter

import pytest

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor_services.stress.knee import Knee, KneeSearch, StepAtRate, find_knee

SEARCH = KneeSearch(start=100, most=100_000)


def found(step: StepAtRate, search: KneeSearch = SEARCH, seed: int = 1) -> Knee:
    return find_knee(search, step, SeededSource(seed, "order"))


@pytest.mark.parametrize("knee", [101.0, 137.0, 800.0, 1_234.5, 9_999.0, 54_321.0])
def test_the_interval_holds_the_knee_of_a_service_and_is_within_ten_percent(knee: float) -> None:
    one = found(lambda rate, _: rate <= knee)
    assert one.is_found
    assert one.low <= knee < one.high
    assert one.high / one.low <= 1.1 * (1 + 1e-9)


def test_each_rate_that_decides_is_run_three_times_and_others_once() -> None:
    one = found(lambda rate, _: rate <= 1_234.5)
    for rate, _, runs in one.runs:
        assert runs == (3 if one.low / 2 < rate < 2 * one.high else 1)
    assert {100.0, 200.0} <= {rate for rate, _, runs in one.runs if runs == 1}


def test_repeats_come_in_another_order_than_the_first_runs() -> None:
    called: list[float] = []

    def step(rate: float, _: int) -> bool:
        called.append(rate)
        return rate <= 1_234.5

    one = found(step)
    first = list(dict.fromkeys(called))
    again = called[len(first) :]
    near = [rate for rate, _, runs in one.runs if runs == 3]
    assert Counter(again) == Counter({rate: 2 for rate in near})
    orders = [again[: len(near)], again[len(near) :]]
    assert orders[0] != orders[1]
    assert orders[0] != [rate for rate in first if rate in near]


def test_a_step_is_given_the_number_of_its_repeat() -> None:
    seen: Counter[tuple[float, int]] = Counter()

    def step(rate: float, repeat: int) -> bool:
        seen[rate, repeat] += 1
        return rate <= 300

    found(step)
    assert set(seen.values()) == {1}


def test_one_bad_run_of_three_does_not_move_the_interval() -> None:
    """The first run at 800/s, where the service is fine, is disturbed from outside."""

    def step(rate: float, repeat: int) -> bool:
        return rate <= 1_234.5 and not (rate == 800 and repeat == 0)

    one = found(step)
    assert one.low <= 1_234.5 < one.high
    assert (800.0, 2, 3) in one.runs


def test_two_bad_runs_of_three_do_move_it() -> None:
    """The twin: a service that breaks at 800/s in most runs has its knee below."""
    one = found(lambda rate, repeat: rate <= 1_234.5 and not (rate == 800 and repeat < 2))
    assert one.high <= 800


def test_one_good_run_by_chance_does_not_count() -> None:
    one = found(lambda rate, repeat: rate <= 500 or (rate == 800 and repeat == 0))
    assert one.low <= 500 < one.high
    assert one.high / one.low <= 1.1 * (1 + 1e-9)


def test_a_service_that_holds_at_every_rate_gives_a_lower_bound() -> None:
    one = found(lambda rate, _: True, KneeSearch(start=100, most=1_000))
    assert (one.low, one.high) == (1_000, math.inf)
    assert not one.is_found


def test_a_service_that_holds_at_no_rate_has_no_knee() -> None:
    one = found(lambda rate, _: False)
    assert one.low == 0
    assert not one.is_found
    assert one.high == 12.5  # an eighth of the first rate


def test_a_first_rate_that_is_too_high_is_halved() -> None:
    one = found(lambda rate, _: rate <= 30)
    assert one.low <= 30 < one.high
    assert one.is_found


@pytest.mark.parametrize(
    "options",
    [
        {"start": 0, "most": 10},
        {"start": 11, "most": 10},
        {"start": 1, "most": 10, "repeats": 2},
        {"start": 1, "most": 10, "ratio": 1.0},
    ],
)
def test_a_search_that_breaks_a_rule_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadParameter):
        KneeSearch(**options)  # type: ignore[arg-type]  # repeats is an integer here
