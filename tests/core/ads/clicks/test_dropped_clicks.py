"""Reports of dropped clicks: the exact distribution, what it guards, and unbiased counts."""

from functools import partial

import numpy as np
import pytest

from enumeration import enumerate_distribution, exact_worst
from noisefloor.ads.clicks.dropped_clicks import DroppedClicks
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import FiniteMechanism, Mechanism, exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.roles import kinds_from_sizes
from statistics_of_tests import FALSE_ALARM, binomial_p


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_enumerated_distribution_is_the_stated_one_and_meets_the_request(
    epsilon: float,
) -> None:
    counter = DroppedClicks(2, epsilon)
    assert isinstance(counter, Mechanism)
    assert isinstance(counter, FiniteMechanism)
    distributions = []
    for clicks in range(9):
        distributions.append(
            enumerate_distribution(partial(counter.randomise, np.array([clicks])))
        )
        stated = np.exp(counter.log_likelihood(counter.outputs(), clicks))
        exact = [float(distributions[-1].get(report, 0)) for report in range(2)]
        assert stated == pytest.approx(exact, abs=1e-13)
    pairs = [(one, other) for one in distributions for other in distributions]
    worst = float(exact_worst(pairs))
    proved = counter.guarantee(Neighbours.USER)
    assert worst <= proved.epsilon <= epsilon
    assert worst >= epsilon - 1e-6
    assert exact_epsilon(counter, Neighbours.USER) == pytest.approx(worst, abs=1e-10)


def test_the_excess_beyond_the_limit_counts_up_to_a_cap() -> None:
    counter = DroppedClicks(2, 1.0)
    assert counter.excess(np.arange(9)).tolist() == [0, 0, 0, 1, 2, 3, 4, 4, 4]
    with pytest.raises(OutOfDomain):
        counter.randomise(np.array([-1]), SeededSource(1, "bad"))
    for limit, most in ((0, 4), (1, 0)):
        with pytest.raises(BadParameter):
            DroppedClicks(limit, 1.0, most)
    assert kinds_from_sizes({"dropped-clicks": {"size": 2}})["dropped-clicks"] == counter.kind


def test_the_mean_of_the_estimate_is_the_mean_excess() -> None:
    counter, clicks = DroppedClicks(1, 1.5), np.array([0, 1, 2, 3, 5, 9])
    ones = [np.exp(counter.log_likelihood(np.array([1]), int(k)))[0] for k in clicks]
    expected = np.array([len(clicks) - sum(ones), sum(ones)])
    found = counter.estimate(expected, len(clicks))
    assert found.value[0] == pytest.approx(counter.excess(clicks).mean())


@pytest.mark.statistical
def test_intervals_cover_all_dropped_clicks(seed: int) -> None:
    """400 runs of 300 users, few of whom drop any; false alarm FALSE_ALARM. At half the length
    they cover too little."""
    counter, clicks = DroppedClicks(1, 2.0), np.repeat([0, 1, 2, 3, 6], [150, 110, 30, 8, 2])
    truth, hits, short = int(counter.excess(clicks).sum()), 0, 0
    for run in range(400):
        tally = counter.tally(counter.randomise(clicks, SeededSource(seed, "dropped", run)))
        low, high = (float(end[0]) for end in counter.interval(tally, len(clicks)))
        hits += low <= truth <= high
        short += abs(truth - (low + high) / 2) <= (high - low) / 4
    assert hits >= 380 or binomial_p(hits, 400, 0.95) > FALSE_ALARM
    assert binomial_p(short, 400, 0.95) < FALSE_ALARM
