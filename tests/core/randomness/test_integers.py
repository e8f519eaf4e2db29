"""Integers below a bound: every value with equally many draws, rejections drawn again."""

import numpy as np
import pytest

from both_directions import BOTH_DIRECTIONS
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.randomness import SeededSource
from scripted_source import Redrawn, Scripted, Zeros, packed
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted

HALF = 1 << 32


def below_once(half: int, bound: int) -> int | None:
    """Return what one 32-bit number gives below the bound, or None if it is drawn again."""
    try:
        return int(Scripted(packed([half], np.uint32)).below(bound, 1)[0])
    except Redrawn:
        return None


AWKWARD_BOUNDS = [3, 5, 6, 7, 10, 100, 641, 1000]
HUGE_BOUNDS = [(1 << 31) - 1, (1 << 31) + 1, 3 << 30, HALF - 2, HALF - 1]


def first_half(value: int, bound: int, surplus: int = 0) -> int:
    """Return the least 32-bit h whose product h * bound is at least value * 2**32 + surplus."""
    return -(-(value * HALF + surplus) // bound)


@pytest.mark.parametrize("bound", AWKWARD_BOUNDS)
def test_every_value_below_a_bound_has_equally_many_accepted_draws(bound: int) -> None:
    surplus = HALF % bound
    redrawn = 0
    for value in range(bound):
        start, stop = first_half(value, bound), first_half(value + 1, bound)
        accepted = first_half(value, bound, surplus)
        # Multiplying by the bound is monotone: the ends of the stretch settle all of it.
        assert [below_once(half, bound) for half in range(start, accepted)] == [None] * (
            accepted - start
        )
        assert below_once(accepted, bound) == below_once(stop - 1, bound) == value
        assert stop - accepted == HALF // bound
        redrawn += accepted - start
    assert redrawn == surplus


@pytest.mark.parametrize("bound", HUGE_BOUNDS)
def test_huge_bounds_accept_one_draw_for_each_value(bound: int) -> None:
    surplus = HALF % bound
    for value in {0, 1, 2, bound // 3, bound // 2, bound - 2, bound - 1}:
        start, stop = first_half(value, bound), first_half(value + 1, bound)
        found = [below_once(half, bound) for half in range(start, stop)]
        assert found.count(value) == HALF // bound
        assert found.count(None) == stop - first_half(value, bound) - HALF // bound
        assert first_half(value, bound, surplus) == start + found.count(None)


@pytest.mark.parametrize("exponent", [0, 1, 2, 8, 31, 32])
def test_a_power_of_two_takes_the_top_bits_and_rejects_nothing(exponent: int) -> None:
    halves = [0, 1, (1 << 31) - 1, 1 << 31, HALF - 2, HALF - 1]
    source = Scripted(packed(halves, np.uint32))
    drawn = source.below(1 << exponent, len(halves))
    assert drawn.tolist() == [half * (1 << exponent) >> 32 for half in halves]
    assert source.is_used_up


def test_rejected_draws_and_no_others_are_drawn_again_until_they_fit() -> None:
    bound = 3 << 30  # the products of every fourth draw leave a low half of 0, below the surplus
    rejects = [0, 4, 8]
    assert all(below_once(half, bound) is None for half in rejects)
    source = Scripted(
        packed([7, rejects[0], 5, rejects[1], rejects[2], 6], np.uint32),
        {
            ("retry", 1): packed([11, rejects[1], 13], np.uint32),
            ("retry", 2): packed([15], np.uint32),
        },
    )
    expected = [below_once(half, bound) for half in (7, 11, 5, 15, 13, 6)]
    assert source.below(bound, 6).tolist() == expected
    assert source.is_used_up


def test_bounds_of_each_draw_give_what_the_same_single_bounds_give() -> None:
    bounds = [
        bound for bound in [1, 2, 1 << 31, HALF, *AWKWARD_BOUNDS, *HUGE_BOUNDS] for _ in range(9)
    ]
    halves = SeededSource(1, "halves").halves_of(len(bounds))[: len(bounds)].tolist()
    again = SeededSource(1, "again").halves_of(len(bounds)).tolist()
    single = [below_once(half, bound) for half, bound in zip(halves, bounds, strict=True)]
    retried = [bound for bound, found in zip(bounds, single, strict=True) if found is None]
    assert retried
    fits = [
        next(half for half in again if below_once(half, bound) is not None) for bound in retried
    ]
    source = Scripted(packed(halves, np.uint32), {("retry", 1): packed(fits, np.uint32)})
    refit = iter(below_once(half, bound) for half, bound in zip(fits, retried, strict=True))
    expected = [next(refit) if found is None else found for found in single]
    assert source.below(np.array(bounds, dtype=np.uint64), len(bounds)).tolist() == expected
    assert source.is_used_up


@pytest.mark.parametrize("bound", [0, -1, HALF + 1])
def test_a_bound_that_32_bits_cannot_serve_is_refused(bound: int) -> None:
    with pytest.raises(BadParameter, match=r"bound=.* in \[1, 2\*\*32\]"):
        Scripted(()).below(bound, 1)


def below_wide_once(word: int, bound: int) -> int | None:
    try:
        return int(Scripted([word]).below_wide(np.array([bound], dtype=np.uint64))[0])
    except Redrawn:
        return None


@pytest.mark.parametrize("bound", [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 100])
def test_every_value_below_a_wide_bound_has_equally_many_accepted_words(bound: int) -> None:
    # No bound up to 128 looks further than 8 bits: 256 words, with rubbish below, are all cases.
    found = [below_wide_once(top << 56 | 0xF0F0F0F0F0F0F0 >> top % 2, bound) for top in range(256)]
    shares = [found.count(value) for value in range(bound)]
    assert len(set(shares)) == 1
    assert sum(shares) + found.count(None) == 256
    assert 2 * sum(shares) >= 256


@pytest.mark.parametrize(
    ("bound", "bits"),
    [
        (1 << 32, 33),
        ((1 << 53) - 1, 53),
        ((1 << 53) + 1, 54),
        ((1 << 62) - 1, 63),  # as a float it is 2**62: one bit more than it needs, never one less
        (1 << 62, 63),
        ((1 << 62) + 1, 63),
        ((1 << 63) - 1, 64),
        (1 << 63, 64),
    ],
)
def test_a_wide_bound_accepts_exactly_the_words_below_it(bound: int, bits: int) -> None:
    unit = 1 << (64 - bits)
    for value in (0, 1, bound - 2, bound - 1):
        assert below_wide_once(value * unit, bound) == value
        assert below_wide_once(value * unit + unit - 1, bound) == value
    for value in (bound, (bound + (1 << bits)) // 2, (1 << bits) - 1):
        assert below_wide_once(value * unit, bound) is None


def test_rejected_wide_draws_are_drawn_again_under_their_own_bound() -> None:
    source = Scripted(
        [6 << 61, 4 << 61, 7 << 61, 1 << 62],
        {("retry", 1): [5 << 61, 1 << 62], ("retry", 2): [2 << 61]},
    )
    assert source.below_wide(np.array([5, 5, 5, 2], dtype=np.uint64)).tolist() == [2, 4, 2, 1]
    assert source.is_used_up


def test_a_source_that_is_not_random_is_found_out() -> None:
    with pytest.raises(NoisefloorError, match="not random"):
        Zeros().below(3, 4)
    with pytest.raises(NoisefloorError, match="not random"):
        Scripted([ONE - 1], {("retry", n): [ONE - 1] for n in range(1, 256)}).below_wide(
            np.array([3], dtype=np.uint64)
        )


@pytest.mark.statistical
@BOTH_DIRECTIONS
@pytest.mark.parametrize("bound", [12, 3 << 30], ids=["few", "a quarter rejected"])
def test_integers_below_a_bound_are_uniform(
    seed: int, bound: int, factor: float, passes: bool
) -> None:
    """n = 200 000 in 12 cells; false alarm FALSE_ALARM."""
    drawn = SeededSource(seed, "below", bound).below(bound, 200_000)
    counts = np.bincount(drawn // np.uint32(bound // 12), minlength=12)
    assert (chi_square_p(counts, tilted([1 / 12] * 12, factor)) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_integers_below_a_wide_bound_are_uniform(seed: int, factor: float, passes: bool) -> None:
    """n = 200 000 in 12 cells; false alarm FALSE_ALARM."""
    bounds = np.full(200_000, 3 << 61, dtype=np.uint64)
    drawn = SeededSource(seed, "wide").below_wide(bounds) // np.uint64(1 << 59)
    counts = np.bincount(drawn.astype(np.int64), minlength=12)
    assert (chi_square_p(counts, tilted([1 / 12] * 12, factor)) > FALSE_ALARM) is passes
