"""Helpers of statistical tests accept the right distribution and reject one 10 % off."""

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, Floats, binomial_p, chi_square_p, ks_p, tilted

# Scale of the noise that is drawn, against the scale 1 that is claimed; and whether it passes.
BOTH_DIRECTIONS = pytest.mark.parametrize(
    ("scale", "passes"),
    [
        pytest.param(1.0, True, id="right distribution"),
        pytest.param(1.1, False, id="more noise"),
        pytest.param(0.9, False, id="less noise"),
    ],
)
EDGE = 40


def two_sided_geometric(scale: float) -> Floats:
    """Return P(k) for k in [-EDGE, EDGE], the tails being folded into the edges."""
    alpha = np.exp(-1 / scale)
    distribution = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-EDGE, EDGE + 1))
    distribution[[0, -1]] = alpha**EDGE / (1 + alpha)
    return np.asarray(distribution)


def laplace_cdf(x: Floats) -> Floats:
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_chi_square_accepts_the_right_distribution_and_rejects_ten_percent_either_way(
    seed: int, scale: float, passes: bool
) -> None:
    """n = 50 000; false alarm FALSE_ALARM."""
    generator = SeededSource(seed, "chi-square", f"{scale}").generator()
    one, other = generator.geometric(1 - np.exp(-1 / scale), size=(2, 50_000))
    noise = np.clip(one - other, -EDGE, EDGE) + EDGE
    p = chi_square_p(np.bincount(noise, minlength=2 * EDGE + 1), two_sided_geometric(1.0))
    assert (p > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_ks_accepts_the_right_distribution_and_rejects_ten_percent_either_way(
    seed: int, scale: float, passes: bool
) -> None:
    """n = 100 000; false alarm FALSE_ALARM."""
    generator = SeededSource(seed, "ks", f"{scale}").generator()
    assert (ks_p(generator.laplace(0, scale, 100_000), laplace_cdf) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_binomial_accepts_the_right_rate_and_rejects_ten_percent_either_way(
    seed: int, scale: float, passes: bool
) -> None:
    """n = 50 000; false alarm FALSE_ALARM."""
    generator = SeededSource(seed, "binomial", f"{scale}").generator()
    hits = int(np.count_nonzero(generator.random(50_000) < 0.25 * scale))
    assert (binomial_p(hits, 50_000, 0.25) > FALSE_ALARM) is passes


@pytest.mark.statistical
def test_p_values_of_a_right_distribution_are_small_as_rarely_as_they_say(seed: int) -> None:
    """2 000 samples of 1 000; false alarm FALSE_ALARM. Chi-square is the one that approximates."""
    generator = SeededSource(seed, "calibration").generator()
    distribution = np.array([0.4, 0.3, 0.2, 0.05, 0.03, 0.015, 0.003, 0.002])
    rows = generator.multinomial(1_000, distribution, size=2_000)
    small = sum(chi_square_p(row, distribution) < 0.05 for row in rows)
    assert binomial_p(small, 2_000, 0.05) > FALSE_ALARM


def test_chi_square_gives_the_tabled_value() -> None:
    # Two cells, statistic 4, one degree of freedom: twice the normal tail beyond two sigma.
    assert chi_square_p([60, 40], [0.5, 0.5]) == pytest.approx(0.04550026389635842, rel=1e-12)


def test_ks_gives_the_exact_value_for_one_draw() -> None:
    # One uniform draw at 0.9: the distance is 0.9, reached with probability 0.2.
    assert ks_p([0.9], lambda x: x) == pytest.approx(0.2, rel=1e-9)


def test_binomial_gives_the_exact_value_of_ten_bits() -> None:
    # 0, 1, 2, 8, 9 or 10 heads: 112 sequences of 1024.
    assert binomial_p(8, 10, 0.5) == pytest.approx(112 / 1024, rel=1e-12)


def test_cells_that_expect_under_five_are_pooled() -> None:
    pooled = chi_square_p([50, 44, 6], [0.5, 0.44, 0.06])
    apart = chi_square_p([50, 44, 2, 4], [0.5, 0.44, 0.03, 0.03])
    assert apart == pooled


def test_a_pool_that_expects_under_five_takes_the_next_cell_along() -> None:
    assert chi_square_p([60, 37, 3], [0.5, 0.48, 0.02]) == chi_square_p([60, 40], [0.5, 0.5])


def test_cells_that_expect_five_are_left_alone() -> None:
    assert chi_square_p([90, 0, 10], [0.9, 0.05, 0.05]) < chi_square_p([90, 10], [0.9, 0.1])


def test_an_impossible_outcome_refutes_the_distribution() -> None:
    assert chi_square_p([500, 499, 1], [0.5, 0.5, 0.0]) == 0.0


def test_cells_that_cannot_occur_and_did_not_change_nothing() -> None:
    assert chi_square_p([60, 40, 0], [0.5, 0.5, 0.0]) == chi_square_p([60, 40], [0.5, 0.5])


def test_the_order_of_cells_does_not_matter() -> None:
    one = chi_square_p([50, 44, 2, 4], [0.5, 0.44, 0.03, 0.03])
    assert one == pytest.approx(chi_square_p([4, 44, 50, 2], [0.03, 0.44, 0.5, 0.03]))


def test_too_few_draws_are_an_error_and_not_a_pass() -> None:
    with pytest.raises(ValueError, match="tests nothing"):
        chi_square_p([2, 1], [0.5, 0.5])


@pytest.mark.parametrize("distribution", [[0.5, 0.4], [0.6, 0.5], [1.1, -0.1]])
def test_probabilities_that_do_not_sum_to_one_are_refused(distribution: list[float]) -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        chi_square_p([50, 50], distribution)


def test_counts_of_other_cells_are_refused() -> None:
    with pytest.raises(ValueError, match="one count per cell"):
        chi_square_p([50, 30, 20], [0.5, 0.5])


def test_helpers_leave_their_arguments_alone() -> None:
    counts, distribution = np.array([50, 44, 2, 4]), np.array([0.5, 0.44, 0.03, 0.03])
    chi_square_p(counts, distribution)
    tilted(distribution, 1.1)
    assert counts.tolist() == [50, 44, 2, 4]
    assert distribution.tolist() == [0.5, 0.44, 0.03, 0.03]


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.1])
def test_a_tilted_distribution_is_a_distribution_wrong_by_the_factor(factor: float) -> None:
    distribution = tilted([0.25] * 4, factor)
    assert distribution.sum() == pytest.approx(1)
    assert distribution[:2] == pytest.approx(0.25 * factor)
