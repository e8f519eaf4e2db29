"""Adding users changes the draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.checks import BLOCK, blocks
from noisefloor.distributions import ONE, FiniteDistribution
from noisefloor.randomness import SeededSource, Source, Words, new_run

HALF = 1 << 32
DISTRIBUTION = FiniteDistribution.of((ONE // 3, ONE // 5, ONE - ONE // 3 - ONE // 5))
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
    "draw": lambda source, start, stop: source.draw(DISTRIBUTION, stop - start),
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
def test_more_users_leave_the_draws_of_those_who_were_there(
    primitive: Primitive, width: int
) -> None:
    step = BLOCK // width
    many = drawn_in_blocks(primitive, 2 * step + 1001, width)
    for users in (1, 2, 7, step - 1, step, step + 1, step + 10, 2 * step, 2 * step + 3):
        few = drawn_in_blocks(primitive, users, width)
        assert np.array_equal(few, many[: users * width])
