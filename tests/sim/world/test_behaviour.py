"""Days: events that follow interest, position, hour and weekday."""

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario.sections import Behaviour, Devices, Population
from noisefloor_sim.scenario.sections import Tastes as Shape
from noisefloor_sim.world.behaviour import (
    AdWorld,
    DayActivity,
    click_chances,
    draw_clicks,
    draw_pages,
    draw_visits,
)
from noisefloor_sim.world.population import Cohort, make_cohort
from noisefloor_sim.world.tastes import TasteModel
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted

PEOPLE = Population(users=4096, cohort=4096, churn_per_day=0.0)


def people(**changes: object) -> Cohort:
    shape = PEOPLE.model_copy(update=changes)
    return make_cohort(shape, Devices(), 14, 0, SeededSource(5, "world"))


def ad_world(shape: Behaviour) -> AdWorld:
    return AdWorld(shape, TasteModel(Shape(), shape, PEOPLE.topics, SeededSource(5, "world")))


def a_day(day: int = 0, cohort: Cohort | None = None, **behaviour: object) -> DayActivity:
    world, cohort = ad_world(Behaviour.model_validate(behaviour)), cohort or people()
    visits = draw_visits(world, cohort, day, SeededSource(5, "world"))
    return draw_clicks(world, cohort, visits, visits.popular)


@pytest.mark.statistical
@pytest.mark.parametrize("source", ["topics", "low-rank"])
@pytest.mark.parametrize("ads", [5, 24])
def test_pages_are_visited_as_their_topics_are_liked(source: str, ads: int) -> None:
    """Chi-square over topics, expected by likings; false alarm FALSE_ALARM. The twin: even pages.

    One page of each of 4,096 users, so that pages are independent.
    """
    shape = Behaviour(ads=ads, page_affinity=2.0, slots_per_view=1)
    tastes = TasteModel(
        Shape.model_validate({"source": source}), shape, PEOPLE.topics, SeededSource(5, "world")
    )
    world, cohort = AdWorld(shape, tastes), people()
    visits = draw_visits(world, cohort, 0, SeededSource(5, "world"))
    topic = draw_pages(world, cohort, visits, SeededSource(5, "pages"))
    users, first = np.unique(visits.user, return_index=True)
    # Of the page that each user likes best, as the rank of its topic.
    weight = tastes.topic_affinity(cohort)[users].astype(np.float64) ** 2
    order = np.argsort(-weight, axis=1)
    rank = np.argmax(order == topic[first][:, None], axis=1)
    chance = np.take_along_axis(weight, order, axis=1) / weight.sum(axis=1, keepdims=True)
    counts = np.bincount(rank, minlength=PEOPLE.topics)
    assert chi_square_p(counts, chance.mean(axis=0)) > FALSE_ALARM
    assert chi_square_p(counts, np.full(PEOPLE.topics, 1 / PEOPLE.topics)) < FALSE_ALARM


def test_a_day_is_the_same_each_time_it_is_drawn() -> None:
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


@pytest.mark.statistical
def test_people_with_several_devices_use_them_by_the_time_they_spend_on_each() -> None:
    """Phone, laptop and wearable by 6 : 3 : 1; false alarm FALSE_ALARM. The twin: a tenth off."""
    cohort = people()
    day = a_day(cohort=cohort)
    rows = np.asarray(cohort.owns.all(axis=1))[day.user]
    # All slots of a page are on one device: every second one is a view.
    counts = np.bincount(day.device[rows][::2], minlength=3)
    shares = np.array([0.6, 0.3, 0.1])
    assert chi_square_p(counts, shares) > FALSE_ALARM
    assert chi_square_p(counts, tilted(shares, 1.1)) < FALSE_ALARM


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
    views = [a_day(day, cohort, weekend_factor=2.0).views.sum() for day in range(4, 8)]
    # Days 5 and 6 of each week are the weekend; about 24,000 views on another day.
    assert min(views[1:3]) > 1.7 * max(views[0], views[3])
    hours = np.bincount(a_day(peak_hours=(20.0,)).hour, minlength=24)
    assert hours[18:22].mean() > 5 * hours[4:8].mean()
    assert hours.sum() == len(a_day(peak_hours=(20.0,)).hour)


def test_popularity_falls_with_rank_or_is_even() -> None:
    steep = np.bincount(a_day(popularity=1.0).ad, minlength=20)
    assert steep[0] > 5 * steep[19] > 0
    even = ad_world(Behaviour(popularity=0.0)).wheel
    assert np.ptp(np.bincount(even)) <= 1
    assert len(even) == 65_536


def test_the_matrix_has_a_bit_for_each_user_and_ad_of_the_chosen_rows() -> None:
    day = a_day()
    bits = day.matrix(day.clicked, 20)
    assert bits.shape == (4096, 20)
    pairs = set(zip(day.user[day.clicked].tolist(), day.ad[day.clicked].tolist(), strict=True))
    assert pairs == {(int(user), int(ad)) for user, ad in np.argwhere(bits)}


def test_the_ad_server_decides_what_is_clicked_and_moves_no_other_draw() -> None:
    world, cohort = ad_world(Behaviour()), people()
    visits = draw_visits(world, cohort, 0, SeededSource(5, "world"))
    other = visits.popular.copy()
    other[::2] = 7
    one, two = (
        draw_clicks(world, cohort, visits, visits.popular),
        draw_clicks(world, cohort, visits, other),
    )
    assert np.array_equal(one.clicked[1::2], two.clicked[1::2])
    assert np.array_equal(two.ad[::2], np.full(len(two.ad[::2]), 7))


def test_a_chance_to_click_is_that_of_the_first_slot() -> None:
    world, cohort = ad_world(Behaviour(click_base_rate=0.05, interest_lift=3.0)), people()
    chances = click_chances(world, cohort)
    expected = 0.05 * (1 + 3 * cohort.interests[:, np.arange(20) % PEOPLE.topics])
    assert np.allclose(chances, expected)
