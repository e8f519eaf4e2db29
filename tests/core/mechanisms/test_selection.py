"""Permute-and-flip, exponential mechanism and argmax response: closed forms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import (
    ArgmaxResponse,
    ExponentialMechanism,
    KaryResponse,
    PermuteAndFlip,
)

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SIZES = (2, 5, 10, 50)
AT_TWICE_THE_RANGE = (0.500, 0.796, 0.897, 0.979)
"""Exact epsilon of weights e**(s / (2 R)) for 2, 5, 10, 50 ads (spec 003, audit A5)."""


@pytest.mark.parametrize("place", range(4))
def test_the_textbook_rate_costs_what_the_spec_says(place: int) -> None:
    """Asked for the exact epsilon, calibration finds the textbook's rate, 1 / 2."""
    mechanism = ExponentialMechanism(SIZES[place], AT_TWICE_THE_RANGE[place])
    rate = math.log(mechanism.weights[-1] / mechanism.weights[0])
    assert rate == pytest.approx(0.5, abs=1.5e-3)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_exponential_mechanism_meets_the_request(size: int, epsilon: float) -> None:
    mechanism = ExponentialMechanism(size, epsilon)
    worst, best = Fraction(mechanism.weights[0]), Fraction(mechanism.weights[-1])
    up = best / (best + (size - 1) * worst)
    down = worst / (worst + (size - 1) * best)
    promised = mechanism.guarantee().epsilon
    assert math.log(up / down) == pytest.approx(promised, abs=1e-12)
    assert epsilon - 1e-6 <= promised <= epsilon


@pytest.mark.parametrize("size", [2, 7, 1024])
def test_weights_are_an_exponential_of_the_score(size: int) -> None:
    mechanism = ExponentialMechanism(size, 2.0)
    logs = np.log(np.array(mechanism.weights, dtype=float))
    assert np.diff(logs) == pytest.approx(logs[-1] / 64 - logs[0] / 64, rel=1e-6)
    assert mechanism.weights[-1] == 1 << 52


@pytest.mark.parametrize("row", [(0, 0, 0), (3, 0, 0), (1, 2, 3), (3, 3, 0), (0, 1, 0, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_permute_and_flip_is_what_the_paper_describes(
    row: tuple[int, ...], epsilon: float
) -> None:
    """Over all orders: the first that accepts; the best always does."""
    mechanism = PermuteAndFlip(len(row), epsilon, high=3.0, steps=3)
    accept = [Fraction(mechanism.accept[max(row) - score], 2**64) for score in row]
    chances = [Fraction(0)] * len(row)
    for order in itertools.permutations(range(len(row))):
        left = Fraction(1, math.factorial(len(row)))
        for candidate in order:
            chances[candidate] += left * accept[candidate]
            left *= 1 - accept[candidate]
    assert sum(chances) == 1
    expected = [float(chance) for chance in chances]
    assert mechanism.chances(np.array(row, dtype=float)) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_permute_and_flip_meets_the_request(size: int, epsilon: float) -> None:
    promised = PermuteAndFlip(size, epsilon).guarantee().epsilon
    assert epsilon - 1e-6 <= promised <= epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-5])
def test_permute_and_flip_meets_a_tiny_request(epsilon: float) -> None:
    assert PermuteAndFlip(5, epsilon).guarantee().epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-5])
def test_the_exponential_mechanism_meets_a_tiny_request(epsilon: float) -> None:
    assert ExponentialMechanism(5, epsilon).guarantee().epsilon <= epsilon


@pytest.mark.parametrize(("size", "right"), [(10, 0.859), (50, 0.527)])
def test_argmax_response_names_the_best_as_often_as_the_spec_says(size: int, right: float) -> None:
    """Spec 003, section 7, epsilon 4."""
    row = [1.0] + [0.0] * (size - 1)
    best = math.exp(ArgmaxResponse(size, 4.0).log_likelihood(np.array([0]), row)[0])
    assert best == pytest.approx(right, abs=1e-3)


def test_argmax_response_is_kary_response_on_the_best() -> None:
    mechanism, response = ArgmaxResponse(4, 1.0), KaryResponse(4, 1.0)
    logs = mechanism.log_likelihood(np.arange(4), [0.1, 0.9, 0.9, 0.2])
    assert np.array_equal(logs, response.log_likelihood(np.arange(4), 1))
    assert mechanism.guarantee() == response.guarantee()


@pytest.mark.parametrize("size", [1, 1025, True, 2.0])
def test_the_exponential_mechanism_refuses_a_bad_size(size: int) -> None:
    with pytest.raises(BadParameter, match="size"):
        ExponentialMechanism(size, 1.0)


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism, ArgmaxResponse])
def test_a_range_without_width_is_refused(kind: type[PermuteAndFlip]) -> None:
    with pytest.raises(BadParameter, match="high"):
        kind(3, 1.0, low=1.0, high=1.0)
