"""An epsilon that Gaussian noise does not go below: what an audit has shown of it.

The accountant rounds privacy losses up, so that what it says is safe to promise. An audit that has
shown noise to be at most so large may say only what is safe to accuse of: here losses are rounded
down.
"""

import math
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
    if event.sampling_rate == 1:
        return _gaussian(
            (1 + is_substitute) * math.sqrt(event.count) / event.noise_multiplier, delta
        )
    # Of a record that comes or goes: substitution costs somewhat more, and gets a finer grid.
    rough = epsilon_at([event], delta, "rdp").epsilon
    # Rounding down takes half of a grid step off each release.
    grid = min(2 * slack * rough / event.count, _COARSEST_GRID)
    try:
        return _sampled(event, delta, grid, is_substitute=is_substitute)
    except OverflowError:  # so little noise that losses are no floats: nothing is said of it
        return 0.0


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
