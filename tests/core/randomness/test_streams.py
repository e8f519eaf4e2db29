"""Named streams: the same path gives the same draws, and no draw comes twice."""

import hashlib
import struct
from typing import Any

import numpy as np
import pytest

from both_directions import BOTH_DIRECTIONS
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, StreamReopened
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p, ks_p, tilted


def words_of(*path: Any, count: int = 4) -> list[int]:
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


def test_the_draws_of_a_path_are_sfc64_keyed_by_blake2b_of_the_path() -> None:
    # This is the definition of seeded streams: a change here moves every draw of every scenario.
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


def test_the_same_path_gives_the_same_draws_in_a_new_run() -> None:
    assert words_of(7, "cohort", 17) == words_of(7, "cohort", 17)


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
def test_different_paths_share_no_draws(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert not set(words_of(*one, count=1000)) & set(words_of(*other, count=1000))


def test_a_child_of_a_child_is_the_flat_path() -> None:
    nested = SeededSource(7, "a").child("b", 3).child("c")
    assert repr(nested) == "SeededSource(7, 'a', 'b', 3, 'c')"
    assert nested.words(4).tolist() == words_of(7, "a", "b", 3, "c")


def test_numpy_integers_name_the_same_streams_as_plain_ones() -> None:
    assert words_of(np.int64(7), np.uint8(3)) == words_of(7, 3)


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
    assert [*source.words(3).tolist(), *source.words(2).tolist()] == words_of(7, "a", count=5)


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


def test_every_stream_of_a_path_has_draws_of_its_own() -> None:
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


def test_a_generator_opens_no_stream_and_repeats_none_of_its_draws() -> None:
    source = SeededSource(7, "population")
    raw = source.generator().bit_generator.random_raw(100)
    assert not set(raw.tolist()) & set(SeededSource(7, "population").words(100).tolist())


@pytest.mark.statistical
@BOTH_DIRECTIONS
@pytest.mark.parametrize("place", range(8))
def test_each_byte_of_a_word_is_uniform(
    seed: int, place: int, factor: float, passes: bool
) -> None:
    """n = 200 000 in 256 cells; false alarm FALSE_ALARM."""
    bytes_ = SeededSource(seed, "bytes", place).words(200_000).view(np.uint8)[place::8]
    distribution = tilted([1 / 256] * 256, factor)
    assert (chi_square_p(np.bincount(bytes_, minlength=256), distribution) > FALSE_ALARM) is passes


@pytest.mark.statistical
@BOTH_DIRECTIONS
def test_words_are_uniform_as_numbers(seed: int, factor: float, passes: bool) -> None:
    """n = 100 000; false alarm FALSE_ALARM."""
    numbers = SeededSource(seed, "numbers").words(100_000) / 2.0**64
    assert (ks_p(numbers, lambda x: np.asarray(x**factor)) > FALSE_ALARM) is passes
