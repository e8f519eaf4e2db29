"""Training by noisy gradients: what is claimed, what is proved, and how little it learns."""

import math

import numpy as np
import pytest

from noisefloor.ads.training.factorisation import AdModel, Ratings, fit_tastes
from noisefloor.ads.training.gradient_noise import GradientBound
from noisefloor.ads.training.laplace_training import LaplaceTraining, gradients
from noisefloor.ads.training.rounds import AdTraining, Broadcast
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Claim
from noisefloor.randomness import SeededSource


def crowd(users: int, ads: int) -> Ratings:
    draw = SeededSource(3, "crowd", users, ads).generator()
    rated = draw.random((users, ads)) < 0.4
    rating = np.where(rated, draw.random((users, ads), dtype=np.float32), np.nan)
    return Ratings(rated, rating.astype(np.float32))


def test_the_clipped_forms_prove_what_they_claim_and_the_printed_does_not() -> None:
    for form in (GradientBound.COORDINATE, GradientBound.BLOCK):
        training = LaplaceTraining(4, 2, 5, 1.0, 2.0, form=form)
        assert training.claimed.epsilon == 3.0
        assert 3.0 - 1e-5 <= training.guarantee().epsilon <= 3.0
    printed = LaplaceTraining(4, 2, 5, 1.0, 2.0, form=GradientBound.PRINTED, centre=0.0)
    assert Claim(printed.claimed, printed.guarantee()).verdict == "overclaimed"
    assert printed.guarantee().epsilon == pytest.approx(1 + 2 * 3 * math.sqrt(6) / 2, rel=0.01)
    unbounded = LaplaceTraining(4, 2, 5, 1.0, 2.0, form=GradientBound.PRINTED, bounded=False)
    assert not unbounded.guarantee().is_finite


def test_gradients_are_those_of_the_loss_and_zero_for_what_is_not_rated() -> None:
    model = LaplaceTraining(5, 3, 1, 1.0, 1.0).start().model
    ratings = crowd(40, 5)
    tastes = fit_tastes(model, ratings, 0.1)
    rows = gradients(model, tastes, ratings)
    known = np.where(ratings.rated, ratings.rating - model.predict(tastes), 0)
    expected = -2 * known[:, :, None] * tastes[:, None, :]
    np.testing.assert_allclose(rows[:, :, 1:], expected, atol=1e-6)
    assert np.array_equal(rows[:, :, 0], ratings.rated)


@pytest.mark.parametrize("form", list(GradientBound))
@pytest.mark.parametrize("local", ["ridge", "step"])
def test_with_next_to_no_noise_the_update_is_the_gradient_step(
    form: GradientBound, local: str
) -> None:
    # A fixed seed; the noise is some hundredth of the step.
    training: AdTraining = LaplaceTraining(
        3, 2, 1, 90.0, 40.0, form=form, clip=3.0, rate=1.0, weight=0.0, local=local
    )
    ratings, sent = crowd(150_000, 3), training.start()
    sharp = AdModel(0.5, sent.model.offsets, sent.model.factors * 4)
    tastes = np.zeros((len(ratings), 2), dtype=np.float32)
    report = training.report(0, Broadcast(sharp), tastes, ratings, SeededSource(1, "sent"))
    kind = training.kind(0)
    after = training.update(0, Broadcast(sharp), kind.tally(kind.encode(report.reports)), 150_000)
    mean = gradients(sharp, tastes, ratings)[:, :, 1:].mean(axis=0, dtype=np.float64)
    noise = LaplaceTraining(3, 2, 1, 90.0, 40.0, form=form, clip=3.0).gradient_deviation(150_000)
    assert noise < 0.01
    np.testing.assert_allclose(sharp.factors - after.model.factors, mean, atol=6 * noise)
    assert report.norm > 0


@pytest.mark.parametrize("bounded", [True, False])
def test_tastes_and_factors_are_kept_in_the_unit_ball_if_they_are_bounded(bounded: bool) -> None:
    """Weak factors ask for long tastes, and a steep slope for long factors."""
    training = LaplaceTraining(3, 2, 1, 4.0, 4.0, bounded=bounded, ridge=1e-4, rate=100.0)
    start = training.start().model
    weak = Broadcast(AdModel(0.5, start.offsets, start.factors * np.float32(0.1)))
    ratings = Ratings(np.ones((20, 3), np.bool_), np.ones((20, 3), np.float32))
    tastes = np.zeros((20, 2), dtype=np.float32)
    sent = training.report(0, weak, tastes, ratings, SeededSource(1, "bounded", int(bounded)))
    steep = np.abs(training.noise.tally(sent.reports)) * 1_000
    factors = training.update(0, weak, steep, 20).model.factors
    for rows in (tastes, factors):
        assert bool(np.linalg.norm(rows, axis=1).max() <= 1 + 1e-5) is bounded


def test_the_clip_is_counted_by_number_or_by_block() -> None:
    ratings = crowd(500, 4)
    for form, values in (
        (GradientBound.COORDINATE, 500 * 8),
        (GradientBound.BLOCK, 500),
        (GradientBound.PRINTED, 500 * 8),
    ):
        training = LaplaceTraining(4, 2, 1, 4.0, 4.0, form=form, clip=0.01)
        tastes = np.zeros((500, 2), dtype=np.float32)
        report = training.report(
            0, training.start(), tastes, ratings, SeededSource(1, "clip", form.value)
        )
        assert report.values == values
        assert (report.clipped > 0) == (form is not GradientBound.PRINTED)


def test_the_printed_form_trusts_no_broadcast_and_no_rating() -> None:
    training = LaplaceTraining(3, 2, 1, 1.0, 1.0, form=GradientBound.PRINTED)
    ratings, tastes = crowd(10, 3), np.zeros((10, 2), dtype=np.float32)
    start = training.start().model
    wide = AdModel(0.5, start.offsets, np.full((3, 2), 0.8, dtype=np.float32))
    with pytest.raises(BadParameter, match="unit ball"):
        training.report(0, Broadcast(wide), tastes, ratings, SeededSource(1, "wide"))
    off = AdModel(0.5, start.offsets + 1, start.factors)
    with pytest.raises(BadParameter, match="offsets"):
        training.report(0, Broadcast(off), tastes, ratings, SeededSource(1, "off"))
    with pytest.raises(BadParameter, match="centre"):
        moved = AdModel(5.0, start.offsets, start.factors)
        training.report(0, Broadcast(moved), tastes, ratings, SeededSource(1, "centre"))
    with pytest.raises(OutOfDomain, match="ratings"):
        loud = Ratings(ratings.rated, ratings.rating * 3)
        training.report(0, training.start(), tastes, loud, SeededSource(1, "loud"))


def test_users_needed_is_where_the_noise_comes_down_to() -> None:
    training = LaplaceTraining(50, 10, 10, 1.0, 1.0, form=GradientBound.PRINTED)
    users = training.users_needed(0.1)
    assert users == pytest.approx(1.25e15, rel=0.01)
    assert training.gradient_deviation(users) <= 0.1 < training.gradient_deviation(users - 10**12)
    with pytest.raises(BadParameter, match="deviation"):
        training.users_needed(0.0)


def test_the_rate_follows_the_noise_unless_it_is_given() -> None:
    training = LaplaceTraining(10, 2, 3, 1.0, 1.0)
    expected = 0.21 / training.gradient_deviation(10**6)
    assert training.rate_for(10**6) == pytest.approx(expected)
    assert LaplaceTraining(10, 2, 3, 1.0, 1.0, rate=0.5).rate_for(10) == 0.5
    assert training.rate_for(10**18) == 5.0
