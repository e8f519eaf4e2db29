"""The baselines are what they say: means, and about the best that bare ratings allow."""

import numpy as np
import pytest

from noisefloor.ads.training.evaluation import (
    global_mean,
    hit_rate,
    item_means,
    mean_model,
    nonprivate,
    rmse,
)
from noisefloor.ads.training.factorisation import AdModel, Ratings, fit_tastes
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import SeededSource


def world(users: int, ads: int = 20, dimension: int = 3) -> tuple[Ratings, Ratings, Ratings]:
    """Return ratings to train on, held-out ratings, and everybody's true liking."""
    draw = SeededSource(9, "world", users, ads).generator()
    factors = draw.normal(size=(ads, dimension))
    factors *= 0.2 / np.sqrt((factors**2).sum(axis=1).mean())
    liking = 0.5 + 0.1 * draw.normal(size=ads) + draw.normal(size=(users, dimension)) @ factors.T
    rating = np.clip(liking + 0.1 * draw.normal(size=liking.shape), 0, 1).astype(np.float32)
    rated = draw.random(liking.shape) < 0.3
    back = rated & (draw.random(liking.shape) < 0.2)
    everything = np.ones_like(rated)
    return (
        Ratings(rated & ~back, rating),
        Ratings(back, rating),
        Ratings(everything, liking.astype(np.float32)),
    )


def test_means_are_means_of_the_ratings_present() -> None:
    rated = np.array([[True, False, False], [True, True, False]])
    rating = np.array([[0.2, np.nan, np.nan], [0.4, 0.9, np.nan]], dtype=np.float32)
    ratings = Ratings(rated, rating)
    assert global_mean(ratings) == pytest.approx(0.5)
    np.testing.assert_allclose(item_means(ratings), [0.3, 0.9, 0.5], atol=1e-6)
    assert global_mean(Ratings(~rated & False, rating)) == 0.5


def test_a_mean_model_predicts_means() -> None:
    means = np.array([0.2, 0.7], dtype=np.float32)
    predicted = mean_model(means, 2, 3).predict(np.ones((4, 3), dtype=np.float32))
    np.testing.assert_allclose(predicted, np.tile(means, (4, 1)), atol=1e-6)
    assert mean_model(0.4, 5, 2).base.tolist() == pytest.approx([0.4] * 5)


def test_bare_ratings_come_close_to_the_noise() -> None:
    train, held_out, truth = world(8_000)
    model = nonprivate(train, 3)
    tastes = fit_tastes(model, train, 0.1)
    means = mean_model(item_means(train), 20, 3)
    nothing = np.zeros((len(train), 3), dtype=np.float32)
    # The noise alone is 0.1, and some four ratings a user leave a taste uncertain.
    assert rmse(model, tastes, held_out) < 0.155
    assert rmse(means, nothing, held_out) > 0.19
    assert hit_rate(model, tastes, truth) > hit_rate(means, nothing, truth) + 0.1


def test_an_ad_that_nobody_rated_does_no_harm() -> None:
    train, held_out, _ = world(2_000)
    rated = train.rated.copy()
    rated[:, 3] = False
    model = nonprivate(Ratings(rated, train.rating), 2, sweeps=3)
    assert np.isfinite(model.factors).all() and np.isfinite(model.offsets).all()
    assert rmse(model, fit_tastes(model, train, 0.1), held_out) < 0.25


def test_the_error_is_clipped_to_the_scale_and_over_the_ratings_present() -> None:
    model = AdModel(0.5, np.array([5.0, 0.0], np.float32), np.zeros((2, 1), np.float32))
    ratings = Ratings(
        np.array([[True, False], [False, True]]),
        np.array([[1.0, np.nan], [np.nan, 0.1]], np.float32),
    )
    assert rmse(model, np.zeros((2, 1), np.float32), ratings) == pytest.approx(np.sqrt(0.08))
    with pytest.raises(OutOfDomain):
        rmse(model, np.zeros((2, 1), np.float32), Ratings(ratings.rated & False, ratings.rating))


def test_a_hit_is_the_best_of_the_ratings_present() -> None:
    model = AdModel(0.5, np.array([0.3, 0.2, 0.1], np.float32), np.zeros((3, 1), np.float32))
    rating = np.array([[0.1, 0.5, 0.5], [0.1, 0.5, 0.5], [0.9, 0, 0], [1, 1, 1]], np.float32)
    rated = np.array([[True] * 3, [False, True, True], [True] * 3, [False] * 3])
    # Missed: the first prefers others. Hit: of two that are equally good; the one ahead.
    assert hit_rate(model, np.zeros((4, 1), np.float32), Ratings(rated, rating)) == 2 / 3
    with pytest.raises(OutOfDomain):
        hit_rate(model, np.zeros((4, 1), np.float32), Ratings(rated & False, rating))
