"""PM: two values are told by their distance."""

import math

import numpy as np
import pytest

from attack_outcomes import assert_caught, assert_met
from noisefloor.adversary.records.piecewise import (
    attack_pair,
    pair_success,
)
from noisefloor.mechanisms import Piecewise
from noisefloor.randomness import SeededSource


def printed_pair_success(epsilon: float, first: float, second: float) -> float:
    """Return the same without a grid.

    Formula: TV = (p - p e^-eps) min(H - 1, (H + 1) |x - x'| / 2), H = (s + 1) / (s - 1) and
    p = (s^2 - s) / (2 s + 2), s = e^(eps/2); at most 1 - e^(-eps/2).
    """
    s = math.exp(epsilon / 2)
    reach = (s + 1) / (s - 1)
    near = (s * s - s) / (2 * s + 2)
    gap = near * -math.expm1(-epsilon)
    return 0.5 + gap * min(reach - 1, (reach + 1) * abs(first - second) / 2) / 2


@pytest.mark.statistical
@pytest.mark.parametrize("pair", [(-1.0, 1.0), (-0.1, 0.2), (0.9, 1.0)])
def test_two_values_are_distinguished_as_their_distance_says(
    pair: tuple[float, float], seed: int
) -> None:
    # n = 40,000; false alarm FALSE_ALARM. The twin: a draw.
    outcome = attack_pair(Piecewise(2.0), *pair, 40_000, SeededSource(seed, "pair", str(pair[0])))
    assert_met(outcome)
    assert_caught(outcome, 0.5)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_grid_tells_two_values_apart_as_the_line_does(epsilon: float) -> None:
    mechanism = Piecewise(epsilon)
    for pair in ((-1.0, 1.0), (-0.25, 0.5), (0.0, 0.125)):
        exact = np.exp([mechanism.log_likelihood(mechanism.outputs(), one) for one in pair])
        brute = 0.5 + np.abs(exact[0] - exact[1]).sum() / 4
        assert pair_success(mechanism, *pair) == pytest.approx(brute)
        assert pair_success(mechanism, *pair) == pytest.approx(
            printed_pair_success(epsilon, *pair), abs=2e-4
        )
    far = printed_pair_success(epsilon, -1.0, 1.0)
    assert far == pytest.approx(1 - math.exp(-epsilon / 2) / 2)
