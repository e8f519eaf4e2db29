"""What clicks per ad take: the closed form scales as it should, and agrees with draws."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickEncoding, ClickReport, counts_of
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Estimate
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.clicks.estimates import ClickCounts
from noisefloor_sim.pipelines.clicks.sample_size import USEFUL, sample_size_metrics

ADS, USERS, RATE = 8, 20_000, 0.01


def figures(found: list[ClickCounts], truths: list[list[int]]) -> dict[str, float]:
    """Return what is said of days with these clicks of each ad."""
    metrics = sample_size_metrics(found, np.array(truths, dtype=np.float64), len(truths))
    return {metric.name: metric.value for metric in metrics}


def counts(users: int, estimate: Estimate) -> ClickCounts:
    """Return estimates whose intervals are not looked at."""
    none = np.full(len(estimate.value), np.nan)
    return ClickCounts(users, estimate, none, none, none)


def test_user_days_follow_from_noise_and_from_the_chance_of_clicks() -> None:
    # 100 clicks an ad, known to 40: the relative error of a day is 0.4, and that of the chance of
    # clicks 0.1; both together come down to 0.2 in (0.16 + 0.01) / 0.04 days.
    estimate = Estimate(np.array([130.0, 70.0]), np.array([40.0, 40.0]))
    found = figures([counts(1_000, estimate)], [[100, 100]])
    assert found["error_relative.formula"] == pytest.approx(0.4)
    assert found["error_relative.gap"] == pytest.approx(0.25)
    assert found["needed.days"] == pytest.approx(0.17 / USEFUL**2)
    assert found["needed.user_days"] == pytest.approx(1_000 * found["needed.days"])
    assert found["needed.users"] == pytest.approx(found["needed.user_days"])


def test_nothing_is_said_where_nothing_was_clicked_or_released() -> None:
    estimate = Estimate(np.zeros(2), np.ones(2))
    assert figures([], [[1, 1]]) == {}
    assert figures([counts(10, estimate)], [[0, 0]]) == {}


@pytest.mark.statistical
def test_the_needed_user_days_bring_the_error_to_what_is_stated(seed: int) -> None:
    # A small run says how many days it takes; the sum of as many days then errs by 0.2 per ad,
    # noise and the chance of clicks together. 25 sums of 8 ads: the root mean square has a
    # relative standard error of 1 / sqrt(400) = 0.05, limits are five of them: false alarm 6e-7.
    # Twin: a quarter of the days errs by twice as much.
    source, draw = SeededSource(seed, "needed"), SeededSource(seed, "clicks").generator()
    mechanism = ClickReport(ADS, 4.0, ClickEncoding.ONE_CLICK)
    clicked = draw.binomial(USERS, RATE / ADS, ADS)
    first = day_of(mechanism, clicked, source.child("once"))
    one = figures([first], [[int(USERS * RATE / ADS)] * ADS])
    days = round(one["needed.days"])
    assert days >= 8
    errors = {}
    for name, length in (("all", days), ("quarter", days // 4)):
        sums = []
        for repeat in range(25):
            clicked = draw.binomial(USERS * length, RATE / ADS, ADS)
            found = day_of(mechanism, clicked, source.child(name, repeat), USERS * length)
            sums.append(found.clicks.value / (USERS * length * RATE / ADS) - 1)
        errors[name] = float(np.sqrt(np.mean(np.square(sums))))
    assert abs(errors["all"] / USEFUL - 1) < 5 * 0.05
    assert abs(errors["quarter"] / USEFUL - 1) > 5 * 0.05


def day_of(
    mechanism: ClickReport, clicked: NDArray[np.int64], source: SeededSource, users: int = USERS
) -> ClickCounts:
    """Return what is estimated of users, given how many clicked each ad, one ad each at most.

    The tally is drawn as it is distributed: rows of bits would take long.
    """
    stay, rise = (weight / ONE for weight in (mechanism.encoding.stay, mechanism.encoding.rise))
    draw = source.generator()
    tally = draw.binomial(clicked, stay) + draw.binomial(users - clicked, rise)
    return counts(users, counts_of(mechanism.estimate(tally, users), users))
