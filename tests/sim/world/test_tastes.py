"""Tastes: the same each time, in range, low-rank where they say so, moved by nobody."""

import numpy as np
import pytest

from noisefloor.randomness import SeededSource
from noisefloor_sim.scenario.sections import Behaviour, Devices, Population
from noisefloor_sim.scenario.sections import Tastes as Shape
from noisefloor_sim.world.population import Cohort, make_cohort
from noisefloor_sim.world.tastes import TasteModel

PEOPLE = Population(users=4096, cohort=4096, churn_per_day=0.0)


def people(users: int = 4096) -> Cohort:
    shape = PEOPLE.model_copy(update={"users": users})
    return make_cohort(shape, Devices(), 14, 0, SeededSource(5, "world"))


def tastes(shape: Shape | None = None, **behaviour: object) -> TasteModel:
    ads = Behaviour.model_validate(behaviour)
    return TasteModel(shape or Shape(), ads, PEOPLE.topics, SeededSource(5, "world"))


@pytest.mark.parametrize("source", ["topics", "low-rank"])
def test_ratings_stay_in_range_and_are_the_same_again(source: str) -> None:
    shape = Shape.model_validate({"source": source})
    ratings = tastes(shape, rated_share=0.4).draw_ratings(people())
    again = tastes(shape, rated_share=0.4).draw_ratings(people())
    assert np.array_equal(ratings.rating, again.rating)
    assert 0 <= ratings.rating.min() <= ratings.rating.max() <= 1
    # 4,096 x 20 coins: five standard errors of 0.0017, false alarm 6e-7.
    assert abs(ratings.rated.mean() - 0.4) < 5 * 0.00172


def test_ratings_follow_interest_in_the_topic() -> None:
    cohort, likes = people(), tastes()
    ratings = likes.draw_ratings(cohort)
    cared = cohort.interests[:, likes.topic]
    assert ratings.rating[cared > 0.3].mean() > ratings.rating[cared < 0.01].mean() + 0.2
    assert np.array_equal(likes.interest(cohort), cared)


@pytest.mark.parametrize("source", ["topics", "low-rank"])
def test_adding_users_changes_nobodys_ratings(source: str) -> None:
    likes = tastes(Shape.model_validate({"source": source}))
    few, many = likes.draw_ratings(people(1_000)), likes.draw_ratings(people(3_000))
    assert np.array_equal(few.rating, many.rating[:1_000])
    assert np.array_equal(few.rated, many.rated[:1_000])


def test_a_low_rank_world_has_the_rank_and_the_spread_it_says() -> None:
    shape = Shape(source="low-rank", dimension=2, spread=0.05, appeal=0.02)
    likes = tastes(shape).liking(people())  # so narrow that nothing is cut
    values = np.linalg.svd(likes - likes.mean(axis=0), compute_uv=False)
    assert values[2] < 1e-3 * values[1]
    # One draw of 20 rows of two factors: the mean of 40 squares scatters by a quarter.
    assert 0.02 < likes.std(axis=0).mean() < 0.08


def test_ratings_can_be_missing_by_rank_and_by_liking() -> None:
    skewed = tastes(Shape(source="low-rank", rated_skew=1.0)).draw_ratings(people())
    assert skewed.rated[:, 0].mean() > 5 * skewed.rated[:, -1].mean()
    choosy = tastes(Shape(source="low-rank", rated_for_liking=4.0)).draw_ratings(people())
    assert choosy.rating[choosy.rated].mean() > choosy.rating.mean() + 0.05
