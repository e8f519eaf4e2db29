"""Piecewise and hybrid: closed forms of the papers, to the grid."""

import math

import numpy as np
import pytest

from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Hybrid, OneBitMean, Piecewise
from noisefloor.mechanisms.piecewise import STEPS, sums
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
VALUES = (-1.0, -0.5, 0.0, 0.25, 1.0)


def tolerance(mechanism: Piecewise) -> float:
    """Return by how much rounding the window to whole cells may move a figure, relatively."""
    return 2 / mechanism.window.width + 2 / STEPS


def distribution(mechanism: Piecewise | Hybrid, value: float) -> Floats:
    return np.exp(mechanism.log_likelihood(mechanism.outputs(), value))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("value", VALUES)
def test_mean_and_variance_are_the_papers(epsilon: float, value: float) -> None:
    """E = x, Var = x**2 / (s - 1) + (s + 3) / (3 (s - 1)**2), s = e**(eps / 2) (spec 001, A1)."""
    mechanism, s = Piecewise(epsilon), math.exp(epsilon / 2)
    chances, numbers = distribution(mechanism, value), mechanism.debias(mechanism.outputs())
    mean = chances @ numbers
    variance = chances @ numbers**2 - mean**2
    closed = value**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    assert mean == pytest.approx(value, abs=1 / STEPS)
    assert variance == pytest.approx(closed, rel=2 * tolerance(mechanism))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_total_variation_is_the_papers(epsilon: float) -> None:
    """At most 1 - e**(-eps / 2), reached for |x - x'| >= 2 e**(-eps / 2) (spec 001, section 6)."""
    mechanism = Piecewise(epsilon)
    closed = 1 - math.exp(-epsilon / 2)
    apart = 2 * math.exp(-epsilon / 2) + 4 / STEPS
    for other in (1.0, min(1.0, apart - 1)):
        distance = np.abs(distribution(mechanism, -1.0) - distribution(mechanism, other)).sum() / 2
        assert distance == pytest.approx(closed, rel=tolerance(mechanism), abs=1e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("gap", [0.02, 0.1, 0.3])
def test_total_variation_of_close_values_is_the_papers(epsilon: float, gap: float) -> None:
    """(p - p e**-eps) min(H - 1, (H + 1) |x - x'| / 2)."""
    mechanism, s = Piecewise(epsilon), math.exp(epsilon / 2)
    p, h = (s * s - s) / (2 * s + 2), (s + 1) / (s - 1)
    closed = (p - p * math.exp(-epsilon)) * min(h - 1, (h + 1) * gap / 2)
    distance = np.abs(distribution(mechanism, 0.0) - distribution(mechanism, gap)).sum() / 2
    assert distance == pytest.approx(closed, rel=tolerance(mechanism) + 4 / (gap * STEPS))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("value", VALUES)
def test_the_interval_attack_succeeds_as_often_as_the_closed_form(
    epsilon: float, value: float
) -> None:
    """Guess the values whose window has the report: right with s / (s + 1)."""
    mechanism, s = Piecewise(epsilon), math.exp(epsilon / 2)
    chances = distribution(mechanism, value)
    hit = chances[chances == chances.max()].sum()
    assert hit == pytest.approx(s / (s + 1), rel=tolerance(mechanism))
    # The guessed interval is 2 e**(-eps / 2) wide.
    width = 2 * np.count_nonzero(chances == chances.max()) / STEPS
    assert width == pytest.approx(2 / s, rel=tolerance(mechanism))


@pytest.mark.parametrize(("epsilon", "right"), [(1.0, 0.697), (10 / 3, 0.905)])
def test_the_sign_of_a_binary_value_is_right_as_often_as_the_spec_says(
    epsilon: float, right: float
) -> None:
    """1 - e**(-eps / 2) / 2 (spec 001, audit B8)."""
    mechanism = Piecewise(epsilon)
    positive = mechanism.debias(mechanism.outputs()) > 0
    assert distribution(mechanism, 1.0)[positive].sum() == pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_line_is_as_long_as_the_papers(epsilon: float) -> None:
    """Reports reach from -H to H, H = (s + 1) / (s - 1)."""
    mechanism, s = Piecewise(epsilon), math.exp(epsilon / 2)
    ends = mechanism.debias(mechanism.outputs()[[0, -1]])
    h = (s + 1) / (s - 1)
    assert ends == pytest.approx([-h, h], rel=2 * tolerance(mechanism))


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 2.0, 4.0, 8.0])
def test_the_hybrid_tosses_with_the_papers_probability(epsilon: float) -> None:
    assert Hybrid(epsilon).share / ONE == pytest.approx(1 - math.exp(-epsilon / 2))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 0.61])
def test_for_small_epsilon_the_hybrid_is_one_bit(epsilon: float) -> None:
    hybrid, one_bit = Hybrid(epsilon), OneBitMean(epsilon)
    assert hybrid.share == 0
    assert len(hybrid.outputs()) == 2
    expected = one_bit.log_likelihood(np.array([False, True]), 0.4)
    assert hybrid.log_likelihood(hybrid.outputs(), 0.4) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_hybrids_worst_variance_is_no_larger_than_either_ones(epsilon: float) -> None:
    """That is what it is for (Wang et al. 2019, section III-C)."""
    hybrid, piecewise, one_bit = Hybrid(epsilon), Piecewise(epsilon), OneBitMean(epsilon)
    cells = piecewise.debias(piecewise.outputs())
    singles = np.concatenate([cells, [-one_bit.size, one_bit.size]])[hybrid.outputs()]
    mixed = max(float(distribution(hybrid, x) @ singles**2) - x**2 for x in (0.0, 0.5, 1.0))
    alone = max(float(distribution(piecewise, x) @ cells**2) - x**2 for x in (0.0, 0.5, 1.0))
    assert mixed <= min(alone, one_bit.size**2) * (1 + 2 * tolerance(piecewise))


def test_sums_of_cells_are_exact() -> None:
    cells = np.array([0, 3, 105_000], dtype=np.uint32)
    assert sums(cells).tolist() == [105_003, 105_000**2 + 9]


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False)])
def test_cells_around_the_window_follow_the_distribution(
    factor: float, passes: bool, seed: int
) -> None:
    """n = 200 000 in 64 groups; false alarm FALSE_ALARM. The twin has 1.1 times the epsilon."""
    reports = Piecewise(2.0 * factor).randomise(
        np.full(200_000, 0.3), SeededSource(seed, "cells", f"{factor}")
    )
    mechanism = Piecewise(2.0)
    groups = mechanism.outputs() * 64 // mechanism.window.cells
    expected = np.bincount(groups, distribution(mechanism, 0.3))
    counts = np.bincount(reports.astype(np.int64) * 64 // mechanism.window.cells, minlength=64)
    assert (chi_square_p(counts, expected) > FALSE_ALARM) is passes
