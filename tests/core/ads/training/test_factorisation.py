"""Tastes are those that ridge regression finds, and stay in their ball; models are public."""

import math

import numpy as np
import pytest

from noisefloor.ads.training.factorisation import (
    USERS,
    AdModel,
    Ratings,
    Single,
    drift,
    fit_tastes,
    project,
    random_model,
    solve_each,
    step_tastes,
    triangle,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.randomness import SeededSource


def some_ratings(users: int, ads: int, share: float = 0.3) -> Ratings:
    draw = SeededSource(5, "ratings", users, ads).generator()
    rated = draw.random((users, ads)) < share
    rating = draw.random((users, ads), dtype=np.float32)
    rating[~rated] = np.nan  # nothing may look at it
    return Ratings(rated, rating)


def a_model(ads: int, dimension: int) -> AdModel:
    model = random_model(ads, dimension, 3, scale=0.4)
    offsets = np.linspace(-0.2, 0.2, ads, dtype=np.float32)
    return AdModel(0.5, offsets, model.factors)


def solved(model: AdModel, ratings: Ratings, ridge: float) -> Single:
    """Return the ridge regressions one by one, in double precision."""
    tastes = np.zeros((len(ratings), model.dimension))
    for user in range(len(ratings)):
        own = ratings.rated[user]
        known = model.factors[own].astype(np.float64)
        above = (ratings.rating[user, own] - model.base[own]).astype(np.float64)
        square = known.T @ known + ridge * np.eye(model.dimension)
        tastes[user] = np.linalg.solve(square, known.T @ above)
    return tastes.astype(np.float32)


@pytest.mark.parametrize(("ads", "dimension"), [(1, 1), (5, 2), (20, 3), (50, 10), (12, 16)])
def test_a_fit_is_the_solution_of_its_equations(ads: int, dimension: int) -> None:
    model, ratings = a_model(ads, dimension), some_ratings(200, ads)
    fitted = fit_tastes(model, ratings, 0.1, radius=math.inf)
    assert fitted.dtype == np.float32
    np.testing.assert_allclose(fitted, solved(model, ratings, 0.1), atol=1e-4)


def test_a_fit_is_projected_and_nothing_is_fitted_to_nothing() -> None:
    model, ratings = a_model(20, 3), some_ratings(500, 20, share=0.1)
    free, bound = (fit_tastes(model, ratings, 0.01, radius=r) for r in (math.inf, 0.5))
    norm = np.linalg.norm(free, axis=1)
    np.testing.assert_allclose(np.linalg.norm(bound, axis=1), np.minimum(norm, 0.5), atol=1e-5)
    assert norm.max() > 0.5
    lone = ~ratings.rated.any(axis=1)
    assert lone.any() and not bound[lone].any()


def test_blocks_do_not_show() -> None:
    model, ratings = a_model(6, 2), some_ratings(USERS + 10, 6)
    whole = fit_tastes(model, ratings, 0.1)
    np.testing.assert_allclose(
        whole[USERS - 5 :], fit_tastes(model, ratings[USERS - 5 :], 0.1), atol=1e-6
    )


def test_systems_are_solved_side_by_side() -> None:
    draw = SeededSource(6, "systems").generator()
    half = draw.normal(size=(40, 7, 9))
    squares = half @ half.transpose(0, 2, 1) + 0.1 * np.eye(7)
    right = draw.normal(size=(40, 7))
    rows, columns = triangle(7)
    gram = np.ascontiguousarray(squares[:, rows, columns].T, dtype=np.float32)
    found = solve_each(gram, np.ascontiguousarray(right.T, dtype=np.float32))
    truth = np.linalg.solve(squares, right[:, :, None])[:, :, 0]
    np.testing.assert_allclose(found.T, truth, rtol=1e-3, atol=1e-3)


def test_a_step_follows_the_gradient_of_the_loss() -> None:
    model, ratings = a_model(8, 3), some_ratings(50, 8)
    start = SeededSource(7, "tastes").generator().normal(size=(50, 3)).astype(np.float32) * 0.1
    known = np.where(ratings.rated, ratings.rating, 0.0)

    def loss(tastes: Single) -> float:
        error = np.where(ratings.rated, known - model.predict(tastes), 0.0)
        return float((error**2).sum() + 0.05 * (tastes**2).sum())

    moved = start.copy()
    step_tastes(model, moved, ratings, 1e-3, 0.05)
    slope = (start - moved) / 1e-3
    for place in [(0, 0), (7, 2), (49, 1)]:
        up, down = start.astype(np.float64), start.astype(np.float64)
        up[place] += 1e-4
        down[place] -= 1e-4
        numeric = (loss(up.astype(np.float32)) - loss(down.astype(np.float32))) / 2e-4
        assert slope[place] == pytest.approx(numeric, abs=2e-2)


def test_steps_come_to_the_fit_and_stay_in_the_ball() -> None:
    model, ratings = a_model(20, 3), some_ratings(300, 20)
    tastes = np.zeros((300, 3), dtype=np.float32)
    for _ in range(2_000):
        step_tastes(model, tastes, ratings, 0.05, 0.1, radius=math.inf)
    fitted = fit_tastes(model, ratings, 0.1, radius=math.inf)
    np.testing.assert_allclose(tastes, fitted, atol=2e-3)
    step_tastes(model, tastes, ratings, 50.0, 0.001, radius=1.0)
    assert np.linalg.norm(tastes, axis=1).max() <= 1 + 1e-6


def test_the_untrained_model_is_a_public_constant_of_its_seed() -> None:
    one, again, other = (random_model(200, 8, seed, scale=0.1) for seed in (1, 1, 2))
    assert one.factors.tobytes() == again.factors.tobytes()
    assert one.factors.tobytes() != other.factors.tobytes()
    assert one.factors.std() == pytest.approx(0.1, rel=0.1)
    assert abs(one.factors.mean()) < 0.01
    assert not one.offsets.any()
    wide = random_model(50, 8, 1, scale=3.0).factors
    assert np.linalg.norm(wide, axis=1).max() <= 1 + 1e-6


def test_projection_leaves_what_lies_within() -> None:
    rows = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(project(rows), [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]], atol=1e-6)


def test_drift_is_the_norm_of_the_change() -> None:
    one = a_model(2, 2)
    other = AdModel(0.5, one.offsets, one.factors + np.float32(0.5))
    assert drift(one, one) == 0
    assert drift(one, other) == pytest.approx(1.0)


def test_what_does_not_fit_is_refused() -> None:
    model, ratings = a_model(4, 2), some_ratings(3, 4)
    with pytest.raises(BadParameter, match="ridge"):
        fit_tastes(model, ratings, 0.0)
    with pytest.raises(OutOfDomain, match="4 ads"):
        fit_tastes(model, some_ratings(3, 5), 0.1)
    with pytest.raises(OutOfDomain, match="taste"):
        step_tastes(model, np.zeros((3, 3), dtype=np.float32), ratings, 0.1, 0.1)
    with pytest.raises(OutOfDomain):
        Ratings(ratings.rated, ratings.rating.astype(np.float64))
    with pytest.raises(OutOfDomain):
        Ratings(ratings.rated, ratings.rating[:, :3])
