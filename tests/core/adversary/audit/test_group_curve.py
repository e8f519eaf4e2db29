"""The curve of sampled Gaussian noise is exact, and tests against it accuse no honest noise."""

import math

import numpy as np
import pytest

from noisefloor.accounting import gaussian_true_positive_rate
from noisefloor.adversary.audit import GroupCurve, lower_limit, upper_limit
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

CURVES = [
    GroupCurve.of(1.0, 30.0, is_substitute=False),
    GroupCurve.of(1.0, 30.0, is_substitute=True),
    GroupCurve.of(0.05, 6.0, is_substitute=False),
    GroupCurve.of(0.05, 0.8, is_substitute=True),
    GroupCurve.of(0.3, 0.9, is_substitute=False),
]
ALPHA = 1e-6


def played(curve: GroupCurve, games: int, share: float, seed: int) -> tuple[int, int]:
    """Return how many sums pass the threshold on both inputs, by another sampler than releases."""
    generator = SeededSource(seed, "group", repr(curve), str(share)).generator()
    moved = generator.binomial(curve.records, curve.rate, (2, games)).astype(np.float64)
    moved[1] *= -1 if curve.is_substitute else 0
    noise = share * curve.multiplier * generator.standard_normal((2, games))
    hits = np.count_nonzero(moved + noise >= curve.threshold(0.75), axis=1)
    return int(hits[0]), int(hits[1])


def test_the_full_batch_has_the_closed_form_of_gaussian_privacy() -> None:
    rates, shares = np.array([1e-3, 0.1, 0.5, 0.9]), np.array([0.75, 1.0, 1.5])
    for curve in CURVES[:2]:
        mu = (1 + curve.is_substitute) * curve.records / curve.multiplier
        for rate in rates:
            expected = gaussian_true_positive_rate(rate, mu / shares)
            found = curve.largest_true_rates(float(rate), shares)
            np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("curve", CURVES[2:], ids=repr)
def test_no_event_of_a_fine_grid_does_better_than_the_curve(curve: GroupCurve) -> None:
    """Neyman and Pearson by enumeration: cells of the real line, sorted by likelihood ratio."""
    from scipy.special import ndtr
    from scipy.stats import binom

    moved = np.arange(curve.records + 1)
    weights = binom.pmf(moved, curve.records, curve.rate)
    edges = np.linspace(-30 * curve.multiplier - 30, 30 * curve.multiplier + 60, 1_001)

    def cells(sign: int) -> np.ndarray:
        below = ndtr((edges[:, None] - sign * moved) / curve.multiplier) @ weights
        return np.diff(below)

    first, second = cells(1), cells(-1 if curve.is_substitute else 0)
    order = np.argsort(first / np.maximum(second, 1e-300))[::-1]
    for rate in (0.02, 0.3):
        last = int(np.searchsorted(second[order].cumsum(), rate))
        reached = float(first[order][:last].sum())
        allowed = curve.largest_true_rates(rate, np.ones(1)).item()
        assert reached <= allowed + 1e-12
        assert reached > allowed - 0.05  # the last cell is not split


@pytest.mark.statistical
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_declared_noise_is_not_refuted_and_three_quarters_are(curve: GroupCurve) -> None:
    """20,000 games on each input; two seeds alarm falsely with 2e-6 at most."""
    for seed in range(2):
        honest = curve.refuted_share(*played(curve, 20_000, 1.0, seed), (20_000,) * 2, ALPHA)
        assert 1 < honest < 1.2
        faulty = curve.refuted_share(*played(curve, 20_000, 0.75, seed), (20_000,) * 2, ALPHA)
        assert 0.75 < faulty < 0.9
        assert curve.refuted_share(500, 500, (1_000, 1_000), ALPHA) == math.inf


@pytest.mark.statistical
def test_honest_noise_is_refuted_as_rarely_as_stated() -> None:
    """200 audits at alpha 0.2: 40 alarms are allowed; 80 or more have probability below 1e-9.

    The twin: noise a tenth too small is refuted in nearly all of them.
    """
    curve, games, alarms = CURVES[0], 20_000, {1.0: 0, 0.9: 0}
    for share in alarms:
        for seed in range(200):
            hits, false = played(curve, games, share, seed)
            allowed = curve.largest_true_rates(upper_limit(false, games, 0.1).item(), np.ones(1))
            alarms[share] += bool(lower_limit(hits, games, 0.1) > allowed)
    assert alarms[1.0] < 80 < 180 < alarms[0.9]


def test_less_noise_is_never_harder_to_see() -> None:
    shares = np.geomspace(0.5, 10, 40)
    for curve in CURVES:
        assert (np.diff(curve.largest_true_rates(0.2, shares)) <= 1e-12).all()
    with pytest.raises(BadParameter, match="rate"):
        GroupCurve(3, 0.0, 1.0, is_substitute=False)
