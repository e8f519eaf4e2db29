"""Falling back to protected means: a decision from public numbers, and what it is worth."""

import math
from functools import cache

import numpy as np
import pytest

from batches import batched
from noisefloor.ads.training import (
    AdTraining,
    BitTraining,
    GradientBound,
    LaplaceTraining,
    Ratings,
    SpectralTraining,
    fit_tastes,
    item_means,
    mean_model,
    means_instead,
    noise_over_signal,
    rmse,
    with_fallback,
)
from noisefloor.ads.training.spectral_estimation import shrunk, shrunk_to_mean
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.tasks import AdTask, task_description, task_from_description

ADS, WIDE = 20, 3
USERS = 20_000


WAYS = ("bits", "once", "block", "coordinate", "printed", "spectral", "lite")


@cache
def way(name: str, epsilon: float) -> AdTraining:
    """Return one way of training."""
    if name in ("bits", "once"):
        return BitTraining(ADS, WIDE, epsilon, 10, clip=0.03, once=name == "once")
    if name in ("spectral", "lite"):
        form = "lite" if name == "lite" else "full"
        return SpectralTraining(ADS, WIDE, epsilon, form=form)
    half, bound = epsilon / 2, GradientBound(name)
    return LaplaceTraining(ADS, WIDE, 10, half, half, form=bound, clip=0.03)


@batched("name", WAYS, label=str)
def test_the_prediction_falls_with_users_and_epsilon(name: str) -> None:
    few, many = (noise_over_signal(way(name, 1.0), users) for users in (USERS, 100 * USERS))
    # All noise is that of means over users.
    assert few / many == pytest.approx(10, rel=0.01)
    assert noise_over_signal(way(name, 4.0), USERS) < few
    assert noise_over_signal(way(name, 0.25), USERS) > few


@pytest.mark.parametrize(
    ("name", "users", "epsilon", "is_replaced"),
    [
        ("spectral", USERS, 1.0, True),
        ("spectral", USERS, 2.0, False),
        ("lite", USERS, 2.0, True),
        ("lite", USERS, 4.0, False),
        ("bits", USERS, 8.0, True),
        ("bits", 300_000, 8.0, False),
        ("once", USERS, 8.0, True),
        ("once", 300_000, 8.0, False),
        ("block", 10**9, 8.0, True),
        ("block", 10**13, 8.0, False),
    ],
)
def test_means_replace_what_would_be_noise(
    name: str, users: int, epsilon: float, *, is_replaced: bool
) -> None:
    asked = way(name, epsilon)
    planned = with_fallback(asked, users)
    if not is_replaced:
        assert planned is asked
        return
    assert isinstance(planned, SpectralTraining)
    assert planned.is_means and planned.rounds == 2
    assert planned.claimed == asked.claimed
    assert planned.guarantee(Neighbours.USER).epsilon <= epsilon
    assert with_fallback(planned, 1) is planned


def test_a_description_with_expected_users_gives_the_planned_training() -> None:
    asked = way("bits", 1.0)
    payload = task_description(AdTask(asked))
    assert task_from_description(payload) == AdTask(asked)
    planned = task_from_description(payload | {"users": USERS})
    assert planned == AdTask(with_fallback(asked, USERS)) != AdTask(asked)
    # What was planned is described as it is: devices need not plan again.
    assert task_from_description(task_description(planned)) == planned
    for users in (0, "many", 1.5):
        with pytest.raises(BadParameter, match="users"):
            task_from_description(payload | {"users": users})


def test_a_clip_far_above_gradients_adds_noise_and_no_signal() -> None:
    narrow, wide = (BitTraining(ADS, WIDE, 8.0, 20, clip=clip) for clip in (0.03, 1.0))
    assert noise_over_signal(narrow, 1_000_000) < 1 < noise_over_signal(wide, 1_000_000)


def test_too_few_or_too_many_ads_have_no_means_to_fall_back_to() -> None:
    for ads in (2, 300):
        asked = BitTraining(ads, WIDE, 1.0, 10)
        assert means_instead(asked) is None
        assert with_fallback(asked, 10) is asked
    narrow = means_instead(BitTraining(4, 8, 1.0, 10))
    assert narrow is not None and narrow.dimension == 3
    with pytest.raises(BadParameter, match="users"):
        noise_over_signal(BitTraining(ADS, WIDE, 1.0, 10), 0)


def test_everybody_reports_once_and_nobody_axes() -> None:
    planned = means_instead(BitTraining(ADS, WIDE, 1.0, 10))
    assert planned is not None
    edges = np.array([0, 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1], dtype=np.uint32)
    rounds = [planned.reporters(number, edges) for number in range(planned.rounds)]
    assert np.sum(rounds, axis=0).tolist() == [1] * len(edges)


def people(name: str) -> tuple[Ratings, Ratings]:
    """Return what 20 000 people rated of 20 ads, and what of it is held out."""
    draw = SeededSource(31, name).generator()
    appeal, factors = draw.normal(0, 0.1, ADS), draw.normal(0, 0.2 / math.sqrt(WIDE), (ADS, WIDE))
    liking = 0.6 + appeal + draw.normal(size=(USERS, WIDE)) @ factors.T
    rating = np.clip(liking + draw.normal(0, 0.1, liking.shape), 0, 1).astype(np.float32)
    rated, back = draw.random(liking.shape) < 0.3, draw.random(liking.shape) < 0.2
    return Ratings(rated & ~back, rating), Ratings(rated & back, rating)


def trained_error(training: AdTraining, kept: Ratings, held_out: Ratings, name: str) -> float:
    """Train with everybody, and return the error."""
    sent, source = training.start(), SeededSource(32, name)
    lots = source.child("lots").generator().integers(0, 1 << 32, len(kept), dtype=np.uint32)
    for number in range(training.rounds):
        some = kept[np.flatnonzero(training.reporters(number, lots))]
        tastes = np.zeros((len(some), sent.model.dimension), np.float32)
        reports = training.report(number, sent, tastes, some, source.child(number)).reports
        kind = training.kind(number)
        sent = training.update(number, sent, kind.tally(kind.encode(reports)), len(some))
    return rmse(sent.model, fit_tastes(sent.model, kept, 0.1), held_out)


def test_means_from_reports_are_close_to_means_in_the_open() -> None:
    """The twin: the bits that they replace lose by far more than is allowed here.

    At epsilon 1 the mean of an ad has an error of 0.04; drawn to the mean of all, that adds
    0.0014 to a squared error of 0.04. Three times as much is allowed.
    """
    kept, held_out = people("means")
    means = mean_model(item_means(kept), ADS, WIDE)
    open_error = rmse(means, fit_tastes(means, kept, 0.1), held_out)
    allowed = math.sqrt(open_error**2 + 3 * 0.0014)
    asked = way("bits", 1.0)
    assert trained_error(with_fallback(asked, USERS), kept, held_out, "fallback") < allowed
    assert trained_error(asked, kept, held_out, "as asked") > allowed


def test_noisy_means_become_one_mean_and_that_nothing_if_it_is_noise() -> None:
    draw = SeededSource(33, "shrunk").generator()
    errors = np.full(400, 1.0)
    noise = draw.normal(size=400)
    # The mean of 400 errs by 0.05: what is left of 0 is below five of that, and so is the spread.
    assert np.abs(shrunk_to_mean(noise, errors)).max() < 0.25
    # A mean far from 0 stays, where ``shrunk`` alone would take most of it away.
    assert shrunk_to_mean(5 + noise, errors) == pytest.approx(np.full(400, 5.0), abs=0.5)
    assert np.abs(shrunk(5 + noise, errors)).mean() < 1
    sharp = 0.1 * noise
    assert shrunk_to_mean(sharp, 0.001 * errors) == pytest.approx(sharp, abs=1e-3)
    assert np.array_equal(shrunk_to_mean(np.zeros(3), np.ones(3)), np.zeros(3))
