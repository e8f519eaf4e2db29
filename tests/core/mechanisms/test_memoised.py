"""Memoised response: what many periods reveal."""

import math

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, MemoisedResponse, exact_epsilon
from noisefloor.randomness import SeededSource, new_run


@pytest.mark.parametrize("ever", [0.5, 2.0, 8.0, 16.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_reveals_more_with_each_period_and_never_more_than_for_ever(
    ever: float, share: float
) -> None:
    spent = [
        MemoisedResponse(ever, share * ever, periods).guarantee().epsilon
        for periods in (1, 2, 3, 5, 10, 100, 1000)
    ]
    assert spent == sorted(spent)
    assert spent[0] <= share * ever
    assert spent[0] == pytest.approx(share * ever, abs=1e-6)
    assert spent[-1] <= ever


def test_in_the_long_run_the_permanent_answer_is_known() -> None:
    mechanism = MemoisedResponse(2.0, 1.0, 1000)
    assert mechanism.guarantee().epsilon == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("periods", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("ever", [0.5, 2.0, 8.0])
def test_the_guarantee_is_the_exact_ratio_of_all_rows(periods: int, ever: float) -> None:
    mechanism = MemoisedResponse(ever, ever / 2, periods)
    assert exact_epsilon(mechanism) == pytest.approx(mechanism.guarantee().epsilon, abs=1e-10)


def test_the_same_memory_serves_every_period() -> None:
    """Memorise once, report twice: as two periods of one call would."""
    mechanism = MemoisedResponse(2.0, 1.0)
    memory = mechanism.memorise(np.arange(1000) % 2, SeededSource(1, "device"))
    first = mechanism.report(memory, SeededSource(1, "period", 0))
    second = mechanism.report(memory, SeededSource(1, "period", 1))
    assert not np.array_equal(first, second)


def test_one_period_is_to_memorise_and_to_report() -> None:
    mechanism, values = MemoisedResponse(2.0, 1.0), np.arange(1000) % 2
    with new_run():
        whole = mechanism.randomise(values, SeededSource(1, "device"))
    with new_run():
        source = SeededSource(1, "device")
        steps = mechanism.report(mechanism.memorise(values, source), source)
    assert np.array_equal(whole, steps)


def test_fresh_reports_would_reveal_the_bit_and_memoised_ones_do_not() -> None:
    """Spec 003, audit A8: thirty fresh reports cost thirty times epsilon."""
    fresh = 30 * BinaryResponse(1.0).guarantee().epsilon
    assert fresh == pytest.approx(30, abs=1e-6)
    assert MemoisedResponse(2.0, 1.0, 30).guarantee().epsilon <= 2.0


def test_majority_of_fresh_reports_is_right_as_often_as_the_spec_says() -> None:
    """0.731 for one period, 0.911 for 7, 0.996 for 30 (with ties tossed), from the likelihood."""
    right = math.exp(BinaryResponse(1.0).log_likelihood(np.array([True]), True)[0])
    for periods, expected in ((1, 0.731), (7, 0.911), (30, 0.996)):
        distribution = [
            math.comb(periods, hits) * right**hits * (1 - right) ** (periods - hits)
            for hits in range(periods + 1)
        ]
        success = sum(
            chance * (1.0 if 2 * hits > periods else 0.5 if 2 * hits == periods else 0.0)
            for hits, chance in enumerate(distribution)
        )
        assert success == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("ever", "first"), [(1.0, 1.0), (1.0, 2.0)])
def test_the_first_report_has_to_cost_less_than_all(ever: float, first: float) -> None:
    with pytest.raises(BadParameter, match="epsilon_first"):
        MemoisedResponse(ever, first)


@pytest.mark.parametrize("ever", [0, -1.0, math.nan, math.inf, True])
def test_a_bad_permanent_epsilon_is_named(ever: float) -> None:
    with pytest.raises(BadParameter, match="epsilon_permanent"):
        MemoisedResponse(ever, 0.5)


@pytest.mark.parametrize("periods", [0, -1, 1.5, True, (1 << 16) + 1])
def test_a_bad_number_of_periods_is_refused(periods: int) -> None:
    with pytest.raises(BadParameter, match="periods"):
        MemoisedResponse(2.0, 1.0, periods)


def test_too_many_rows_are_not_listed() -> None:
    with pytest.raises(BadParameter, match="listed"):
        MemoisedResponse(2.0, 1.0, 17).outputs()
