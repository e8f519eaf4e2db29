"""Mechanisms as printed: they cost what the audit says, and what they claim is less."""

import math

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import exact_epsilon
from noisefloor.mechanisms.faulty import (
    PrintedBinning,
    PrintedResponse,
    printed_clicks,
    printed_noisy_max,
)
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource


@pytest.mark.parametrize("size", [2, 4, 10, 512])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 16.0])
def test_lies_from_one_symbol_too_many_cost_more(size: int, epsilon: float) -> None:
    """True epsilon is epsilon + ln(L / (L - 1)) (spec 001, audit B6)."""
    mechanism = PrintedResponse(size, epsilon)
    expected = epsilon + math.log(size / (size - 1))
    assert mechanism.guarantee().epsilon == pytest.approx(expected, abs=1e-6)
    assert exact_epsilon(mechanism) == pytest.approx(expected, abs=1e-6)
    assert mechanism.guarantee().epsilon > epsilon


@pytest.mark.parametrize(("size", "extra"), [(4, 0.288), (2, 0.693)])
def test_the_extra_cost_is_the_specs_figure(size: int, extra: float) -> None:
    assert PrintedResponse(size, 1.0).guarantee().epsilon == pytest.approx(1 + extra, abs=5e-4)


def test_the_truth_is_kept_as_often_as_printed() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        power = math.exp(epsilon)
        keep = PrintedResponse(4, epsilon).keep / 2**64
        assert keep == pytest.approx(power / (power + 3), rel=1e-12)


def test_symbol_zero_is_nobodys_truth() -> None:
    mechanism = PrintedResponse(3, 1.0)
    logs = [mechanism.log_likelihood(np.array([0]), value)[0] for value in range(3)]
    assert logs == pytest.approx([math.log(mechanism.lie / 2**64)] * 3)


@pytest.mark.parametrize("size", [4, 20])
def test_printed_clicks_cost_a_user_every_bit(size: int) -> None:
    mechanism = printed_clicks(size, 1.0)
    assert mechanism.guarantee(Neighbours.BIT).epsilon == pytest.approx(1, abs=1e-6)
    assert mechanism.guarantee().epsilon == pytest.approx(size, abs=1e-6)


@pytest.mark.parametrize("high", [0.5, 1.0, 4.0])
def test_printed_noise_stays_below_twice_the_range_and_tends_to_it(high: float) -> None:
    costs = [printed_noisy_max(size, 1.0, high=high).worst for size in (2, 5, 20, 200)]
    assert costs == sorted(costs)
    assert costs[-1] <= 2 * high + 1e-6
    assert costs[-1] > 1.9 * high


@pytest.mark.parametrize("value", [-1.0, -0.999, -1 / 3, 0.0, 1.0])
def test_binning_by_ceiling_puts_the_minimum_into_a_class_of_its_own(value: float) -> None:
    mechanism = PrintedBinning(3, 20.0)
    report = mechanism.randomise(np.array([value]), SeededSource(1, "bin", str(value)))
    # At epsilon 20 a lie has probability 4e-9.
    assert report[0] == math.ceil((value + 1) * 3 / 2)


def test_class_zero_shows_the_minimum_beyond_doubt() -> None:
    mechanism = PrintedBinning(4, 1.0)
    assert np.isfinite(mechanism.log_likelihood(np.array([0]), -1.0)).all()
    assert np.isneginf(mechanism.log_likelihood(np.array([0]), -0.9)).all()
    assert math.isinf(exact_epsilon(mechanism))
    assert math.isinf(mechanism.guarantee().epsilon)
    assert "class 0" in mechanism.guarantee().reason


def test_the_maximum_falls_into_the_last_class_on_every_range() -> None:
    for tenths in range(40):
        low, high = -0.1 * tenths, 0.1 * tenths + 0.2
        for classes in range(2, 60):
            mechanism = PrintedBinning(classes, 1.0, low, high)
            assert mechanism.classify(np.array([high]))[0] == classes


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)]
)
def test_a_bad_range_is_refused(low: float, high: float) -> None:
    with pytest.raises(BadParameter):
        PrintedBinning(3, 1.0, low, high)


@pytest.mark.parametrize("high", [0.0, -1.0, math.nan])
def test_printed_noise_refuses_a_bad_range(high: float) -> None:
    with pytest.raises(BadParameter, match="high"):
        printed_noisy_max(3, 1.0, high=high)


def test_printed_noise_refuses_no_steps() -> None:
    with pytest.raises(BadParameter, match="steps"):
        printed_noisy_max(3, 1.0, high=1.0, steps=0)


@pytest.mark.parametrize("size", [1, 513, True])
def test_a_bad_size_is_refused(size: int) -> None:
    with pytest.raises(BadParameter, match="size"):
        PrintedResponse(size, 1.0)
