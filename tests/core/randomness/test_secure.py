"""The secure source: it keeps nothing, and what it draws has the asked size."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from forked_children import FORKS, in_forked_child
from noisefloor.distributions import ONE, FiniteDistribution
from noisefloor.randomness import SecureSource, SeededSource, Source
from statistics_of_tests import FALSE_ALARM, binomial_p

DISTRIBUTION = FiniteDistribution.of((ONE // 3, ONE // 5, ONE - ONE // 3 - ONE // 5))


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
def test_draws_are_writable_arrays_of_the_requested_size(make: Callable[[], Source]) -> None:
    source = make()
    for count in (0, 1, 7, 8, 9, 1000):
        drawn: list[NDArray[Any]] = [
            source.words(count),
            source.bernoulli(1, count),
            source.bernoulli(ONE, count),
            source.bernoulli_each(np.full(count, 1 << 63, dtype=np.uint64)),
            source.draw(DISTRIBUTION, count),
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
def test_secure_bits_are_fair() -> None:
    """n = 100 000, never seeded; false alarm FALSE_ALARM; its twins are those of seeded draws."""
    hits = int(np.count_nonzero(SecureSource().bernoulli(1 << 63, 100_000)))
    assert binomial_p(hits, 100_000, 0.5) > FALSE_ALARM
