"""Days: events that follow interest, position, hour and weekday."""

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from noisefloor_sim.behaviour import AdWorld, Day, hold_ratings, live
from noisefloor_sim.population import Cohort, make_cohort
from noisefloor_sim.scenario.world import Behaviour, Devices, Population

PEOPLE = Population(users=4096, cohort=4096, churn_per_day=0.0)


def people(**changes: object) -> Cohort:
    shape = PEOPLE.model_copy(update=changes)
    return make_cohort(shape, Devices(), 14, 0, SeededSource(5, "world"))


def a_day(day: int = 0, cohort: Cohort | None = None, **behaviour: object) -> Day:
    world = AdWorld(Behaviour.model_validate(behaviour), PEOPLE.topics)
    return live(world, cohort or people(), day, SeededSource(5, "world"))


def test_a_day_is_the_same_each_time_it_is_lived() -> None:
    one, other = a_day(), a_day()
    assert np.array_equal(one.ad, other.ad)
    assert np.array_equal(one.clicked, other.clicked)
    assert not np.array_equal(one.views, a_day(1).views)


def test_impressions_are_views_times_slots() -> None:
    day = a_day(slots_per_view=3)
    assert len(day.user) == 3 * day.views.sum()
    assert np.array_equal(np.bincount(day.user, minlength=4096), 3 * day.views)


def test_views_are_on_devices_that_the_user_owns() -> None:
    cohort = people()
    day = a_day(cohort=cohort)
    assert cohort.owns[day.user, day.device].all()


def test_people_who_left_do_nothing() -> None:
    cohort = people(churn_per_day=0.5)
    day = a_day(3, cohort)
    assert (day.views[cohort.leaves <= 3] == 0).all()
    assert day.views[cohort.leaves > 3].sum() > 0


@pytest.mark.statistical
def test_clicks_follow_the_formula() -> None:
    # About 48,000 impressions in each slot; the expected number of clicks is a sum of
    # chances. Five standard errors: false alarm 6e-7. The twin: 10 % more clicks are rejected.
    cohort = people()
    day = a_day(cohort=cohort, click_base_rate=0.2, position_decay=0.5)
    topics = PEOPLE.topics
    for slot in range(2):
        user, ad = day.user[slot::2], day.ad[slot::2]
        chance = 0.2 * (1 + 4.0 * cohort.interests[user, ad % topics]) * 0.5**slot
        error = np.sqrt((chance * (1 - chance)).sum())
        assert abs(day.clicked[slot::2].sum() - chance.sum()) < 5 * error
        assert abs(day.clicked[slot::2].sum() - 1.1 * chance.sum()) > 5 * error


def test_weekends_and_peaks_are_busier() -> None:
    cohort = people()
    weekday, weekend = a_day(0, cohort, weekend_factor=2.0), a_day(5, cohort, weekend_factor=2.0)
    assert weekend.views.sum() > 1.7 * weekday.views.sum()
    hours = np.bincount(a_day(peak_hours=(20.0,)).hour, minlength=24)
    assert hours[18:22].mean() > 5 * hours[4:8].mean()
    assert hours.sum() == len(a_day(peak_hours=(20.0,)).hour)


def test_popularity_falls_with_rank_or_is_even() -> None:
    steep = np.bincount(a_day(popularity=1.0).ad, minlength=20)
    assert steep[0] > 5 * steep[19] > 0
    even = AdWorld(Behaviour(popularity=0.0), 12).wheel
    assert np.ptp(np.bincount(even)) <= 1
    assert len(even) == 65_536


def test_the_matrix_has_a_bit_for_each_user_and_ad_of_the_chosen_rows() -> None:
    day = a_day()
    bits = day.matrix(day.clicked, 20)
    assert bits.shape == (4096, 20)
    pairs = set(zip(day.user[day.clicked].tolist(), day.ad[day.clicked].tolist(), strict=True))
    assert pairs == {(int(user), int(ad)) for user, ad in np.argwhere(bits)}


def test_ratings_stay_in_range_and_follow_interest() -> None:
    cohort = people()
    world = AdWorld(Behaviour(rated_share=0.4), PEOPLE.topics)
    held = hold_ratings(world, cohort, SeededSource(5, "world"))
    again = hold_ratings(world, cohort, SeededSource(5, "world"))
    assert np.array_equal(held.rating, again.rating)
    assert 0 <= held.rating.min() <= held.rating.max() <= 1
    # 4,096 x 20 coins: five standard errors of 0.0017, false alarm 6e-7.
    assert abs(held.rated.mean() - 0.4) < 5 * 0.00172
    cared = cohort.interests[:, world.topic]
    assert held.rating[cared > 0.3].mean() > held.rating[cared < 0.01].mean() + 0.2


def test_adding_users_changes_nobodys_ratings() -> None:
    world = AdWorld(Behaviour(), PEOPLE.topics)
    few = hold_ratings(world, people(users=1_000), SeededSource(5, "world"))
    many = hold_ratings(world, people(users=3_000), SeededSource(5, "world"))
    assert np.array_equal(few.rating, many.rating[:1_000])
    assert np.array_equal(few.rated, many.rated[:1_000])
