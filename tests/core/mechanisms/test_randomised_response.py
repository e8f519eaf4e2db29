"""Randomised response: closed forms, tables and two steps, large alphabets."""

import decimal
import itertools
import math

import numpy as np
import pytest

from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, KaryResponse, exact_epsilon
from noisefloor.mechanisms.randomised_response import count_symbols, shift_distribution
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_flip_is_the_papers_resampling(epsilon: float) -> None:
    """Resampling with p = 2 / (1 + e**eps) flips with probability p / 2."""
    assert BinaryResponse(epsilon).flip / ONE == pytest.approx(1 / (1 + math.exp(epsilon)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 10, 1024, 1025, 100_000])
def test_the_best_guess_is_right_as_often_as_the_closed_form_says(
    epsilon: float, size: int
) -> None:
    """MAP success e**eps / (e**eps + k - 1) with equal priors (spec 001, section 6)."""
    mechanism = KaryResponse(size, epsilon)
    # By symmetry each report is best explained by the symbol itself.
    best = math.exp(mechanism.log_likelihood(np.array([1]), 1)[0])
    assert best == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + size - 1), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_best_guess_with_unequal_priors(epsilon: float) -> None:
    """Sum over reports of the largest joint probability, by brute force over all guesses."""
    mechanism, prior = KaryResponse(3, epsilon), np.array([0.7, 0.2, 0.1])
    channel = np.exp([mechanism.log_likelihood(np.arange(3), value) for value in range(3)])
    joint = prior[:, None] * channel
    guesses = itertools.product(range(3), repeat=3)
    best = max(sum(joint[guess[r], r] for r in range(3)) for guess in guesses)
    assert best == pytest.approx(joint.max(axis=0).sum())
    assert best >= prior.max() - 1e-12


@pytest.mark.parametrize("size", [2, 5, 255, 256, 257, 1024, 1025, 65_536, 65_537])
def test_reports_stay_in_the_alphabet_and_reach_its_ends(size: int) -> None:
    mechanism = KaryResponse(size, 0.01)
    values = np.repeat([0, size - 1], 40_000)
    reports = mechanism.randomise(values, SeededSource(1, "alphabet", size))
    assert reports.dtype == np.min_scalar_type(size - 1)
    assert int(reports.max()) < size
    # A share of 1/size each: a fiftieth part of the alphabet is missed with e**-1600.
    assert int(reports.max()) >= size - 1 - size // 50
    assert int(reports.min()) <= size // 50


@pytest.mark.parametrize("size", [1024, 1025])
def test_both_paths_have_the_same_distribution_at_the_border(size: int) -> None:
    mechanism = KaryResponse(size, 3.0)
    assert (mechanism.distribution is not None) is (size == 1024)
    assert mechanism.keep / mechanism.lie == pytest.approx(math.exp(3.0), rel=1e-9)
    assert mechanism.keep + (size - 1) * mechanism.lie == ONE


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1000, 3000])
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False)])
def test_shifts_of_a_large_alphabet_follow_the_distribution(
    size: int, factor: float, passes: bool, seed: int
) -> None:
    """n = 300 000; false alarm FALSE_ALARM. The twin keeps with 1.1 times the epsilon."""
    values = np.arange(300_000) % size
    source = SeededSource(seed, "shift", size, f"{factor}")
    reports = KaryResponse(size, 5.0 * factor).randomise(values, source)
    shifts = np.bincount((reports.astype(np.int64) - values) % size, minlength=size)
    mechanism = KaryResponse(size, 5.0)
    distribution = np.exp(mechanism.log_likelihood(np.arange(size), 0))
    assert (chi_square_p(shifts, distribution / distribution.sum()) > FALSE_ALARM) is passes


@pytest.mark.parametrize(
    "size",
    [
        1 << 20,
        1_500_000_007,
        1 << 31,
    ],
)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_a_large_alphabet_still_meets_the_request(size: int, epsilon: float) -> None:
    mechanism = KaryResponse(size, epsilon)
    assert epsilon - 1e-6 <= exact_of_kary(mechanism) <= epsilon
    assert mechanism.guarantee().epsilon == pytest.approx(epsilon, abs=1e-6)


def exact_of_kary(mechanism: KaryResponse) -> float:
    return abs(math.log(mechanism.keep) - math.log(mechanism.lie))


@pytest.mark.parametrize("size", [1, 0, -1, 2.5, True, (1 << 31) + 1])
def test_a_bad_size_is_refused(size: int) -> None:
    with pytest.raises(BadParameter, match=r"Expected size="):
        KaryResponse(size, 1.0)


def test_counts_are_those_of_all_symbols() -> None:
    reports = np.array([0, 3, 3, 1], dtype=np.uint16)
    assert count_symbols(reports, 5).tolist() == [1, 1, 0, 2, 0]


def test_the_shift_distribution_is_the_response() -> None:
    assert shift_distribution(4, 1 << 61).weights == (5 << 61, 1 << 61, 1 << 61, 1 << 61)


def test_exact_epsilon_is_that_of_the_weights() -> None:
    mechanism = KaryResponse(5, 1.0)
    assert exact_epsilon(mechanism) == pytest.approx(math.log(mechanism.keep / mechanism.lie))


@pytest.mark.parametrize("precision", [5, 9])
def test_the_callers_decimal_precision_does_not_matter(precision: int) -> None:
    with decimal.localcontext(decimal.Context(prec=precision)):
        inside = [BinaryResponse(1.0), KaryResponse(4, 1.0), KaryResponse(2000, 1.0)]
    assert inside == [BinaryResponse(1.0), KaryResponse(4, 1.0), KaryResponse(2000, 1.0)]
