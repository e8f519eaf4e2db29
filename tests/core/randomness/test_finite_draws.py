"""Draws of a finite distribution: exact at every boundary."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from both_directions import BOTH_DIRECTIONS
from noisefloor.distributions import ONE, FiniteDistribution
from noisefloor.randomness import SeededSource
from scripted_source import Scripted, around, packed, rest_of
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted

NUMBERS = st.integers(0, ONE - 1)
CELL = 1 << 48
WEIGHTS = {
    "one outcome": (ONE,),
    "fair coin": (1 << 63, 1 << 63),
    "least weight first": (1, ONE - 1),
    "least weight last": (ONE - 1, 1),
    "many bounds in one cell": (*(1,) * 9, ONE - 9),
    "bounds at cell ends": (CELL - 1, 1, CELL, 1, CELL - 1, ONE - 3 * CELL),
    "thirds": (ONE // 3, ONE // 3, ONE - 2 * (ONE // 3)),
    "more outcomes than int16": (*(ONE // 40_000,) * 39_999, ONE - 39_999 * (ONE // 40_000)),
}


def check_draw(weights: Sequence[int], draws: Sequence[int]) -> None:
    """Assert that each draw gives the outcome whose stretch of [0, 2**64) it falls into."""
    ends = list(accumulate(weights))
    outcomes = [bisect_right(ends, draw) for draw in draws]
    open_ = [
        draw
        for draw in draws
        if bisect_right(ends, draw >> 48 << 48) != bisect_right(ends, draw | (CELL - 1))
    ]
    source = Scripted(
        packed([draw >> 48 for draw in draws], np.uint16), {("ties",): rest_of(open_, 48)}
    )
    assert source.draw(FiniteDistribution.of(weights), len(draws)).tolist() == outcomes
    assert source.is_used_up


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_a_draw_changes_outcome_exactly_at_each_boundary(weights: tuple[int, ...]) -> None:
    check_draw(weights, around(*accumulate(weights)))


@given(cuts=st.sets(st.integers(1, ONE - 1), max_size=9), draws=st.lists(NUMBERS, max_size=9))
def test_a_draw_inverts_any_distribution_exactly(cuts: set[int], draws: list[int]) -> None:
    ends = [*sorted(cuts), ONE]
    weights = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    check_draw(weights, [*draws, *around(*cuts)])


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_draws_of_a_distribution_have_its_weights(seed: int, factor: float, passes: bool) -> None:
    """n = 200 000 in 6 cells; false alarm FALSE_ALARM."""
    parts = (ONE // 50, ONE // 3, ONE // 10, ONE // 7, ONE // 1000)
    weights = (*parts, ONE - sum(parts))
    drawn = SeededSource(seed, "draw").draw(FiniteDistribution.of(weights), 200_000)
    distribution = tilted([weight / ONE for weight in weights], factor)
    assert (chi_square_p(np.bincount(drawn, minlength=6), distribution) > FALSE_ALARM) is passes
