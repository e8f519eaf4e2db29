"""Noise of cells: its exact distribution, and the exact cost of what one record changes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from enumeration import EnumeratingSource, Script
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.gaussian import GaussianTable, excess
from noisefloor.privacy import Neighbours, TrustModel
from noisefloor.publication import cell_noise
from noisefloor.publication.cell_noise import (
    LARGEST_SIGMA,
    LEAST_DELTA,
    GaussianCells,
    LaplaceCells,
    pair_excess,
)
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
MOVES = {ADD: [(1, 0), (-1, 0)], SWAP: [(1, -1), (-1, 1), (0, 0)]}
"""What one record can do to two cells."""


def enumerated(noise: GaussianCells, counts: tuple[int, int]) -> dict[tuple[int, int], Fraction]:
    """Return the exact distribution of two released cells, by every path of ``add``."""
    script, distribution, goes_on = Script(1 << 20), {}, True
    while goes_on:
        drawn = noise.add(np.array(counts), EnumeratingSource(script))
        distribution[int(drawn[0]), int(drawn[1])] = script.chance
        goes_on = script.advance()
    assert sum(distribution.values()) == 1
    return distribution


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize(("epsilon", "delta"), [(6.0, 1e-3), (3.0, 0.05), (2.0, 0.3)])
def test_the_enumerated_release_keeps_to_delta_and_wastes_little(
    neighbours: Neighbours, epsilon: float, delta: float
) -> None:
    noise = GaussianCells(epsilon, delta, neighbours)
    first = enumerated(noise, (5, 5))
    promised = noise.guarantee
    assert (promised.delta, promised.model) == (delta, TrustModel.CENTRAL)
    assert epsilon - 1e-2 < promised.epsilon <= epsilon
    factor, low = Fraction(math.exp(promised.epsilon)), Fraction(math.exp(promised.epsilon - 0.02))
    reached = Fraction(0)
    for move in MOVES[neighbours]:
        other = enumerated(noise, (5 + move[0], 5 + move[1]))
        for one, two in ((first, other), (other, first)):
            gaps = (chance - factor * two.get(at, Fraction(0)) for at, chance in one.items())
            assert sum(max(gap, Fraction(0)) for gap in gaps) <= Fraction(delta)
            less = (chance - low * two.get(at, Fraction(0)) for at, chance in one.items())
            reached = max(reached, sum((max(gap, Fraction(0)) for gap in less), Fraction(0)))
    assert reached > Fraction(delta)  # less would be claimed too little


def test_the_likelihood_is_the_enumerated_distribution() -> None:
    noise = GaussianCells(3.0, 0.05, SWAP)
    counts = np.array([5, 7])
    for at, chance in enumerated(noise, (5, 7)).items():
        found = noise.log_likelihood(np.array(at), counts)
        assert math.exp(found) == pytest.approx(float(chance), rel=1e-9)
    reach = noise.table.reach
    for step, is_possible in ((reach, True), (reach + 1, False), (500, False)):
        for moved in (np.array([5 + step, 7]), np.array([5, 7 - step])):
            assert math.isfinite(noise.log_likelihood(moved, counts)) is is_possible


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_pair_excess_is_the_sum_over_all_pairs(sigma: float, epsilon: float) -> None:
    """Brute force in fractions, from the integer weights."""
    table = GaussianTable(sigma)
    weights = dict(
        zip(range(-table.reach, table.reach + 1), table.distribution.weights, strict=True)
    )
    factor = Fraction(math.exp(epsilon))
    whole = Fraction(0)
    for j, k in itertools.product(range(-table.reach - 1, table.reach + 2), repeat=2):
        here = weights.get(j, 0) * weights.get(k, 0)
        moved = weights.get(j - 1, 0) * weights.get(k + 1, 0)
        whole += max(here - factor * moved, Fraction(0))
    exact = float(whole / (ONE * ONE))
    assert exact <= pair_excess(table.chances, epsilon) <= exact + 3e-12


def test_two_cells_are_the_square_root_of_two_apart() -> None:
    """At sigma 400 the closed form of Balle and Wang (2018, theorem 8) holds to one in 10**4."""
    sigma, epsilon = 400.0, 0.005
    mu = math.sqrt(2) / sigma
    tail = math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    closed = ndtr(mu / 2 - epsilon / mu) - tail
    assert pair_excess(GaussianTable(sigma).chances, epsilon) == pytest.approx(closed, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (8.0, 0.5)])
def test_gaussian_costs_are_met_and_less_noise_is_caught(epsilon: float, delta: float) -> None:
    def cost(neighbours: Neighbours, sigma: float) -> float:
        chances = GaussianTable(sigma).chances
        return excess(chances, epsilon, 1) if neighbours is ADD else pair_excess(chances, epsilon)

    for neighbours in (ADD, SWAP):
        noise = GaussianCells(epsilon, delta, neighbours)
        assert cost(neighbours, noise.table.sigma) <= delta
        assert epsilon - 1e-3 < noise.guarantee.epsilon <= epsilon
        assert cost(neighbours, noise.table.sigma * 0.99) > delta


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0, 20.0])
def test_the_laplace_ratio_is_within_the_guarantee_and_reaches_it(
    neighbours: Neighbours, epsilon: float
) -> None:
    noise = LaplaceCells(epsilon, neighbours)
    promised = noise.guarantee
    assert (promised.delta, promised.neighbours, promised.model) == (
        0,
        neighbours,
        TrustModel.CENTRAL,
    )
    assert epsilon - 1e-6 <= promised.epsilon <= epsilon
    counts, reach = np.array([9, 9]), 3 << noise.mechanism.noise.magnitude.bits
    edges = [-reach, -9, -2, -1, 0, 1, 2, 9, reach]
    worst = 0.0
    for move, one, two in itertools.product(MOVES[neighbours], edges, edges):
        released = counts + np.array([one, two])
        here = noise.log_likelihood(released, counts)
        there = noise.log_likelihood(released, counts + np.array(move))
        worst = max(worst, abs(here - there))
    assert promised.epsilon - 1e-6 < worst <= promised.epsilon + 1e-10


def test_a_substitution_charged_as_one_cell_is_caught() -> None:
    """The noise for one changed cell costs twice as much when two change."""
    noise = LaplaceCells(1.0, ADD)
    counts = np.array([9, 9])
    swapped = counts + np.array([1, -1])
    gap = noise.log_likelihood(counts, counts) - noise.log_likelihood(counts, swapped)
    assert gap > 1.9


@pytest.mark.parametrize("neighbours", [one for one in Neighbours if one not in (ADD, SWAP)])
def test_a_relation_without_a_proof_is_refused(neighbours: Neighbours) -> None:
    for make in (lambda: LaplaceCells(1.0, neighbours), lambda: GaussianCells(1, 0.1, neighbours)):
        with pytest.raises(BadParameter, match="record-substitute"):
            make()


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0.1), (-1, 0.1), (math.nan, 0.1), (1, 0), (1, 1), (1, 1e-12), (1e-6, 1e-6), (1e6, 0.1)],
)
def test_bad_costs_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BadParameter):
        GaussianCells(epsilon, delta, SWAP)


def test_the_least_delta_and_the_largest_sigma_are_allowed() -> None:
    assert GaussianCells(4.0, LEAST_DELTA, ADD).guarantee.delta == LEAST_DELTA
    assert cell_noise._bounded(LARGEST_SIGMA, 1.0) == LARGEST_SIGMA
    with pytest.raises(BadParameter, match="epsilon"):
        cell_noise._bounded(math.nextafter(LARGEST_SIGMA, math.inf), 1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.9, False)])
def test_released_cells_follow_the_textbook(
    neighbours: Neighbours, distribution: str, factor: float, passes: bool, seed: int
) -> None:
    """n = 200 000 cells; false alarm FALSE_ALARM. The twin asks for a tenth less epsilon."""
    requested = 0.5 * factor
    noise = (
        LaplaceCells(requested, neighbours)
        if distribution == "laplace"
        else GaussianCells(requested, 1e-6, neighbours)
    )
    counts = np.full((400, 500), 7)
    source = SeededSource(seed, neighbours.value, distribution, f"{factor}")
    drawn = (noise.add(counts, source) - counts).reshape(-1)
    edge = 60
    at = np.arange(-edge * 20, edge * 20 + 1)
    if distribution == "laplace":
        share = 0.5 if neighbours is ADD else 0.25
        weights = np.exp(-share * np.abs(at))
    else:
        sigma = GaussianCells(0.5, 1e-6, neighbours).table.sigma
        weights = np.exp(-((at / sigma) ** 2) / 2)
    expected = np.bincount(np.clip(at, -edge, edge) + edge, weights / weights.sum())
    seen = np.bincount(np.clip(drawn, -edge, edge) + edge, minlength=2 * edge + 1)
    assert (chi_square_p(seen, expected) > FALSE_ALARM) is passes
