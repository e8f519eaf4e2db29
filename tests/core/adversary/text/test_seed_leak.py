"""Seeds: the paper's sampling leaks a unique piece exactly as often as the formula says."""

import numpy as np
import pytest

from made_up_texts import documents_of, same_length
from noisefloor.adversary.text import attack_seeds, leak_chance, search_pieces
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

CLAIMED = Guarantee(1.0, Neighbours.DOCUMENT, delta=1e-5)


def test_the_chance_is_that_of_the_formula() -> None:
    assert leak_chance(1, 6_000_000, 25_000) == pytest.approx(0.00416, abs=1e-5)
    assert leak_chance(5, 6_000_000, 25_000) == pytest.approx(0.0206, abs=1e-4)
    assert leak_chance(1, 2, 3) == pytest.approx(7 / 8)
    assert (leak_chance(2, 2, 1), leak_chance(2, 2, 0), leak_chance(0, 2, 9)) == (1, 0, 0)
    with pytest.raises(BadParameter, match="occurrences"):
        leak_chance(3, 2, 1)


def test_pieces_are_counted_wherever_they_stand() -> None:
    texts = documents_of([[5, 1, 5], [], [2]])
    assert search_pieces(texts, np.array([5, 2, 9, 1])).tolist() == [2, 1, 0, 1]
    assert search_pieces(texts, np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.statistical
def test_seeds_of_the_raw_corpus_leak_as_often_as_they_should(seed: int) -> None:
    # 2,000 pieces of one text each among 20,000; 3,000 seeds: exact binomial at FALSE_ALARM,
    # though pieces compete (their number varies less than a binomial). The twin has a tenth
    # fewer seeds than are claimed.
    corpus = np.concatenate([np.arange(2000), np.full(18_000, 2000)])
    drawn = SeededSource(seed, "seeds").generator().integers(0, 20_000, 3000)
    planted = np.arange(2000)
    released = same_length(corpus[drawn][:, None], np.zeros(3000, dtype=np.int64))
    chance = leak_chance(1, 20_000, 3000)
    found = attack_seeds(released, planted, CLAIMED, chance=chance)
    assert binomial_p(found.right, found.n, chance) > FALSE_ALARM
    assert found.closed_form == chance
    assert found.bound == pytest.approx(1e-5)
    assert found.interval[0] > found.bound
    twin = leak_chance(1, 20_000, 6000)
    assert binomial_p(found.right, found.n, twin) < FALSE_ALARM


def test_seeds_from_a_public_list_find_controls_as_often() -> None:
    drawn = SeededSource(3, "public").generator().integers(0, 4000, 3000)
    released = same_length(drawn[:, None], np.zeros(3000, dtype=np.int64))
    found = attack_seeds(released, np.arange(2000), CLAIMED, controls=np.arange(2000, 4000))
    assert found.interval[0] < found.baseline < found.interval[1]
    assert found.interval[0] < found.bound
    assert found.bound > found.baseline
    unseen = attack_seeds(released, np.arange(9000, 9010), CLAIMED, controls=np.array([9999]))
    assert (unseen.right, unseen.baseline) == (0, 0.0)
    with pytest.raises(BadParameter, match="planted"):
        attack_seeds(released, np.array([], dtype=np.int64), CLAIMED)
