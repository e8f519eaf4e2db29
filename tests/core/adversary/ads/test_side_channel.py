"""Numbers and times of requests: what they tell, and that padding ends it."""

import math

import numpy as np
import pytest

from noisefloor.adversary.ads.side_channel import (
    attack_activity,
    class_success,
    guess_class,
    padded,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

DEVICES = 30_000
SHAPE = np.array([0.5, 1.0, 1.5, 3.0])
LEVELS = np.array([0.5, 1.0, 2.5])[:, None] * SHAPE


def drawn(rates: Floats, prior: Floats, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return classes by their prior, and Poisson counts per hour."""
    generator = SeededSource(seed, name).generator()
    truth = generator.choice(len(prior), DEVICES, p=prior)
    return truth, generator.poisson(rates[truth])


def poisson_success(totals: Floats, prior: Floats) -> float:
    """Sum over the total count, term by term."""
    pairs = list(zip(prior, totals, strict=True))
    return math.fsum(
        max(p * math.exp(k * math.log(t) - t - math.lgamma(k + 1)) for p, t in pairs)
        for k in range(200)
    )


def test_classes_that_differ_in_activity_alone_are_distinguished_by_the_total() -> None:
    prior = np.array([0.5, 0.3, 0.2])
    expected = poisson_success(LEVELS.sum(axis=1), prior)
    assert class_success(LEVELS, prior) == pytest.approx(expected, rel=1e-9)
    assert class_success(np.ones((3, 4)), prior) == pytest.approx(0.5)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "rates", [LEVELS, np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]])], ids=["level", "rhythm"]
)
def test_activity_is_guessed_as_often_as_the_poisson_distribution_says(
    rates: Floats, seed: int
) -> None:
    # n = 30,000 devices; false alarm FALSE_ALARM. The twin: the prior alone.
    prior = np.array([0.5, 0.3, 0.2])
    truth, counts = drawn(rates, prior, seed, "activity")
    outcome = attack_activity(counts, truth, rates, prior)
    assert outcome.closed_form is not None
    assert binomial_p(outcome.right, outcome.n, outcome.closed_form) > FALSE_ALARM
    assert binomial_p(outcome.right, outcome.n, outcome.baseline) < FALSE_ALARM
    assert not outcome.is_covered and outcome.bound == 1.0


@pytest.mark.statistical
def test_a_constant_number_of_requests_tells_nothing(seed: int) -> None:
    # n = 30,000 devices; false alarm FALSE_ALARM.
    prior = np.array([0.5, 0.3, 0.2])
    truth, counts = drawn(LEVELS, prior, seed, "padding")
    seen, dummies, dropped = padded(counts, 4)
    assert (seen == 4).all()
    assert dummies - dropped == 4 * counts.size - counts.sum()
    assert dropped == np.maximum(counts - 4, 0).sum()
    outcome = attack_activity(counts, truth, LEVELS, prior, quota=4)
    assert outcome.closed_form == outcome.baseline == 0.5
    assert binomial_p(outcome.right, outcome.n, outcome.baseline) > FALSE_ALARM
    # Whoever takes the padded counts for real ones names one class for all: no better.
    assert np.unique(guess_class(seen, LEVELS, prior).candidate).size == 1


@pytest.mark.statistical
def test_classes_that_do_not_differ_are_a_null_and_far_ones_a_leak(seed: int) -> None:
    prior = np.array([0.5, 0.5])
    truth, counts = drawn(np.full((2, 3), 2.0), prior, seed, "null")
    null = attack_activity(counts, truth, np.full((2, 3), 2.0), prior)
    assert binomial_p(null.right, null.n, 0.5) > FALSE_ALARM
    far = np.array([[0.1, 0.1], [20.0, 20.0]])
    truth, counts = drawn(far, prior, seed, "leak")
    assert attack_activity(counts, truth, far, prior).interval[0] > 0.999


def test_what_are_no_rates_is_refused() -> None:
    counts = np.zeros((2, 3), dtype=np.int64)
    with pytest.raises(BadParameter, match="rates"):
        guess_class(counts, np.zeros((2, 3)))
    with pytest.raises(BadParameter, match="counts"):
        guess_class(counts, np.ones((2, 4)))
    with pytest.raises(BadParameter, match="quota"):
        padded(counts, -1)
    many = np.array([[100.0 + i, 200.0 - i] for i in range(2)]).T @ np.diag([1.0, 2.0])
    assert class_success(np.hstack([many, many + 1, many + 2])) is None
