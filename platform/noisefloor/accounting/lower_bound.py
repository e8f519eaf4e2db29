"""An epsilon that Gaussian noise does not go below: what an audit has shown of it.

The accountant rounds privacy losses up, so that what it says is safe to promise. An audit that has
shown noise to be at most so large may say only what is safe to accuse of: here losses are rounded
down.
"""

import math
from dataclasses import replace
from functools import lru_cache

from noisefloor.accounting.accountant import (
    SLACK_PER_STEP,
    SampledGaussian,
    check_record_relation,
    epsilon_at,
    quiet_library,
)
from noisefloor.accounting.bounds import gaussian_delta
from noisefloor.checks import check_probability
from noisefloor.privacy import Neighbours

_COARSEST_GRID = 1.0
_FIRST_LOOK = 0.1  # a slack that is quick: what it gives sets the grid that is asked for


def epsilon_at_least(
    event: SampledGaussian,
    delta: float,
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
    *,
    slack: float = 0.02,
) -> float:
    """Return an epsilon that sampled Gaussian noise does not go below, at a delta.

    Args:
        event: The noise.
        delta: Above 0.
        neighbours: RECORD_ADD_REMOVE or RECORD_SUBSTITUTE; any other relation is refused.
        slack: By about which share the answer may be low; the smaller, the longer it takes. That
            of the full batch is exact.
    """
    check_probability(delta, "delta")
    check_record_relation(neighbours)
    is_substitute = neighbours is Neighbours.RECORD_SUBSTITUTE
    # A record that becomes another is no worse than twice as far away.
    larger = replace(event, noise_multiplier=event.noise_multiplier / (1 + is_substitute))
    if event.sampling_rate == 1:
        return _gaussian(math.sqrt(event.count) / larger.noise_multiplier, delta)
    rough, found = epsilon_at([larger], delta, "rdp").epsilon, 0.0
    try:
        for share in (_FIRST_LOOK, slack):
            # Rounding down takes half of a grid step off each release.
            base = max(found, rough / 3)  # a first look may be far too low
            grid = min(2 * share * base / event.count, _COARSEST_GRID)
            found = max(found, _sampled(event, delta, grid, is_substitute=is_substitute))
    except OverflowError:  # so little noise that losses are no floats
        return found
    return found


def _gaussian(mu: float, delta: float) -> float:
    """Return the epsilon of mu-Gaussian privacy, from below."""
    low, high = 0.0, mu**2 + 20 * mu  # its delta is far below any float
    if gaussian_delta(low, mu) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return low


@lru_cache(maxsize=256)  # the same plan is published week by week
def _sampled(event: SampledGaussian, delta: float, grid: float, *, is_substitute: bool) -> float:
    """Ask the library for a distribution of losses that are rounded down."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    relation = "REPLACE_ONE" if is_substitute else "ADD_OR_REMOVE_ONE"
    with quiet_library():
        losses = privacy_loss_distribution.from_gaussian_mechanism(
            event.noise_multiplier,
            pessimistic_estimate=False,
            value_discretization_interval=grid,
            sampling_prob=event.sampling_rate,
            use_connect_dots=False,  # the other way of rounding is never optimistic
            neighboring_relation=NeighboringRelation[relation],
        ).self_compose(event.count)
        # What Fourier transforms err by may have come on top of the library's delta.
        found = losses.get_epsilon_for_delta(delta + SLACK_PER_STEP * max(1000, event.count))
    return max(0.0, float(found))
