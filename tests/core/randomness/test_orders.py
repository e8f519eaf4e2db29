"""Orders: each as likely as any other, and no tie settled by place."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest

from noisefloor.errors import NoisefloorError
from noisefloor.randomness import SeededSource, Source
from scripted_source import Scripted
from statistics_of_tests import FALSE_ALARM, chi_square_p


def test_a_tie_is_drawn_again_and_endless_ties_are_an_error() -> None:
    assert Scripted([5, 5, 1, 30, 10, 20]).permutation(3).tolist() == [1, 2, 0]
    with pytest.raises(NoisefloorError, match="not random"):
        Scripted([7, 7] * 8).permutation(2)


def orders(source: Source, count: int) -> Iterator[tuple[int, ...]]:
    return (tuple(source.permutation(4).tolist()) for _ in range(count))


@pytest.mark.statistical
def test_every_order_is_equally_likely(seed: int) -> None:
    """Four rows, 24,000 draws, chi-square on 24 orders, false alarm 1e-6."""
    places = {order: place for place, order in enumerate(permutations(range(4)))}
    drawn = [places[order] for order in orders(SeededSource(seed, "orders"), 24_000)]
    counts = np.bincount(drawn, minlength=24)
    assert chi_square_p(counts, np.full(24, 1 / 24)) > FALSE_ALARM
    # The twin: ties in coarse words are settled by place instead of being drawn again.
    coarse = SeededSource(seed, "coarse").words(96_000).reshape(-1, 4) >> np.uint64(60)
    tied = [places[tuple(order.tolist())] for order in np.argsort(coarse, axis=1, kind="stable")]
    assert chi_square_p(np.bincount(tied, minlength=24), np.full(24, 1 / 24)) < FALSE_ALARM
