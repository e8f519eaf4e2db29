"""The area is that of all pairs, and its interval covers it about as often as it says."""

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.publication.text.evaluation import area_interval, rank_area
from noisefloor.randomness import SeededSource

HALVES = np.array([1.0, 0.0])


def test_the_area_counts_pairs_and_halves_ties() -> None:
    positive, negative = np.array([3.0, 1.0, 2.0]), np.array([2.0, 0.0])
    pairs = [(one > two) + (one == two) / 2 for one in positive for two in negative]
    assert rank_area(positive, negative) == pytest.approx(np.mean(pairs))
    assert rank_area(negative, positive) == pytest.approx(1 - np.mean(pairs))
    with pytest.raises(BadParameter, match="at least one"):
        rank_area(positive, negative[:0])


def test_an_area_of_one_has_an_interval_of_wilsons() -> None:
    # Wilson's for 50 of 50 ends at n / (n + z^2).
    assert area_interval(np.ones(50), np.zeros(80)) == pytest.approx(
        (50 / (50 + 3.8415), 1.0), 1e-4
    )
    assert area_interval(np.zeros(50), np.ones(50))[1] == pytest.approx(3.8415 / 53.8415, 1e-3)
    low, high = area_interval(HALVES, HALVES[::-1])
    assert 0 <= low < 0.5 < high <= 1


@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_the_interval_covers_the_area_and_a_third_of_it_does_not(seed: int, shift: float) -> None:
    # 400 samples of 40 and 60 normals, whose area is Phi(shift / sqrt 2). At a coverage of 0.95
    # fewer than 46 miss it (binomial, false alarm 1e-6); a third of the interval misses oftener.
    from scipy.stats import norm

    draw = SeededSource(seed, "area", f"{shift:g}").generator()
    area = norm.cdf(shift / np.sqrt(2))
    missed = thirds = 0
    for _ in range(400):
        positive, negative = draw.normal(shift, 1, 40), draw.normal(0, 1, 60)
        low, high = area_interval(positive, negative)
        found = rank_area(positive, negative)
        missed += not low <= area <= high
        thirds += not found - (found - low) / 3 <= area <= found + (high - found) / 3
    assert missed < 46
    assert thirds > 46
