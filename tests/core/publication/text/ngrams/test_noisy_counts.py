"""Counts of bounded norm: multipliers to the last unit, noise by scale, what a document moves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.publication.text.ngrams import (
    CellCounts,
    CountingBound,
    NoisyCounting,
    counting_loss,
)
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

BOUND = CountingBound(norm_squared=5, grid=16, top=6)
EXPONENTS = np.array([0, 1, 6, 3, 0], dtype=np.int8)


def a_counting(multiplier: float = 1.5) -> NoisyCounting:
    return NoisyCounting(EXPONENTS, multiplier, BOUND)


def random_counts(documents: int, seed: int) -> CellCounts:
    draw = SeededSource(seed, "counts").generator()
    table = draw.integers(-3, 9, (documents, len(EXPONENTS)))
    owners, cells = np.nonzero(table)
    return CellCounts(owners, cells, table[owners, cells].astype(np.int64), documents)


def squared_norm(moved: np.ndarray) -> Fraction:
    """Return the squared norm of a change in units of the grid, exactly."""
    return sum(
        (
            Fraction(int(step) ** 2, 2 ** int(power))
            for step, power in zip(moved, EXPONENTS, strict=True)
        ),
        Fraction(0),
    )


def test_each_multiplier_is_the_largest_that_keeps_to_the_norm() -> None:
    found, counting = random_counts(400, 1), a_counting()
    most = Fraction(BOUND.grid**2 * BOUND.norm_squared)
    for document, chosen in enumerate(counting.multipliers(found).tolist()):
        own = found.owners == document
        row = np.zeros(len(EXPONENTS), dtype=np.int64)
        row[found.cells[own]] = found.counts[own]
        assert squared_norm(row * chosen) <= most
        assert chosen == BOUND.grid or squared_norm(row * (chosen + 1)) > most


def test_a_thousand_removals_stay_within_the_norm() -> None:
    found, counting = random_counts(1_000, 2), a_counting()
    whole = counting.sums(found)
    most, norms = Fraction(BOUND.grid**2 * BOUND.norm_squared), []
    for gone in range(1_000):
        kept = found.owners != gone
        rest = CellCounts(found.owners[kept], found.cells[kept], found.counts[kept], 1_000)
        norms.append(squared_norm(whole - counting.sums(rest)))
    assert max(norms) <= most
    # The bound is no empty one: some documents come within a twentieth of it.
    assert max(norms) > most * Fraction(9, 10)


def test_a_document_too_long_for_any_multiplier_does_not_count() -> None:
    row = np.array([0])
    found = CellCounts(row, row, np.array([1_000]), 1)
    assert a_counting().sums(found).tolist() == [0] * len(EXPONENTS)


def test_repeated_pairs_are_counted_once_each() -> None:
    found = CellCounts.of(np.array([1, 0, 1, 1]), np.array([2, 2, 0, 2]), 3, 4)
    assert found.owners.tolist() == [0, 1, 1]
    assert found.cells.tolist() == [2, 0, 2]
    assert found.counts.tolist() == [1, 1, 2]


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "is_right"), [(1.0, True), (0.9, False)])
def test_noise_has_the_scale_of_its_cell(share: float, is_right: bool) -> None:
    """Alarms with probability 1e-6 on right noise; the twin has a tenth less noise."""
    bound = CountingBound(norm_squared=1, grid=1, top=2)
    cells = np.repeat(np.array([0, 2], dtype=np.int8), 40_000)
    drawn = NoisyCounting(cells, 2.0 * share, bound).noise(SeededSource(3, "noise", f"{share:g}"))
    table = NoisyCounting(cells, 2.0, bound)
    for level in (0, 2):
        noise = table._tables[level]
        counts = np.bincount(drawn[cells == level] + noise.reach, minlength=2 * noise.reach + 1)
        counts = counts[: 2 * noise.reach + 1]
        assert (chi_square_p(counts, noise.chances) > FALSE_ALARM) is is_right


def test_deviations_are_those_of_the_noise() -> None:
    counting = a_counting()
    drawn = np.stack([counting.noise(SeededSource(4, "draw", one)) for one in range(4_000)])
    spread = drawn.std(axis=0) / BOUND.grid
    assert np.allclose(spread, counting.deviations, rtol=0.1)
    assert np.allclose(
        counting.deviations, 1.5 * np.sqrt(5 * 2.0 ** EXPONENTS.astype(float)), rtol=1e-3
    )


def test_the_loss_covers_every_scale() -> None:
    loss = counting_loss(1.5, BOUND, most_cells=7)
    widest = max(table.variation for table in a_counting()._tables.values())
    assert loss.variation == pytest.approx(14 * widest)
    (event,) = loss.events
    assert 1.5 * (1 - 1e-9) < event.noise_multiplier < 1.5  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("exponents", "multiplier", "rule"),
    [
        ([7], 1.0, "exponents"),
        ([-1], 1.0, "exponents"),
        ([0], 0.0, "multiplier"),
        ([0], 1e4, "sigma"),
    ],
)
def test_bad_tables_are_refused(exponents: list[int], multiplier: float, rule: str) -> None:
    with pytest.raises(BadParameter, match=rule):
        NoisyCounting(np.array(exponents, dtype=np.int8), multiplier, BOUND)


def test_cells_that_are_not_there_are_refused() -> None:
    found = CellCounts(np.array([0]), np.array([9]), np.array([1]), 1)
    with pytest.raises(BadParameter, match="cells"):
        a_counting().sums(found)


def test_an_empty_table_is_no_fault() -> None:
    empty = NoisyCounting(np.zeros(0, dtype=np.int8), 1.0, BOUND)
    none = np.zeros(0, dtype=np.int64)
    assert empty.release(CellCounts(none, none, none, 0), SeededSource(1)).size == 0
    assert math.isfinite(counting_loss(1.0, BOUND, 1).variation)
