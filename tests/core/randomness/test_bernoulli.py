"""Draws: exactly below their threshold, all 64 bits compared, no bits wasted."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from both_directions import BOTH_DIRECTIONS
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from scripted_source import Scripted, around, packed, rest_of
from statistics_of_tests import FALSE_ALARM, binomial_p

THRESHOLDS = sorted(
    {*around(1 << 8, 1 << 48, 1 << 55, 1 << 56, 1 << 63, ONE - (1 << 48), ONE - (1 << 56))} - {0}
    | {1, 2, 0x0123_4567_89AB_CDEF, ONE - 2}
)
NUMBERS = st.integers(0, ONE - 1)


def check_bernoulli(threshold: int, draws: Sequence[int]) -> None:
    """Assert that draws are ``draw < threshold`` and take no more bits than they need."""
    tied = [draw for draw in draws if draw >> 56 == threshold >> 56 and threshold % (1 << 56)]
    source = Scripted(
        packed([draw >> 56 for draw in draws], np.uint8), {("ties",): rest_of(tied, 56)}
    )
    bits = source.bernoulli(threshold, len(draws))
    assert bits.tolist() == [draw < threshold for draw in draws]
    assert source.is_used_up


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
def test_a_draw_is_true_exactly_below_its_threshold(threshold: int) -> None:
    check_bernoulli(threshold, around(threshold, threshold >> 56 << 56, 1 << 63))


@given(threshold=st.integers(1, ONE - 1), draws=st.lists(NUMBERS), tail=st.lists(NUMBERS))
def test_a_draw_compares_all_64_bits_whatever_they_are(
    threshold: int, draws: list[int], tail: list[int]
) -> None:
    tied = [threshold >> 56 << 56 | number % (1 << 56) for number in tail]
    check_bernoulli(threshold, [*draws, *tied, *around(threshold)])


@pytest.mark.parametrize("coarse", [1, 2, 127, 128, 255])
def test_a_threshold_of_whole_256ths_is_hit_by_exactly_so_many_bytes(coarse: int) -> None:
    source = Scripted(packed(range(256), np.uint8))
    assert np.count_nonzero(source.bernoulli(coarse << 56, 256)) == coarse
    assert source.is_used_up


@pytest.mark.parametrize(("threshold", "side"), [(0, False), (ONE, True)])
def test_a_certain_draw_takes_no_bits(threshold: int, side: bool) -> None:
    assert Scripted(()).bernoulli(threshold, 5).tolist() == [side] * 5


@pytest.mark.parametrize("threshold", [-1, ONE + 1])
def test_a_threshold_that_is_no_probability_is_refused(threshold: int) -> None:
    with pytest.raises(BadParameter, match=r"threshold=.* in \[0, 2\*\*64\]"):
        Scripted(()).bernoulli(threshold, 1)


def check_bernoulli_each(thresholds: Sequence[int], draws: Sequence[int]) -> None:
    """Assert the same of draws that have a threshold each."""
    pairs = list(zip(thresholds, draws, strict=True))
    tied = [draw for threshold, draw in pairs if draw >> 48 == threshold >> 48]
    source = Scripted(
        packed([draw >> 48 for draw in draws], np.uint16), {("ties",): rest_of(tied, 48)}
    )
    bits = source.bernoulli_each(np.array(thresholds, dtype=np.uint64))
    assert bits.tolist() == [draw < threshold for threshold, draw in pairs]
    assert source.is_used_up


def test_each_draw_is_true_exactly_below_its_own_threshold() -> None:
    pairs = [
        (threshold, draw)
        for threshold in (0, *THRESHOLDS)
        for draw in around(threshold, threshold >> 48 << 48, 1 << 63)
    ]
    check_bernoulli_each([threshold for threshold, _ in pairs], [draw for _, draw in pairs])


@given(pairs=st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans())))
def test_each_draw_compares_all_64_bits_whatever_they_are(
    pairs: list[tuple[int, int, bool]],
) -> None:
    draws = [
        threshold >> 48 << 48 | draw % (1 << 48) if ties else draw
        for threshold, draw, ties in pairs
    ]
    check_bernoulli_each([threshold for threshold, _, _ in pairs], draws)


def test_draws_have_the_shape_of_their_thresholds() -> None:
    source = Scripted(packed([0, 9, 9, 0, 0, 9], np.uint16))
    bits = source.bernoulli_each(np.full((2, 3), 5 << 48, dtype=np.uint64))
    assert bits.tolist() == [[True, False, False], [True, True, False]]


@pytest.mark.statistical
@BOTH_DIRECTIONS
@pytest.mark.parametrize("threshold", [ONE // 3, 3 << 55], ids=["a third", "mostly ties"])
def test_draws_have_their_probability(
    seed: int, threshold: int, factor: float, passes: bool
) -> None:
    """n = 2 000 000; false alarm FALSE_ALARM."""
    n = 2_000_000
    hits = int(np.count_nonzero(SeededSource(seed, "coins", threshold).bernoulli(threshold, n)))
    assert (binomial_p(hits, n, factor * threshold / ONE) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_draws_with_a_threshold_each_have_their_probabilities(
    seed: int, factor: float, passes: bool
) -> None:
    """n = 200 000 for each of three; false alarm FALSE_ALARM, shared among them."""
    rates = np.array([0.05, 0.3, 0.85])
    thresholds = np.tile((rates * 2.0**64).astype(np.uint64), (200_000, 1))
    hits = SeededSource(seed, "each").bernoulli_each(thresholds).sum(axis=0)
    p = min(
        binomial_p(int(count), 200_000, factor * rate)
        for count, rate in zip(hits, rates, strict=True)
    )
    assert (p > FALSE_ALARM / 3) is passes
