"""Lengths: copied ones give texts away, lengths that do not follow from the corpus do not."""

import numpy as np
import pytest

from noisefloor.adversary.text import attack_lengths, link_lengths
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

CLAIMED = Guarantee(1.0, Neighbours.DOCUMENT)


def world(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lengths of targets, their memberships, and lengths of all other texts."""
    draw = SeededSource(seed, "lengths").generator()
    targets = draw.permutation(np.arange(40, 440))
    return targets, draw.random(400) < 0.5, draw.integers(20, 40, 600)


def test_unique_lengths_that_are_copied_give_every_membership_away() -> None:
    targets, members, rest = world(1)
    published = np.concatenate([targets[members], rest])
    found = attack_lengths(targets, members, published, CLAIMED, rest=rest)
    assert found.unique is not None
    assert found.unique.success == found.all.success == 1.0
    assert found.all.bound == pytest.approx(np.e / (1 + np.e))
    assert found.all.interval[0] > found.all.bound


@pytest.mark.statistical
def test_lengths_from_elsewhere_give_nothing_away(seed: int) -> None:
    # 400 targets, fair memberships: exact binomial at FALSE_ALARM. The twin is the test above.
    targets, members, rest = world(seed)
    published = SeededSource(seed, "public").generator().integers(20, 440, 800)
    found = attack_lengths(targets, members, published, CLAIMED, rest=rest)
    assert binomial_p(found.all.right, found.all.n, 0.5) > FALSE_ALARM


def test_known_texts_of_the_same_length_are_taken_off() -> None:
    targets, members = np.array([7, 8]), np.array([False, True])
    rest = np.array([7, 7, 8])
    published = np.array([7, 7, 8, 8])
    assert attack_lengths(targets, members, published, CLAIMED, rest=rest).all.right == 2
    # Without knowing them, 7 seems to be there.
    assert attack_lengths(targets, members, published, CLAIMED).all.right == 1
    assert attack_lengths(targets, members, published, CLAIMED, rest=rest).unique is None
    skewed = attack_lengths(targets, members, published, CLAIMED, prior=0.9)
    assert skewed.all.baseline == skewed.all.bound == pytest.approx(0.9)


def test_each_different_length_is_linked_once_on_average() -> None:
    originals = SeededSource(2, "spread").generator().permutation(np.repeat(np.arange(200), 5))
    found = link_lengths(originals, originals, CLAIMED, SeededSource(2, "links"))
    assert found.closed_form == pytest.approx(0.2)
    assert found.interval[0] < 0.2 < found.interval[1]
    assert found.baseline == 1 / 1000
    assert found.bound == pytest.approx(np.exp(4) / (np.exp(4) + 999))
    unique = np.arange(50)
    assert link_lengths(unique, unique, CLAIMED, SeededSource(2, "unique")).success == 1.0


def test_lengths_that_nobody_has_link_nothing() -> None:
    found = link_lengths(np.arange(9), np.arange(9) + 100, CLAIMED, SeededSource(1, "none"))
    assert (found.right, found.closed_form) == (0, None)
    mixed = link_lengths(
        np.arange(300), np.arange(300)[::-1].copy(), CLAIMED, SeededSource(1, "other")
    )
    assert mixed.right == 0


def test_targets_without_memberships_are_refused() -> None:
    lengths = np.array([1, 2])
    with pytest.raises(BadParameter, match="targets"):
        attack_lengths(lengths, np.array([True]), lengths, CLAIMED)
    with pytest.raises(BadParameter, match="prior"):
        attack_lengths(lengths, lengths > 1, lengths, CLAIMED, prior=1.5)
    with pytest.raises(BadParameter, match="as many as the originals"):
        link_lengths(lengths, lengths[:1], CLAIMED, SeededSource(1, "x"))
