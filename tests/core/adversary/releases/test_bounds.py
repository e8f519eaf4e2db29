"""Bounds on reconstruction: never passed by any finite mechanism, reached by the worst."""

import math

import numpy as np
import pytest

from noisefloor.adversary.releases.reconstruction_bounds import (
    as_substitution,
    candidate_bound,
    group_guarantee,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource

SUBSTITUTE = Neighbours.RECORD_SUBSTITUTE


def cost_of(channel: Floats, epsilon: float) -> Guarantee:
    """Return the exact delta of a finite channel at epsilon, over all pairs of its rows."""
    gaps = channel[:, None] - math.exp(epsilon) * channel[None]
    delta = float(np.maximum(gaps, 0).sum(axis=2).max())
    return Guarantee(epsilon, SUBSTITUTE, delta=min(1.0, delta))


def channels() -> list[tuple[Floats, Floats, float]]:
    """Return finite channels with a prior and an epsilon, drawn at random."""
    draw = SeededSource(3, "channels").generator()
    made = []
    for _ in range(400):
        size, kinds = int(draw.integers(2, 6)), int(draw.integers(2, 8))
        channel = draw.dirichlet(np.full(kinds, draw.choice([0.2, 1.0, 5.0])), size)
        prior = draw.dirichlet(np.full(size, draw.choice([0.3, 3.0])))
        made.append((channel, prior, float(draw.choice([0.05, 0.5, 2.0]))))
    return made


def test_no_finite_mechanism_passes_the_bound_for_candidates() -> None:
    # Listed: 400 channels; the best guess names the largest prior times chance. The twin: a bound
    # at half the epsilon and no delta is passed.
    passed = 0
    for channel, prior, epsilon in channels():
        best = (prior[:, None] * channel).max(axis=0).sum()
        assert best <= candidate_bound(cost_of(channel, epsilon), prior) + 1e-12
        passed += best > candidate_bound(Guarantee(epsilon / 2, SUBSTITUTE), prior) + 1e-12
    assert passed > 50


@pytest.mark.parametrize("size", [2, 3, 10])
def test_randomised_response_reaches_the_bound(size: int) -> None:
    epsilon = 0.7
    channel = np.ones((size, size)) + (math.exp(epsilon) - 1) * np.eye(size)
    channel /= channel.sum(axis=1, keepdims=True)
    bound = candidate_bound(Guarantee(epsilon, SUBSTITUTE), np.full(size, 1 / size))
    assert bound == pytest.approx(channel.diagonal().mean(), rel=1e-12)


def test_a_guarantee_for_adding_reaches_substitution_in_two_steps() -> None:
    adding = Guarantee(0.5, Neighbours.RECORD_ADD_REMOVE, delta=1e-5)
    both = as_substitution(adding)
    assert both.neighbours is SUBSTITUTE
    assert both.epsilon == 1.0
    assert both.delta == pytest.approx(1e-5 * (1 + math.exp(0.5)))
    assert as_substitution(both) is both
    with pytest.raises(BadParameter, match="neighbours"):
        as_substitution(Guarantee(1.0, Neighbours.USER))


def test_groups_of_a_release_without_guarantee_have_none() -> None:
    nothing = as_substitution(Guarantee.none("plain", Neighbours.RECORD_ADD_REMOVE))
    assert candidate_bound(nothing, np.full(4, 0.25)) == 1.0
    assert group_guarantee(Guarantee(900.0, SUBSTITUTE, delta=1e-9), 3).delta == 1.0
    assert group_guarantee(Guarantee(1.0, SUBSTITUTE), 3) == Guarantee(3.0, SUBSTITUTE)
