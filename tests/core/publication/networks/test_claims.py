"""What is claimed, what is proved, and the counter-examples that lie between the two."""

import math

import numpy as np
import pytest

from noisefloor.accounting import LaplaceNoise, epsilon_at
from noisefloor.privacy import Neighbours
from noisefloor.publication.networks import (
    AnonymisedLearning,
    LearningFirst,
    NetworkTraining,
    claims_of,
)
from noisefloor.publication.networks.claims import laplace_guarantee
from statistics_of_tests import Floats

FEW = NetworkTraining(epochs=2)


def epsilons(learning: LearningFirst | AnonymisedLearning) -> list[tuple[float, float, str]]:
    return [
        (one.claim.claimed.epsilon, one.claim.proved.epsilon, one.claim.verdict)
        for one in claims_of(learning, 100)
    ]


def test_as_printed_nothing_is_proved_and_the_reason_is_given() -> None:
    for learning in (LearningFirst(1.0, 100, "printed"), AnonymisedLearning(1.0, FEW, "printed")):
        assert epsilons(learning) == [(1.0, math.inf, "overclaimed")] * 2
        assert all(one.claim.proved.reason for one in claims_of(learning, 100))


def test_clamped_before_the_noise_one_parameter_holds_and_the_model_does_not() -> None:
    one, whole = epsilons(LearningFirst(1.0, 100, "clamped"))
    assert (one[1], whole[1]) == pytest.approx((1.0, 100.0), rel=2e-6)
    assert (one[2], whole[2]) == ("holds", "overclaimed")


def test_clipped_before_the_noise_not_even_one_parameter_holds() -> None:
    assert epsilons(AnonymisedLearning(1.0, FEW, "clipped")) == [(1.0, 100.0, "overclaimed")] * 2


def test_corrected_the_model_holds() -> None:
    for learning in (
        LearningFirst(1.0, 100, "corrected"),
        AnonymisedLearning(1.0, FEW, "widths"),
        AnonymisedLearning(1.0, FEW, "norm"),
    ):
        claimed, proved, verdict = epsilons(learning)[1]
        assert (claimed, verdict) == (1.0, "holds")
        assert proved == pytest.approx(1.0, rel=2e-6)


def test_a_delta_helps_only_so_much() -> None:
    loose = claims_of(LearningFirst(0.1, 1000, "clamped"), 1000)[1].approximate
    assert loose is not None
    assert 17 < loose.epsilon < 18.6
    assert loose.delta == 1e-5
    epochs = claims_of(AnonymisedLearning(1.0, NetworkTraining(epochs=10), "clipped"), 100)[1]
    assert epochs.approximate is not None
    assert epochs.approximate.epsilon == pytest.approx(laplace_guarantee(0.1, 1000).epsilon)
    assert claims_of(LearningFirst(1.0, 100, "corrected"), 100)[1].approximate is None


@pytest.mark.parametrize(
    ("epsilon", "count", "figure"),
    [(1.0, 1000, 485), (0.1, 1000, 18.6), (0.01, 1000, 1.30), (0.1, 10_000, 93.6)],
)
def test_many_laplace_releases_by_renyi_divergences(
    epsilon: float, count: int, figure: float
) -> None:
    """Figures of an independent computation, at delta 1e-5; the tight accountant is below."""
    events = [LaplaceNoise(2 / epsilon, count)]
    found = epsilon_at(events, 1e-5, "rdp", Neighbours.RECORD_SUBSTITUTE)
    assert found.epsilon == pytest.approx(figure, rel=5e-3)
    assert 0.9 * figure < laplace_guarantee(epsilon, count).epsilon < found.epsilon


def mean_log_density(places: Floats, x: float, e: float) -> Floats:
    """Return the log-density of the mean of two values x + Lap(1 / e)."""
    size = 2 * e * np.abs(places - x)
    return np.asarray(np.log(e / 2) + np.log1p(size) - size)


def test_one_parameter_that_follows_from_two_costs_twice() -> None:
    """C2: a1, b1 = x + Lap(1/e) cost e each; a2 = (a1 + b1) / 2 uses no data and costs 2 e."""
    places = np.linspace(-100, 100, 200_001)
    ratio = mean_log_density(places, 0.0, 1.0) - mean_log_density(places, 1.0, 1.0)
    assert np.exp(mean_log_density(places, 0.0, 1.0)).sum() * 1e-3 == pytest.approx(1, 1e-5)
    assert ratio.max() > 1.98
    assert ratio.max() < 2.0


def test_the_mean_of_two_is_what_two_laplace_numbers_give() -> None:
    """The distribution above against a convolution on a grid, which knows no formula for it."""
    step = 0.01
    grid = np.arange(-2000, 2001) * step
    one = np.exp(-np.abs(grid)) / 2
    both = np.convolve(one, one, mode="same") * step * 2  # density of the mean at grid / 2
    near = np.abs(grid) < 5
    assert both[near] == pytest.approx(
        np.exp(mean_log_density(grid[near] / 2, 0.0, 1.0)), rel=1e-3
    )


def test_the_printed_clamp_always_gives_the_lower_threshold() -> None:
    """C8: min and max are the wrong way round in Lemma 1; meant is min(high, max(low, value))."""
    values, low, high = np.linspace(-3, 3, 61), -1.0, 1.0
    assert (np.minimum(low, np.maximum(high, values)) == low).all()
    assert (np.minimum(low, np.minimum(high, values)) <= low).all()
    meant = np.minimum(high, np.maximum(low, values))
    assert np.array_equal(meant, np.clip(values, low, high))
