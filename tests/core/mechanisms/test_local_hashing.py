"""Local hashing: the quality of the hash, the tally, and the estimate."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import LocalHashing
from noisefloor.mechanisms.local_hashing import hash_cell
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p

SEEDS = 200_000


def weak_cell(seeds: NDArray[Any], values: NDArray[Any], cells: int) -> NDArray[Any]:
    """Return the cell of a bad hash: the seed is used as it is, without mixing."""
    return (seeds.astype(np.uint64) + values.astype(np.uint64)) % np.uint64(cells)


def lopsided_cell(seeds: NDArray[Any], values: NDArray[Any], cells: int) -> NDArray[Any]:
    """Return the cell of a hash whose first cell is a tenth too likely."""
    good = hash_cell(seeds, values, cells)
    return np.where((good == 1) & (seeds % np.uint32(10) == 0), np.uint64(0), good)


def drawn_seeds(seed: int, *path: str | int) -> NDArray[np.uint32]:
    return SeededSource(seed, "hash", *path).halves_of(SEEDS)[:SEEDS]


@pytest.mark.parametrize(
    ("epsilon", "cells"),
    [(1e-9, 2), (0.5, 3), (1.0, 4), (2.0, 8), (4.0, 56), (12.0, 65536), (40.0, 65536)],
)
def test_the_number_of_cells_is_the_papers(epsilon: float, cells: int) -> None:
    """round(e**eps) + 1, up to 2**16."""
    assert LocalHashing(10, epsilon).cells == cells


@pytest.mark.statistical
@pytest.mark.parametrize("cells", [2, 4, 8, 57])
@pytest.mark.parametrize("value", [0, 1, 2, 1000, 2**31 - 1])
def test_each_value_falls_into_all_cells_alike(cells: int, value: int, seed: int) -> None:
    """200 000 seeds; false alarm FALSE_ALARM."""
    seeds = drawn_seeds(seed, "even", cells, value)
    cell = hash_cell(seeds, np.full(SEEDS, value), cells)
    counts = np.bincount(cell.astype(np.int64), minlength=cells)
    assert chi_square_p(counts, np.full(cells, 1 / cells)) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("cells", [2, 4, 8, 57])
@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (0, 1024), (5, 2**31 - 1), (3, 6)])
def test_two_values_collide_as_often_as_chance_has_it(
    cells: int, one: int, other: int, seed: int
) -> None:
    """200 000 seeds, collisions 1 / cells; false alarm FALSE_ALARM."""
    seeds = drawn_seeds(seed, "pair", cells, one, other)
    first = hash_cell(seeds, np.full(SEEDS, one), cells)
    second = hash_cell(seeds, np.full(SEEDS, other), cells)
    assert binomial_p(int((first == second).sum()), SEEDS, 1 / cells) > FALSE_ALARM
    joint = np.bincount((first * np.uint64(cells) + second).astype(np.int64), minlength=cells**2)
    assert chi_square_p(joint, np.full(cells**2, cells**-2.0)) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("cells", [4, 57])
def test_the_first_seeds_hash_as_well_as_any(cells: int, seed: int) -> None:
    """Seeds 0, 1, 2, ... are all different functions: 200 000 of them; false alarm FALSE_ALARM."""
    seeds = np.arange(SEEDS, dtype=np.uint32)
    for value in (0, 1, 77):
        cell = hash_cell(seeds, np.full(SEEDS, value), cells).astype(np.int64)
        counts = np.bincount(cell, minlength=cells)
        assert chi_square_p(counts, np.full(cells, 1 / cells)) > FALSE_ALARM


@pytest.mark.statistical
def test_bad_hashes_are_rejected(seed: int) -> None:
    """The twins: one that never collides, and one whose cells are a tenth off. 200 000 seeds."""
    seeds, cells = drawn_seeds(seed, "bad"), 4
    zero, one = np.zeros(SEEDS, dtype=np.int64), np.ones(SEEDS, dtype=np.int64)
    collisions = int((weak_cell(seeds, zero, cells) == weak_cell(seeds, one, cells)).sum())
    assert binomial_p(collisions, SEEDS, 1 / cells) < FALSE_ALARM
    counts = np.bincount(lopsided_cell(seeds, zero, cells).astype(np.int64), minlength=cells)
    assert chi_square_p(counts, np.full(cells, 1 / cells)) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("size", [2, 7, 300])
def test_the_tally_counts_the_values_that_hash_to_the_reported_cell(
    epsilon: float, size: int
) -> None:
    mechanism = LocalHashing(size, epsilon)
    reports = mechanism.randomise(np.arange(5000) % size, SeededSource(1, "tally", size))
    supports = [
        np.count_nonzero(
            hash_cell(reports["seed"], np.full(5000, value), mechanism.cells) == reports["cell"]
        )
        for value in range(size)
    ]
    assert mechanism.tally(reports).tolist() == supports


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.1, False)])
def test_the_true_cell_is_reported_as_often_as_the_response_keeps_it(
    factor: float, passes: bool, seed: int
) -> None:
    """n = 300 000; false alarm FALSE_ALARM. The twin has 1.1 times the epsilon (same cells)."""
    mechanism, twin = LocalHashing(50, 1.0), LocalHashing(50, 1.0 * factor)
    assert mechanism.cells == twin.cells
    values = np.arange(300_000) % 50
    reports = twin.randomise(values, SeededSource(seed, "kept", f"{factor}"))
    shift = (reports["cell"] - hash_cell(reports["seed"], values, 4)) % np.uint64(4)
    distribution = np.array([mechanism.response.keep, *[mechanism.response.lie] * 3]) / 2**64
    counts = np.bincount(shift.astype(np.int64), minlength=4)
    assert (chi_square_p(counts, distribution.astype(float)) > FALSE_ALARM) is passes


def largest_deviation_p(
    mechanism: LocalHashing, tally: NDArray[np.int64], truth: NDArray[Any], n: int
) -> float:
    """Return the p-value of the largest deviation in standard errors (Bonferroni)."""
    estimate = mechanism.estimate(tally, n)
    deviation = np.abs(estimate.value - truth) / estimate.standard_error
    return float(min(1.0, 2 * len(truth) * stats.norm.sf(deviation.max())))


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_estimate_lies_within_its_standard_error(epsilon: float, seed: int) -> None:
    """n = 200 000 over 20 values; false alarm FALSE_ALARM (Bonferroni).

    The twin tallies with a hash that is not the users': it has to be rejected.
    """
    mechanism, n = LocalHashing(20, epsilon), 200_000
    values = np.minimum(np.arange(n) % 40, 19)
    truth = np.bincount(values, minlength=20) / n
    reports = mechanism.randomise(values, SeededSource(seed, "within", f"{epsilon}"))
    assert largest_deviation_p(mechanism, mechanism.tally(reports), truth, n) > FALSE_ALARM
    cells = mechanism.cells
    wrong = [
        np.count_nonzero(weak_cell(reports["seed"], np.full(n, value), cells) == reports["cell"])
        for value in range(20)
    ]
    assert largest_deviation_p(mechanism, np.array(wrong), truth, n) < FALSE_ALARM


def test_the_error_is_the_papers() -> None:
    """Variance 4 e**eps / (e**eps - 1)**2 / n at the best number of cells (OLH)."""
    mechanism, power, n = LocalHashing(100, math.log(3)), 3.0, 10**12
    assert mechanism.cells == 4
    tally = np.full(100, n // 4)
    closed = 2 * math.sqrt(power) / (power - 1) / math.sqrt(n)
    assert mechanism.estimate(tally, n).standard_error == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize("size", [1, 0, True, 2.5, (1 << 31) + 1])
def test_a_bad_size_is_refused(size: int) -> None:
    with pytest.raises(BadParameter, match="size"):
        LocalHashing(size, 1.0)
