"""Draws are exact, streams are named, and no coin comes twice."""

import hashlib
import multiprocessing
import os
import pickle
import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from noisefloor.checks import BLOCK, blocks
from noisefloor.errors import BadParameter, ForkedStream, NoisefloorError, StreamReopened
from noisefloor.laws import ONE, FiniteLaw
from noisefloor.randomness import SecureSource, SeededSource, Source, Words, new_run
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p, ks_p, tilted

Name = tuple[str | int, ...]
HALF = 1 << 32

BOTH_DIRECTIONS = pytest.mark.parametrize(
    ("factor", "passes"),
    [
        pytest.param(1.0, True, id="right law"),
        pytest.param(1.1, False, id="10 % more"),
        pytest.param(0.9, False, id="10 % less"),
    ],
)
# From Python 3.12 on a fork warns if any library holds threads; these children only draw and exit.
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


class Redrawn(Exception):
    """A draw was rejected, and more was asked for than was scripted."""


class Scripted(Source):
    """Gives the words it was told to, in order; asking for more raises ``Redrawn``."""

    def __init__(
        self, words: Sequence[int], spares: Mapping[Name, Sequence[int]] | None = None
    ) -> None:
        self._left = list(words)
        self._spares = {name: Scripted(script) for name, script in (spares or {}).items()}

    @property
    def is_used_up(self) -> bool:
        return not self._left and all(spare.is_used_up for spare in self._spares.values())

    def words(self, count: int) -> Words:
        if count > len(self._left):
            raise Redrawn
        given, self._left = self._left[:count], self._left[count:]
        return np.array(given, dtype=np.uint64)

    def stage(self, *name: str | int) -> Source:
        return self

    def _spare(self, *name: str | int) -> Source:
        return self._spares.setdefault(name, Scripted(()))


class Zeros(Scripted):
    """A source that is not random at all."""

    def __init__(self) -> None:
        super().__init__(())

    def words(self, count: int) -> Words:
        return np.zeros(count, dtype=np.uint64)

    def _spare(self, *name: str | int) -> Source:
        return self


def packed(values: Sequence[int], dtype: type[np.unsignedinteger]) -> list[int]:
    """Lay small integers out in words, in the order in which a draw reads them."""
    array = np.array(values, dtype=dtype)
    padded = np.pad(array, (0, -array.size % (8 // array.itemsize)))
    return [int(word) for word in padded.view(np.uint64)]


def rest_of(draws: Sequence[int], bits: int) -> list[int]:
    """Return tie words that hold the low bits of draws, with rubbish in the bits below them."""
    rubbish = (1 << (64 - bits)) - 1
    return [
        (draw % (1 << bits)) << (64 - bits) | (rubbish if place % 2 else 0)
        for place, draw in enumerate(draws)
    ]


def around(*centres: int) -> list[int]:
    """Return the 64-bit numbers at, just below and just above each centre, and the extremes."""
    near = {centre + step for centre in centres for step in (-1, 0, 1)}
    return sorted(number for number in near | {0, ONE - 1} if 0 <= number < ONE)


THRESHOLDS = sorted(
    {*around(1 << 8, 1 << 48, 1 << 55, 1 << 56, 1 << 63, ONE - (1 << 48), ONE - (1 << 56))} - {0}
    | {1, 2, 0x0123_4567_89AB_CDEF, ONE - 2}
)
NUMBERS = st.integers(0, ONE - 1)


def check_bernoulli(threshold: int, draws: Sequence[int]) -> None:
    """Assert that coins are ``draw < threshold`` and take no more bits than they need."""
    tied = [draw for draw in draws if draw >> 56 == threshold >> 56 and threshold % (1 << 56)]
    source = Scripted(
        packed([draw >> 56 for draw in draws], np.uint8), {("ties",): rest_of(tied, 56)}
    )
    coins = source.bernoulli(threshold, len(draws))
    assert coins.tolist() == [draw < threshold for draw in draws]
    assert source.is_used_up


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=hex)
def test_a_coin_is_true_exactly_below_its_threshold(threshold: int) -> None:
    check_bernoulli(threshold, around(threshold, threshold >> 56 << 56, 1 << 63))


@given(threshold=st.integers(1, ONE - 1), draws=st.lists(NUMBERS), tail=st.lists(NUMBERS))
def test_a_coin_compares_all_64_bits_whatever_they_are(
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
def test_a_certain_coin_takes_no_bits(threshold: int, side: bool) -> None:
    assert Scripted(()).bernoulli(threshold, 5).tolist() == [side] * 5


@pytest.mark.parametrize("threshold", [-1, ONE + 1])
def test_a_threshold_that_is_no_probability_is_refused(threshold: int) -> None:
    with pytest.raises(BadParameter, match=r"threshold=.* in \[0, 2\*\*64\]"):
        Scripted(()).bernoulli(threshold, 1)


def check_bernoulli_each(thresholds: Sequence[int], draws: Sequence[int]) -> None:
    """Assert the same of coins that have a threshold each."""
    pairs = list(zip(thresholds, draws, strict=True))
    tied = [draw for threshold, draw in pairs if draw >> 48 == threshold >> 48]
    source = Scripted(
        packed([draw >> 48 for draw in draws], np.uint16), {("ties",): rest_of(tied, 48)}
    )
    coins = source.bernoulli_each(np.array(thresholds, dtype=np.uint64))
    assert coins.tolist() == [draw < threshold for threshold, draw in pairs]
    assert source.is_used_up


def test_each_coin_is_true_exactly_below_its_own_threshold() -> None:
    pairs = [
        (threshold, draw)
        for threshold in (0, *THRESHOLDS)
        for draw in around(threshold, threshold >> 48 << 48, 1 << 63)
    ]
    check_bernoulli_each([threshold for threshold, _ in pairs], [draw for _, draw in pairs])


@given(pairs=st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans())))
def test_each_coin_compares_all_64_bits_whatever_they_are(
    pairs: list[tuple[int, int, bool]],
) -> None:
    draws = [
        threshold >> 48 << 48 | draw % (1 << 48) if ties else draw
        for threshold, draw, ties in pairs
    ]
    check_bernoulli_each([threshold for threshold, _, _ in pairs], draws)


def test_coins_have_the_shape_of_their_thresholds() -> None:
    source = Scripted(packed([0, 9, 9, 0, 0, 9], np.uint16))
    coins = source.bernoulli_each(np.full((2, 3), 5 << 48, dtype=np.uint64))
    assert coins.tolist() == [[True, False, False], [True, True, False]]


CELL = 1 << 48
LAWS = {
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
    assert source.draw(FiniteLaw.of(weights), len(draws)).tolist() == outcomes
    assert source.is_used_up


@pytest.mark.parametrize("weights", LAWS.values(), ids=LAWS.keys())
def test_a_draw_changes_outcome_exactly_at_each_boundary(weights: tuple[int, ...]) -> None:
    check_draw(weights, around(*accumulate(weights)))


@given(cuts=st.sets(st.integers(1, ONE - 1), max_size=9), draws=st.lists(NUMBERS, max_size=9))
def test_a_draw_inverts_any_law_exactly(cuts: set[int], draws: list[int]) -> None:
    ends = [*sorted(cuts), ONE]
    weights = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    check_draw(weights, [*draws, *around(*cuts)])


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


# --- laws of the draws, by statistics ---


@pytest.mark.statistical
@BOTH_DIRECTIONS
@pytest.mark.parametrize("threshold", [ONE // 3, 3 << 55], ids=["a third", "mostly ties"])
def test_coins_have_their_probability(
    seed: int, threshold: int, factor: float, passes: bool
) -> None:
    """n = 2 000 000; false alarm FALSE_ALARM."""
    n = 2_000_000
    hits = int(np.count_nonzero(SeededSource(seed, "coins", threshold).bernoulli(threshold, n)))
    assert (binomial_p(hits, n, factor * threshold / ONE) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_coins_with_a_threshold_each_have_their_probabilities(
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


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_draws_of_a_law_have_its_weights(seed: int, factor: float, passes: bool) -> None:
    """n = 200 000 in 6 cells; false alarm FALSE_ALARM."""
    parts = (ONE // 50, ONE // 3, ONE // 10, ONE // 7, ONE // 1000)
    weights = (*parts, ONE - sum(parts))
    drawn = SeededSource(seed, "draw").draw(FiniteLaw.of(weights), 200_000)
    law = tilted([weight / ONE for weight in weights], factor)
    assert (chi_square_p(np.bincount(drawn, minlength=6), law) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
@pytest.mark.parametrize("place", range(8))
def test_each_byte_of_a_word_is_uniform(
    seed: int, place: int, factor: float, passes: bool
) -> None:
    """n = 200 000 in 256 cells; false alarm FALSE_ALARM."""
    bytes_ = SeededSource(seed, "bytes", place).words(200_000).view(np.uint8)[place::8]
    law = tilted([1 / 256] * 256, factor)
    assert (chi_square_p(np.bincount(bytes_, minlength=256), law) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_words_are_uniform_as_numbers(seed: int, factor: float, passes: bool) -> None:
    """n = 100 000; false alarm FALSE_ALARM."""
    numbers = SeededSource(seed, "numbers").words(100_000) / 2.0**64
    assert (ks_p(numbers, lambda x: np.asarray(x**factor)) > FALSE_ALARM) is passes


# --- named streams ---


def coins(*path: Any, count: int = 4) -> list[int]:
    """Return the first words of a path, in a run of their own."""
    with new_run():
        return [int(word) for word in SeededSource(*path).words(count)]


def sfc64(key: bytes, count: int) -> list[int]:
    """Chris Doty-Humphrey's sfc64 (PractRand), by the book: 16 words are thrown away first."""
    a, b, c = struct.unpack("<3Q", key[:24])
    given = []
    for counter in range(1, 17 + count):
        word = (a + b + counter) % ONE
        a, b = b ^ (b >> 11), (c + (c << 3)) % ONE
        c = ((c << 24 | c >> 40) + word) % ONE
        given.append(word)
    return given[16:]


def blake2b(purpose: str, content: bytes) -> bytes:
    person = purpose.encode().ljust(16, b"\0")
    return hashlib.blake2b(content, digest_size=32, person=person).digest()


def test_the_coins_of_a_path_are_sfc64_keyed_by_blake2b_of_the_path() -> None:
    # This is the definition of seeded streams: a change here moves every coin of every scenario.
    parts = [(b"i", b"7"), (b"s", b"cohort"), (b"i", b"17")]
    path = b"".join(tag + len(text).to_bytes(8, "big") + text for tag, text in parts)
    key = blake2b("path", path)
    source = SeededSource(7, "cohort", 17)
    assert source.words(50).tolist() == sfc64(key, 50)
    flips = b"s" + (5).to_bytes(8, "big") + b"flips"
    assert source.stage("flips").words(50).tolist() == sfc64(blake2b("stage", key + flips), 50)
    assert source._spare("flips").words(50).tolist() == sfc64(blake2b("spare", key + flips), 50)
    population = source.generator().bit_generator.random_raw(50)
    assert population.tolist() == sfc64(blake2b("population", key), 50)


def test_the_same_path_gives_the_same_coins_in_a_new_run() -> None:
    assert coins(7, "cohort", 17) == coins(7, "cohort", 17)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((7, "a", "bc"), (7, "ab", "c")),
        ((7, 1), (7, "1")),
        ((7, -1), (7, "-1")),
        ((7, 12, 3), (7, 1, 23)),
        ((7, "a"), (7, "a", "")),
        ((7,), (7, "")),
        ((7, 1), (71,)),
        ((7,), (8,)),
        ((7, "a", "b"), (7, "b", "a")),
        ((7, "as\0\0\0\0\0\0\0\1b"), (7, "a", "b")),
    ],
)
def test_different_paths_share_no_coins(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert not set(coins(*one, count=1000)) & set(coins(*other, count=1000))


def test_a_child_of_a_child_is_the_flat_path() -> None:
    nested = SeededSource(7, "a").child("b", 3).child("c")
    assert repr(nested) == "SeededSource(7, 'a', 'b', 3, 'c')"
    assert nested.words(4).tolist() == coins(7, "a", "b", 3, "c")


def test_numpy_integers_name_the_same_streams_as_plain_ones() -> None:
    assert coins(np.int64(7), np.uint8(3)) == coins(7, 3)


def test_naming_a_stream_opens_nothing() -> None:
    for _ in range(2):
        SeededSource(7, "a").child("b")
    assert SeededSource(7, "a", "b").words(1).size == 1


def test_a_path_opened_twice_in_one_run_is_refused_by_name() -> None:
    SeededSource(7, "a", "b").words(1)
    for again in (SeededSource(7, "a", "b"), SeededSource(7, "a").child("b")):
        with pytest.raises(StreamReopened, match=r"SeededSource\(7, 'a', 'b'\)"):
            again.words(1)
        with pytest.raises(StreamReopened):
            again.stage("flips")


def test_an_opened_source_goes_on_where_it_was() -> None:
    source = SeededSource(7, "a")
    assert [*source.words(3).tolist(), *source.words(2).tolist()] == coins(7, "a", count=5)


def test_a_run_inside_a_run_gives_the_outer_one_back() -> None:
    SeededSource(7, "a").words(1)
    with new_run():
        SeededSource(7, "a").words(1)
    with pytest.raises(StreamReopened):
        SeededSource(7, "a").words(1)


def test_a_run_that_fails_gives_the_outer_one_back() -> None:
    SeededSource(7, "a").words(1)
    with pytest.raises(ZeroDivisionError), new_run():
        raise ZeroDivisionError
    with pytest.raises(StreamReopened):
        SeededSource(7, "a").words(1)


def test_a_source_used_for_two_releases_is_refused() -> None:
    source = SeededSource(7, "release")
    source.stage("flips").bernoulli(1 << 63, 10)
    source.stage("places").below(5, 10)
    with pytest.raises(StreamReopened, match="give each release its own path"):
        source.stage("flips")


def test_a_source_used_for_two_releases_is_refused_in_a_new_run_as_well() -> None:
    source = SeededSource(7, "release")
    source.stage("flips")
    with new_run(), pytest.raises(StreamReopened):
        source.stage("flips")


def test_every_stream_of_a_path_has_coins_of_its_own() -> None:
    source = SeededSource(7, "a")
    stage = source.stage("b")
    streams = [
        source.words(100),
        source._spare("ties").words(100),
        source._spare("retry", 1).words(100),
        source._spare("retry", 2).words(100),
        stage.words(100),
        stage._spare("ties").words(100),
        stage.stage("c").words(100),
        source.stage("b", "c").words(100),
        source.stage("ties").words(100),
        source.child("b").words(100),
        source.generator().bit_generator.random_raw(100),
    ]
    assert np.unique(np.concatenate(streams)).size == 100 * len(streams)


def test_a_spare_stream_goes_on_where_it_was() -> None:
    source = SeededSource(7, "a")
    first, second = (source._spare("ties").words(3).tolist() for _ in range(2))
    with new_run():
        assert SeededSource(7, "a")._spare("ties").words(6).tolist() == first + second


@pytest.mark.parametrize("seed", [-1, True, 1.5, "7", None])
def test_a_seed_that_is_no_natural_number_is_refused(seed: Any) -> None:
    with pytest.raises(BadParameter, match=r"seed=.* to be an integer >= 0"):
        SeededSource(seed)


@pytest.mark.parametrize("element", [1.5, None, True, b"a", ("a",)])
def test_a_path_holds_strings_and_integers_only(element: Any) -> None:
    for name in (SeededSource(7).child, SeededSource(7).stage):
        with pytest.raises(BadParameter, match="to hold strings and integers only"):
            name("a", element)


def test_a_refused_stage_leaves_no_trace() -> None:
    source = SeededSource(7)
    with pytest.raises(BadParameter):
        source.stage(True)
    assert source.stage(1).words(1).size == 1


def test_a_generator_may_be_had_twice_and_gives_the_same() -> None:
    source = SeededSource(7, "population")
    first = source.generator().normal(size=5).tolist()
    assert source.generator().normal(size=5).tolist() == first
    assert SeededSource(7, "population").generator().normal(size=5).tolist() == first


def test_a_generator_opens_no_stream_and_repeats_none_of_its_coins() -> None:
    source = SeededSource(7, "population")
    raw = source.generator().bit_generator.random_raw(100)
    assert not set(raw.tolist()) & set(SeededSource(7, "population").words(100).tolist())


# --- adding users moves nobody's coins ---

LAW = FiniteLaw.of((ONE // 3, ONE // 5, ONE - ONE // 3 - ONE // 5))
Primitive = Callable[[Source, int, int], NDArray[Any]]


def bounds_of(start: int, stop: int) -> Words:
    """Return a bound for each place, many of them with frequent rejections."""
    return np.arange(start, stop, dtype=np.uint64) * np.uint64(7919) % np.uint64(HALF) + np.uint64(
        1
    )


PRIMITIVES: dict[str, Primitive] = {
    "words": lambda source, start, stop: source.words(stop - start),
    "bernoulli": lambda source, start, stop: source.bernoulli(ONE // 3, stop - start),
    "bernoulli of ties": lambda source, start, stop: source.bernoulli(1 << 55, stop - start),
    "bernoulli_each": lambda source, start, stop: source.bernoulli_each(
        bounds_of(start, stop) << np.uint64(31)
    ),
    "draw": lambda source, start, stop: source.draw(LAW, stop - start),
    "below": lambda source, start, stop: source.below(5, stop - start),
    "below, half rejected": lambda source, start, stop: source.below((1 << 31) + 1, stop - start),
    "below a power of two": lambda source, start, stop: source.below(8, stop - start),
    "below each": lambda source, start, stop: source.below(bounds_of(start, stop), stop - start),
    "below_wide": lambda source, start, stop: source.below_wide(bounds_of(start, stop)),
}


def drawn_in_blocks(primitive: Primitive, users: int, width: int) -> NDArray[Any]:
    """Draw ``width`` elements a user, in the blocks in which mechanisms do."""
    with new_run():
        stage = SeededSource(7, "users").stage("step")
        parts = [
            primitive(stage, rows.start * width, rows.stop * width)
            for rows in blocks(users, width)
        ]
    return np.concatenate(parts)


@pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=PRIMITIVES.keys())
@pytest.mark.parametrize("width", [1, 3])
def test_more_users_leave_the_coins_of_those_who_were_there(
    primitive: Primitive, width: int
) -> None:
    step = BLOCK // width
    many = drawn_in_blocks(primitive, 2 * step + 1001, width)
    for users in (1, 2, 7, step - 1, step, step + 1, step + 10, 2 * step, 2 * step + 3):
        few = drawn_in_blocks(primitive, users, width)
        assert np.array_equal(few, many[: users * width])


# --- other processes ---


def in_forked_child(work: Callable[[], bytes]) -> bytes:
    """Return what the work gives in a forked child; an error comes back as its name."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sending, work())
        except BaseException as error:
            os.write(sending, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        given = pipe.read()
    os.waitpid(child, 0)
    return given


def test_pickling_hands_on_the_path_and_no_state() -> None:
    source = SeededSource(7, "a", 1)
    pristine = pickle.dumps(source)
    first = source.words(3).tolist()
    assert pickle.dumps(source) == pristine
    with new_run():
        assert pickle.loads(pristine).words(3).tolist() == first


def test_a_pickled_copy_cannot_repeat_coins_in_the_same_run() -> None:
    source = SeededSource(7, "a")
    source.words(1)
    with pytest.raises(StreamReopened):
        pickle.loads(pickle.dumps(source)).words(1)


def test_a_stage_cannot_be_pickled() -> None:
    with pytest.raises(ForkedStream, match="pass the path"):
        pickle.dumps(SeededSource(7, "a").stage("b"))


def test_a_spawned_worker_gets_the_coins_of_the_path() -> None:
    source = SeededSource(7, "worker", 1)
    here = source.words(5).tolist()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        # A method of the package, since a spawned process cannot import this file by its name.
        there = pool.submit(SeededSource.words, source, 5).result()
    assert there.tolist() == here


@FORKS
@pytest.mark.parametrize("is_opened", [False, True])
def test_a_source_made_before_a_fork_refuses_to_draw_after_it(is_opened: bool) -> None:
    source = SeededSource(7, "a")
    if is_opened:
        source.words(1)
    assert in_forked_child(lambda: source.words(1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: source.bernoulli(1 << 63, 1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: repr(source.stage("b")).encode()) == b"ForkedStream"
    assert source.words(1).size == 1


@FORKS
def test_a_stage_made_before_a_fork_refuses_to_draw_after_it() -> None:
    stage = SeededSource(7, "a").stage("b")
    assert in_forked_child(lambda: stage.words(1).tobytes()) == b"ForkedStream"
    assert in_forked_child(lambda: stage.below(3, 1).tobytes()) == b"ForkedStream"


@FORKS
def test_a_stage_made_before_a_fork_refuses_to_open_stages_after_it() -> None:
    stage = SeededSource(7, "a").stage("b")
    assert in_forked_child(lambda: stage.stage("c").words(1).tobytes()) == b"ForkedStream"


@FORKS
def test_a_forked_child_may_make_sources_of_its_own() -> None:
    given = in_forked_child(lambda: SeededSource(7, "child").words(4).tobytes())
    assert np.frombuffer(given, dtype=np.uint64).tolist() == coins(7, "child")


# --- the secure source ---


def test_secure_draws_differ() -> None:
    source = SecureSource()
    assert source.words(4).tolist() != source.words(4).tolist()
    assert SecureSource().words(4).tolist() != SecureSource().words(4).tolist()


def test_a_secure_source_serves_every_stage_itself() -> None:
    source = SecureSource()
    assert source.stage("a") is source.stage("a") is source
    assert source._spare("ties") is source


@FORKS
def test_a_secure_source_keeps_nothing_that_a_fork_could_share() -> None:
    source = SecureSource()
    source.words(3)
    child = in_forked_child(lambda: source.words(64).tobytes())
    parent = source.words(64).tobytes()
    assert len(child) == len(parent) == 8 * 64
    assert child != parent


@pytest.mark.parametrize("make", [SecureSource, lambda: SeededSource(7)], ids=["secure", "seeded"])
def test_draws_are_writable_arrays_of_the_asked_size(make: Callable[[], Source]) -> None:
    source = make()
    for count in (0, 1, 7, 8, 9, 1000):
        drawn: list[NDArray[Any]] = [
            source.words(count),
            source.bernoulli(1, count),
            source.bernoulli(ONE, count),
            source.bernoulli_each(np.full(count, 1 << 63, dtype=np.uint64)),
            source.draw(LAW, count),
            source.below(5, count),
            source.below(8, count),
            source.below(1, count),
            source.below_wide(np.full(count, 5, dtype=np.uint64)),
        ]
        for array in drawn:
            assert array.shape == (count,)
            assert array.flags.writeable
            array[:] = 0
        assert source.bytes_of(count).size >= count
        assert source.halves_of(count).size >= count


@pytest.mark.statistical
def test_secure_coins_are_fair() -> None:
    """n = 100 000, never seeded; false alarm FALSE_ALARM; its twins are those of seeded coins."""
    hits = int(np.count_nonzero(SecureSource().bernoulli(1 << 63, 100_000)))
    assert binomial_p(hits, 100_000, 0.5) > FALSE_ALARM


@pytest.mark.parametrize("word", [0, ONE - 1, ONE // 2 - 1, ONE // 2, 1, ONE // 2 + 1])
def test_laplace_numbers_are_finite_at_every_end_of_a_word(word: int) -> None:
    drawn = Scripted([word]).laplaces(1)
    assert drawn.dtype == np.float32
    assert abs(float(drawn[0])) < 44.5


def test_the_largest_laplace_numbers_lie_on_both_sides() -> None:
    ends = Scripted([0, ONE - 1]).laplaces(2)
    assert ends == pytest.approx([-64 * np.log(2), 64 * np.log(2)], rel=1e-6)


def test_a_word_and_its_complement_are_opposite_laplace_numbers() -> None:
    words = [int(word) for word in SeededSource(1, "words").words(1000)]
    drawn = Scripted(words).laplaces(1000)
    assert np.array_equal(Scripted([ONE - 1 - word for word in words]).laplaces(1000), -drawn)


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_laplace_numbers_follow_the_law(seed: int, factor: float, passes: bool) -> None:
    """n = 100,000; false alarm 1e-6; a scale wrong by a tenth is seen."""
    drawn = SeededSource(seed, "laplaces").laplaces(100_000).astype(np.float64)

    def cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
        tail = np.exp(-np.abs(x) * factor) / 2
        return np.where(x < 0, tail, 1 - tail)

    assert (ks_p(drawn, cdf) > FALSE_ALARM) is passes
