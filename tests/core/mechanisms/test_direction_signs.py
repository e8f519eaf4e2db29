"""Leaning signs and axes: gains against the ideal, exact distributions, and what few places do to
them."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from enumeration import enumerate_distribution, likelihoods
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import AxisSigns, DirectionSigns, exact_epsilon
from noisefloor.mechanisms.cosets import Coset, expected_tops, minus_signs
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
Mechanisms = DirectionSigns | AxisSigns


def unit_rows(count: int, dimension: int, name: str = "rows") -> NDArray[np.float32]:
    rows = SeededSource(7, "directions", name).generator().normal(size=(count, dimension))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None], dtype=np.float32)


def ideal_gain(epsilon: float) -> float:
    """Return the largest mean product of PrivUnit's Gaussian form, over its threshold."""

    def loss(threshold: float) -> float:
        tail = stats.norm.sf(threshold)
        whole = tail + (1 - tail) * math.exp(-epsilon)
        return float(-stats.norm.pdf(threshold) * (1 - math.exp(-epsilon)) / whole)

    return float(-optimize.minimize_scalar(loss, bounds=(-1, 6), method="bounded").fun)


# Gains.


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_gain_is_near_that_of_the_ideal(epsilon: float) -> None:
    """0.969 at epsilon 8, with 512 candidates; 0.986 and more up to epsilon 4, with 128."""
    assert 0.96 < DirectionSigns(190, epsilon).gain / ideal_gain(epsilon) <= 1
    assert DirectionSigns(190, epsilon).rows <= 256


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("dimension", "length"), [(190, 0), (20, 256)])
def test_the_mean_product_is_the_gain(
    epsilon: float, dimension: int, length: int, seed: int
) -> None:
    """n = 20 000; one product has variance 1 at most about its mean: five standard errors and 1 %.

    The twin is the gain of an epsilon a fifth larger, from epsilon 1 to 4.
    """
    mechanism, n = DirectionSigns(dimension, epsilon, length), 20_000
    rows = unit_rows(n, dimension)
    reports = mechanism.randomise(rows, SeededSource(seed, "gain", str(epsilon), dimension))
    singles = 2.0 * reports - 1
    if length:
        spread = np.array([mechanism.estimate(row, 1).value for row in np.eye(length, dtype=int)])
        rest = mechanism.estimate(np.zeros(length, dtype=int), 1).value
        singles = mechanism.gain * (reports @ (spread - rest) + rest)
    product = float((singles * rows).sum(axis=1).mean())
    margin = 5 / math.sqrt(n) + 0.01 * mechanism.gain
    assert abs(product - mechanism.gain) < margin
    if 1 <= epsilon <= 4:
        assert abs(product - DirectionSigns(dimension, 1.2 * epsilon).gain) > margin


def test_the_sums_of_the_largest_are_those_of_normal_numbers() -> None:
    """The sum of all is the mean; the largest of two |N| is 2 / sqrt(pi) on average."""
    assert expected_tops(64, 1)[-1] == pytest.approx(64 * math.sqrt(2 / math.pi), rel=1e-6)
    assert expected_tops(64, 2)[-1] == pytest.approx(0, abs=1e-4)
    assert expected_tops(2, 1)[0] == pytest.approx(2 / math.sqrt(math.pi), rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_top_set_is_the_best_of_its_neighbours(epsilon: float) -> None:
    best = DirectionSigns(50, epsilon)
    for top in {max(1, best.top - 1), min(best.rows, best.top + 1)}:
        assert DirectionSigns(50, epsilon, top=top).gain <= best.gain


def test_few_places_are_reported_with_another_gain_unless_spread() -> None:
    """From the exact distribution: at epsilon 4 a single place gains 0.53 of what is stated, D =
    8.

    Spread over 64 places it is within 2 % (n = 40 000, five standard errors of 0.5 %).
    """
    mechanism = DirectionSigns(8, 4.0)
    single = np.eye(8)[0]
    outputs = mechanism.outputs()
    distribution = np.exp(mechanism.log_likelihood(outputs, single))
    lean = distribution @ (2.0 * outputs - 1)
    assert lean[0] / mechanism.gain == pytest.approx(0.53, abs=0.01)
    assert np.abs(lean[1:]).max() < 1e-12
    spread = DirectionSigns(8, 4.0, 64)
    reports = spread.randomise(np.repeat(single[None], 40_000, 0), SeededSource(1, "single"))
    estimate = spread.estimate(spread.tally(reports), len(reports))
    assert estimate.value[0] == pytest.approx(1, abs=0.02 + 5 * estimate.standard_error[0])


# The distribution.


@pytest.mark.parametrize("make", [DirectionSigns, AxisSigns])
@pytest.mark.parametrize(("dimension", "rows"), [(5, 8), (6, 8), (8, 8)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_worst_ratio_is_the_guarantee(
    make: type[Mechanisms], dimension: int, rows: int, epsilon: float
) -> None:
    mechanism = make(dimension, epsilon, rows=rows)
    worst = exact_epsilon(mechanism)
    assert worst == pytest.approx(mechanism.guarantee().epsilon, abs=1e-9)
    assert mechanism.guarantee().epsilon == pytest.approx(epsilon, abs=1e-6)
    outputs = mechanism.outputs()
    found = unit_rows(12, dimension, "pairs")
    logs = [
        mechanism.log_likelihood(outputs, row)
        for row in (*found, 0 * found[0], np.eye(dimension)[0])
    ]
    for one, other in itertools.combinations(logs, 2):
        assert np.abs(one - other).max() <= worst + 1e-9


@pytest.mark.parametrize("vector", [(2, 1, 0.5, 0.25), (1, 1, 0, 0), (1, -1, 1, 1), (0, 0, 0, 0)])
@pytest.mark.parametrize(
    "mechanism",
    [DirectionSigns(4, 1.0, rows=4), AxisSigns(4, 1.0), DirectionSigns(3, 1.0, 4, rows=2)],
)
def test_the_enumerated_distribution_is_the_stated_one_with_ties_and_spread(
    mechanism: Mechanisms, vector: tuple[float, ...]
) -> None:
    row = np.array(vector[: mechanism.dimension]) / 3
    distribution = enumerate_distribution(lambda source: mechanism.randomise(row[None], source))
    stated = likelihoods(mechanism, mechanism.outputs(), row)
    for report, log in stated.items():
        assert float(distribution.get(report, Fraction(0))) == pytest.approx(
            math.exp(log), rel=1e-10
        )


def test_every_draw_of_the_signs_keeps_the_bound_by_itself() -> None:
    """Given s, a candidate has one of two chances, whatever the vector: the proof's one step."""
    mechanism = DirectionSigns(4, 1.0, rows=8)
    low = Fraction(ONE - mechanism.hold, ONE * (16 - mechanism.top))
    high = Fraction(mechanism.hold, ONE * mechanism.top)

    class GivenSigns:
        """A source whose signs are given and whose other draws are listed."""

        def __init__(self, source: Any) -> None:
            self.source = source

        def stage(self, name: str) -> Any:
            return self if name == "signs" else self.source

        def bernoulli(self, threshold: int, count: int) -> NDArray[np.bool_]:
            return np.array([True, False, False, True])

    for vector in ((2, 1, 0.5, 0.25), (1, 1, 0, 0), (0, 0, 0, 0), (-1, 1, 1, 1)):
        row = np.array([vector]) / max(math.hypot(*vector), 1.0)
        found = enumerate_distribution(lambda s, row=row: mechanism.randomise(row, GivenSigns(s)))  # type: ignore[misc,arg-type]  # a source as far as it is used
        assert len(found) == 16
        assert set(found.values()) <= {low, high}
        assert sum(chance == high for chance in found.values()) == mechanism.top


def test_a_top_set_of_another_size_would_be_detected() -> None:
    """The twin: a guarantee for the weight of one more candidate is below the exact ratio."""
    mechanism = DirectionSigns(6, 1.0, rows=8)
    object.__setattr__(mechanism, "top", mechanism.top + 1)
    assert exact_epsilon(mechanism) < 1 - 1e-3
    object.__setattr__(mechanism, "top", mechanism.top - 2)
    assert exact_epsilon(mechanism) > 1 + 1e-3


def test_zeros_give_fair_signs() -> None:
    for mechanism in (DirectionSigns(4, 3.0), AxisSigns(4, 3.0)):
        logs = mechanism.log_likelihood(mechanism.outputs(), np.zeros(4))
        assert logs == pytest.approx(-4 * math.log(2))


def test_a_short_vector_is_a_mixture_of_forwards_and_backwards() -> None:
    mechanism, vector = DirectionSigns(4, 2.0), np.array([0.8, 0.48, 0.32, 0.16])
    vector /= np.linalg.norm(vector)
    outputs = mechanism.outputs()
    forwards, backwards, half = (
        np.exp(mechanism.log_likelihood(outputs, part * vector)) for part in (1, -1, 0.5)
    )
    assert half == pytest.approx(0.75 * forwards + 0.25 * backwards, rel=1e-6)


def test_an_axis_has_no_forwards() -> None:
    mechanism, vector = AxisSigns(5, 2.0), np.array([0.8, 0.4, -0.2, 0.1, 0.05])
    outputs = mechanism.outputs()
    one = mechanism.log_likelihood(outputs, vector)
    assert np.array_equal(one, mechanism.log_likelihood(outputs, -vector))
    assert np.array_equal(one, mechanism.log_likelihood(~outputs, vector))
    assert np.array_equal(one, mechanism.log_likelihood(outputs, vector / 2))


# Estimates.


@pytest.mark.statistical
def test_the_mean_of_many_directions_is_found(seed: int) -> None:
    """n = 100 000, D = 30: the squared errors are chi-square; false alarm FALSE_ALARM."""
    mechanism, n = DirectionSigns(30, 1.0, 64), 100_000
    rows = unit_rows(n, 30) + np.linspace(-0.5, 0.5, 30, dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    reports = mechanism.randomise(rows, SeededSource(seed, "mean"))
    found = mechanism.estimate(mechanism.tally(reports), n)
    squares = ((found.value - rows.mean(axis=0)) / found.standard_error) ** 2
    assert stats.chi2.sf(squares.sum(), 30) > FALSE_ALARM
    wrong = ((found.value - 0.7 * rows.mean(axis=0)) / found.standard_error) ** 2
    assert stats.chi2.sf(wrong.sum(), 30) < FALSE_ALARM


@pytest.mark.statistical
def test_the_mean_of_products_is_found_pair_by_pair(seed: int) -> None:
    """n = 60 000, 12 places spread over 128: chi-square over 66 pairs; twin 30 % off."""
    mechanism, n = AxisSigns(12, 2.0, 128), 60_000
    rows = unit_rows(n, 12, "pairs") + np.linspace(-0.6, 0.6, 12, dtype=np.float32)
    rows *= np.where(np.arange(n) % 2, 1, -1)[:, None]
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    reports = mechanism.randomise(rows, SeededSource(seed, "pairs"))
    found = mechanism.estimate(mechanism.tally(reports), n)
    truth = (rows.T @ rows / n)[np.triu_indices(12, 1)]
    squares = ((found.value - truth) / found.standard_error) ** 2
    assert stats.chi2.sf(squares.sum(), 66) > FALSE_ALARM
    wrong = ((found.value - 0.7 * truth) / found.standard_error) ** 2
    assert stats.chi2.sf(wrong.sum(), 66) < FALSE_ALARM


# Candidates.


@pytest.mark.parametrize("mechanism", [DirectionSigns(6, 1.0), AxisSigns(6, 1.0)])
def test_the_standard_error_is_that_of_fair_signs_over_the_gain(mechanism: Mechanisms) -> None:
    """If every report has a one in each cell, the estimate is what a one of a draw stands for."""
    n = 10_000
    cells = len(mechanism.tally(np.ones((1, 6), dtype=np.bool_)))
    one = mechanism.estimate(np.full(cells, n), n).value
    even = mechanism.estimate(np.full(cells, n // 2), n)
    assert even.value == pytest.approx(0.0, abs=1e-12)
    assert even.standard_error == pytest.approx(one / math.sqrt(n))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (4, 3), (64, 7), (64, 20), (8, 50)])
def test_candidates_differ_and_are_a_group(rows: int, columns: int) -> None:
    minus = minus_signs(rows, columns)
    assert len(np.unique(np.concatenate([minus, ~minus]), axis=0)) == 2 * rows
    for one, other in itertools.product(range(min(rows, 8)), repeat=2):
        assert np.array_equal(minus[one] ^ minus[other], minus[one ^ other])


@pytest.mark.parametrize(
    ("dimension", "length", "rows"), [(5, 5, 16), (190, 190, 64), (20, 64, 64), (1000, 1000, 256)]
)
def test_products_are_whole_numbers_that_single_precision_holds(
    dimension: int, length: int, rows: int
) -> None:
    coset = Coset(dimension, length, rows)
    vectors = np.concatenate(
        [unit_rows(20, dimension), np.full((1, dimension), dimension**-0.5, dtype=np.float32)]
    )
    whole = coset.whole(vectors)
    assert np.abs(whole.astype(np.float64)).sum(axis=1).max() < 1 << 21
    minus = SeededSource(1, "signs").generator().random(whole.shape) < 0.5
    signs = 1 - 2 * minus_signs(rows, length).astype(np.int64)
    exact = (whole.astype(np.int64) * (1 - 2 * minus.astype(np.int64))) @ signs.T
    assert np.array_equal(coset.products(whole.copy(), minus), exact)


def test_reports_do_not_depend_on_who_reports_beside() -> None:
    rows = unit_rows(3000, 40)
    for mechanism in (DirectionSigns(40, 1.0), AxisSigns(40, 4.0, 64)):
        reports = []
        for count in (3000, 7):
            with new_run():
                reports.append(mechanism.randomise(rows[:count], SeededSource(1, "beside")))
        assert np.array_equal(reports[0][:7], reports[1])


# Refusals.


@pytest.mark.parametrize("name", ["length", "rows"])
@pytest.mark.parametrize("make", [DirectionSigns, AxisSigns])
def test_what_is_no_power_of_two_is_refused(name: str, make: type[Mechanisms]) -> None:
    with pytest.raises(BadParameter, match=name):
        make(20, 1.0, **{name: 48})


def test_parameters_out_of_range_are_refused() -> None:
    for bad in (0, -1, 2.0, True):
        with pytest.raises(BadParameter, match="dimension"):
            DirectionSigns(bad, 1.0)  # type: ignore[arg-type]  # the fault
    with pytest.raises(BadParameter, match="top"):
        DirectionSigns(20, 1.0, rows=16, top=17)
    with pytest.raises(BadParameter, match="length"):
        DirectionSigns(20, 1.0, 16)
    with pytest.raises(BadParameter, match="rows"):
        AxisSigns(20, 1.0, rows=16)
    with pytest.raises(BadParameter, match="listed"):
        DirectionSigns(20, 1.0).outputs()


def test_a_vector_that_is_too_long_is_refused_as_a_whole() -> None:
    with pytest.raises(OutOfDomain, match="length at most 1"):
        DirectionSigns(2, 1.0).randomise(np.array([[0.8, 0.8]]), SeededSource(1, "long"))


@pytest.mark.parametrize("make", [DirectionSigns, AxisSigns])
def test_relations_without_a_proof_have_no_guarantee(make: type[Mechanisms]) -> None:
    assert not make(4, 1.0).guarantee(Neighbours.RECORD_ADD_REMOVE).is_finite
