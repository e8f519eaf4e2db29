"""A finite distribution is exactly its integer weights."""

import dataclasses
from bisect import bisect_right
from collections import Counter
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.distributions import ONE, STRADDLES, FiniteDistribution
from noisefloor.errors import BadParameter

CELL = 1 << 48
WEIGHTS = {
    "one outcome": (ONE,),
    "fair coin": (1 << 63, 1 << 63),
    "least weight first": (1, ONE - 1),
    "least weight last": (ONE - 1, 1),
    "many bounds in one cell": (*(1,) * 9, ONE - 9),
    "bounds at cell ends": (CELL - 1, 1, CELL, 1, CELL - 1, ONE - 3 * CELL),
    "thirds": (ONE // 3, ONE // 3, ONE - 2 * (ONE // 3)),
    "one outcome a cell": (CELL,) * (1 << 16),
}


def enumerated(distribution: FiniteDistribution) -> Counter[int]:
    """Count, for each outcome, the 64-bit numbers that lead to it by guide and bounds."""
    outcomes, cells = np.unique(
        distribution.guide[distribution.guide != STRADDLES], return_counts=True
    )
    settled = zip(outcomes.tolist(), cells.tolist(), strict=True)
    mass = Counter({outcome: count * CELL for outcome, count in settled})
    ends = [*distribution.bounds.tolist(), ONE]
    for cell in np.flatnonzero(distribution.guide == STRADDLES).tolist():
        start, stop = cell * CELL, (cell + 1) * CELL
        while start < stop:
            outcome = bisect_right(ends, start)
            mass[outcome] += min(ends[outcome], stop) - start
            start = min(ends[outcome], stop)
    return mass


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_guide_and_bounds_give_every_outcome_exactly_its_weight(weights: tuple[int, ...]) -> None:
    assert enumerated(FiniteDistribution.of(weights)) == dict(enumerate(weights))


@given(cuts=st.sets(st.integers(1, ONE - 1), max_size=20))
def test_any_weights_are_kept_exactly(cuts: set[int]) -> None:
    ends = [*sorted(cuts), ONE]
    weights = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    distribution = FiniteDistribution.of(weights)
    assert distribution.weights == tuple(weights)
    assert enumerated(distribution) == dict(enumerate(weights))


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_a_cell_straddles_only_if_a_boundary_lies_inside_it(weights: tuple[int, ...]) -> None:
    inner = {end // CELL for end in accumulate(weights) if end % CELL}
    straddling = np.flatnonzero(FiniteDistribution.of(weights).guide == STRADDLES)
    assert set(straddling.tolist()) == inner


@pytest.mark.parametrize(
    ("size", "dtype"), [(2, np.int16), (32_767, np.int16), (32_768, np.int32), (65_536, np.int32)]
)
def test_the_guide_is_narrow_while_it_can_hold_every_outcome(
    size: int, dtype: type[np.signedinteger]
) -> None:
    distribution = FiniteDistribution.of([1] * (size - 1) + [ONE - size + 1])
    assert distribution.guide.dtype == dtype
    assert distribution.guide[-1] == size - 1
    assert len(distribution) == size


@pytest.mark.parametrize(
    "weights",
    [(), (0,), (ONE - 1,), (ONE + 1,), (0, ONE), (-1, ONE + 1), (1 << 63,), (1 << 63,) * 3],
)
def test_weights_that_do_not_sum_to_one_are_refused(weights: tuple[int, ...]) -> None:
    with pytest.raises(BadParameter, match=r"weights=.*> 0, summing to 2\*\*64"):
        FiniteDistribution.of(weights)


def test_a_refusal_counts_the_weights_and_does_not_list_them() -> None:
    with pytest.raises(BadParameter) as refusal:
        FiniteDistribution.of([987654321] * 1000)
    assert "<1000 integers>" in str(refusal.value)
    assert "987654321" not in str(refusal.value)


def test_weights_may_come_from_an_iterator_or_from_numpy() -> None:
    assert FiniteDistribution.of(iter([1 << 63, 1 << 63])).weights == (1 << 63, 1 << 63)
    assert FiniteDistribution.of(np.full(2, 1 << 63, dtype=np.uint64)).weights == (
        1 << 63,
        1 << 63,
    )


def test_a_distribution_cannot_be_changed() -> None:
    distribution = FiniteDistribution.of([ONE])
    with pytest.raises(dataclasses.FrozenInstanceError):
        distribution.weights = (1,)  # type: ignore[misc]  # the point of the test
