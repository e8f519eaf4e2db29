"""People: made anew from their streams, the same each time, heavy-tailed, with devices."""

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario.sections import Devices, Engagement, Offline, Population, Shares
from noisefloor_sim.world.population import Cohort, cohort_sizes, make_cohort
from statistics_of_tests import FALSE_ALARM, binomial_p

DAYS = 30


def cohort(number: int = 0, devices: Devices | None = None, **people: object) -> Cohort:
    shape = Population.model_validate({"users": 50_000, "cohort": 4096, **people})
    return make_cohort(shape, devices or Devices(), DAYS, number, SeededSource(3, "world"))


def same(one: Cohort, other: Cohort, size: int) -> bool:
    names = ("interests", "engagement", "owns", "silent", "leaves")
    return all(np.array_equal(getattr(one, x)[:size], getattr(other, x)[:size]) for x in names)


def test_a_cohort_is_the_same_each_time_it_is_made() -> None:
    assert same(cohort(2), cohort(2), 4096)
    assert not same(cohort(2), cohort(3), 4096)


def test_adding_users_moves_nobody() -> None:
    few, many = cohort(users=1_000), cohort(users=3_000)
    assert (len(few), len(many)) == (1_000, 3_000)
    assert same(few, many, 1_000)


def test_cohorts_add_up_to_the_population() -> None:
    assert cohort_sizes(2_500, 1_024) == [1_024, 1_024, 452]
    assert cohort_sizes(1_024, 1_024) == [1_024]
    assert cohort_sizes(1, 1_024) == [1]


def test_interests_are_shares_and_concentrated_when_asked() -> None:
    few, even = cohort(interests_concentration=0.1), cohort(interests_concentration=100.0)
    np.testing.assert_allclose(few.interests.sum(axis=1), 1.0, rtol=1e-5)
    assert few.interests.max(axis=1).mean() > 0.5 > even.interests.max(axis=1).mean()


@pytest.mark.statistical
def test_engagement_is_heavy_tailed_with_the_asked_mean() -> None:
    # n = 4,096, tail exponent 5: the mean has a standard error of 0.26 / sqrt(n) of itself; six
    # of them alarm falsely less than once in 10**8. The twin: a mean 10 % off is rejected.
    people = cohort(engagement=Engagement(mean_views_per_day=10.0, tail_exponent=5.0))
    error = 10.0 * 0.2582 / np.sqrt(len(people))
    assert abs(people.engagement.mean() - 10.0) < 6 * error
    assert abs(people.engagement.mean() - 11.0) > 6 * error
    assert people.engagement.min() == pytest.approx(8.0, abs=0.05)


def test_everybody_owns_something() -> None:
    rare = Devices(shares=Shares(phone=0.0, laptop=0.01, wearable=0.02))
    people = cohort(devices=rare)
    assert people.owns.any(axis=1).all()
    assert not people.owns[:, 0].any()


def test_devices_that_never_fail_are_never_silent() -> None:
    steady = Devices(sync_per_day=1.0, offline=Offline(start_per_day=0.0))
    assert not cohort(devices=steady).silent.any()
    assert cohort(devices=Devices(sync_per_day=0.0)).silent.all()


def test_long_spells_last_for_days() -> None:
    spells = Devices(sync_per_day=1.0, offline=Offline(start_per_day=0.05, mean_h=240.0))
    silent = cohort(devices=spells).silent
    # Silent on a day with long spells: most likely silent on the day before as well.
    again = silent[:, :, 9][silent[:, :, 10]].mean()
    assert again > 2 * silent[:, :, 9].mean()


@pytest.mark.statistical
def test_a_device_is_silent_while_a_spell_lasts_and_no_longer() -> None:
    # One spell a day, begun at any hour, of 2 hours on average: at the end of the first day a
    # device is in one with probability (2 / 24) (1 - e**-12). n = 12,288; false alarm
    # FALSE_ALARM. The twin: spells of 3 hours.
    spells = Devices(sync_per_day=1.0, offline=Offline(start_per_day=1.0, mean_h=2.0))
    silent = cohort(devices=spells).silent[:, :, 0]
    counts = int(silent.sum()), silent.size
    assert binomial_p(*counts, 2 / 24) > FALSE_ALARM
    assert binomial_p(*counts, 3 / 24) < FALSE_ALARM


@pytest.mark.statistical
def test_each_day_the_same_share_leaves() -> None:
    # n = 4,096; on the first day and of those who stay on the second; false alarm FALSE_ALARM
    # each. The twins: 0.15.
    leaves = cohort(churn_per_day=0.2).leaves
    for day in (0, 1):
        left, there = int((leaves == day).sum()), int((leaves >= day).sum())
        assert binomial_p(left, there, 0.2) > FALSE_ALARM
        assert binomial_p(left, there, 0.15) < FALSE_ALARM


def test_without_churn_nobody_leaves() -> None:
    assert (cohort(churn_per_day=0.0).leaves == DAYS).all()
    leaving = cohort(churn_per_day=0.2).leaves
    assert (leaving < DAYS).mean() > 0.95
