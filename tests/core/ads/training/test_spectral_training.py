"""Spectral training on small worlds: it finds what is there, invents nothing, and asks once."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from noisefloor.ads.training.evaluation import rmse
from noisefloor.ads.training.factorisation import AdModel, Ratings, Single, fit_tastes
from noisefloor.ads.training.rounds import AdTraining, Broadcast
from noisefloor.ads.training.spectral_training import (
    FORMS,
    SpectralTraining,
    rated_bits_kind,
    rating_axes_kind,
    rating_directions_kind,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import KIND_BUILDERS
from noisefloor.roles.aggregator import Aggregator
from noisefloor.wire.frames import split_frames

ADS, RANK = 12, 2
SCORED = 16_000


@dataclass(frozen=True)
class World:
    """Ratings that follow a known model, some of them held out."""

    offsets: Single
    factors: Single
    kept: Ratings
    held_out: Ratings


@cache
def world(users: int, *, low_rank: float = 0.2, name: str = "world") -> World:
    """Return 12 ads of 2 factors, 40 % rated, noise 0.1; a fifth of the ratings is held out."""
    generator = SeededSource(11, name).generator()
    factors = low_rank / math.sqrt(RANK) * generator.normal(size=(ADS, RANK))
    offsets = 0.1 * generator.normal(size=ADS)
    taste = generator.normal(size=(users, RANK))
    rating = 0.5 + offsets + taste @ factors.T + 0.1 * generator.normal(size=(users, ADS))
    rated = generator.random((users, ADS)) < 0.4
    is_test = rated & (generator.random((users, ADS)) < 0.2)
    clipped: Single = np.clip(rating, 0, 1).astype(np.float32)
    return World(
        offsets.astype(np.float32),
        factors.astype(np.float32),
        Ratings(rated & ~is_test, clipped),
        Ratings(is_test, clipped),
    )


def lots_of(users: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return SeededSource(11, "lots").generator().integers(1 << 32, size=users, dtype=np.uint32)


def train(training: SpectralTraining, ratings: Ratings) -> Broadcast:
    """Run all rounds through frames and an aggregator."""
    lots, sent = lots_of(len(ratings)), training.start()
    aggregator = Aggregator([training.kind(number) for number in range(training.rounds)])
    with new_run():
        for number in range(training.rounds):
            some = ratings[training.reporters(number, lots)]
            tastes = np.zeros((len(some), training.dimension), dtype=np.float32)
            source, kind = SeededSource(11, "training", number), training.kind(number)
            reports = training.report(number, sent, tastes, some, source.child("reports")).reports
            for data in split_frames(kind, 0, reports, source.child("frames")):
                aggregator.apply(data)
            aggregator.close(kind.name, 0)
            tally, count = aggregator.release(kind.name, 0)
            assert count == len(some)
            sent = training.update(number, sent, tally, count)
    return sent


def error(model: AdModel, made: World) -> float:
    """Score the model on the first users: some 15,000 ratings that were held out."""
    kept, held_out = made.kept[:SCORED], made.held_out[:SCORED]
    return rmse(model, fit_tastes(model, kept, 0.1), held_out)


def subspace_cosine(found: Single, truth: Single) -> float:
    """Return the cosine of the largest angle between two spaces of factors."""
    one, other = np.linalg.qr(found)[0], np.linalg.qr(truth)[0]
    return float(np.linalg.svd(one.T @ other, compute_uv=False)[-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_the_model_is_found(form: str, epsilon: float) -> None:
    made = world(150_000)
    sent = train(SpectralTraining(ADS, RANK, epsilon, form=form), made.kept)
    assert sent.rates is not None
    assert sent.rates == pytest.approx(np.full(ADS, 0.32), abs=0.03)
    assert sent.model.offsets == pytest.approx(made.offsets, abs=0.07)
    assert subspace_cosine(sent.model.factors, made.factors) > (0.97 if epsilon > 4 else 0.85)
    mean = AdModel(0.5, made.offsets, np.zeros_like(made.factors))
    best = AdModel(0.5, made.offsets, made.factors * np.float32(math.sqrt(0.1 / 0.011)))
    margin = error(mean, made) - error(best, made)
    assert error(sent.model, made) < error(best, made) + (0.15 if epsilon > 4 else 0.45) * margin


@pytest.mark.parametrize("form", FORMS)
def test_a_world_without_structure_gives_offsets_only(form: str) -> None:
    made = world(60_000, low_rank=0.0, name="flat")
    model = train(SpectralTraining(ADS, RANK, 2.0, form=form), made.kept).model
    assert not model.factors.any()
    truth = AdModel(0.5, made.offsets, model.factors)
    assert error(model, made) < 1.05 * error(truth, made)


def test_too_few_people_give_offsets_that_are_shrunk() -> None:
    made = world(2_000, name="few")
    model = train(SpectralTraining(ADS, RANK, 0.5), made.kept).model
    nothing = AdModel(0.5, np.zeros(ADS, dtype=np.float32), np.zeros_like(made.factors))
    assert error(model, made) < 1.1 * error(nothing, made)


# Privacy.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_the_guarantee_is_what_was_requested(form: str, epsilon: float) -> None:
    training: AdTraining = SpectralTraining(ADS, RANK, epsilon, form=form)
    proved = training.guarantee().epsilon
    assert epsilon - 1e-6 < proved <= epsilon == training.claimed.epsilon
    assert proved == max(training.cost(number).epsilon for number in range(3))
    assert not training.guarantee(Neighbours.RECORD_ADD_REMOVE).is_finite


@pytest.mark.parametrize("shares", [(0.05, 0.15, 0.8), (0.2, 0.3, 0.5)])
def test_everybody_reports_in_exactly_one_round(shares: tuple[float, float, float]) -> None:
    training = SpectralTraining(ADS, RANK, 1.0, shares=shares)
    ends = np.array([0, 1, (1 << 31), (1 << 32) - 1], dtype=np.uint32)
    lots = np.concatenate([lots_of(100_000), ends])
    groups = np.array([training.reporters(number, lots) for number in range(3)])
    assert (groups.sum(axis=0) == 1).all()
    assert groups.mean(axis=1) == pytest.approx(shares, abs=0.01)


def test_a_lite_report_is_within_the_bound_for_every_draw_of_the_signs() -> None:
    """By listing: two signs each of three ads, and the flip; any ratings to any others."""
    from enumeration import enumerate_distribution, exact_worst

    training = SpectralTraining(3, 1, 1.0, form="lite")
    sent, distributions = training.start(), []
    for values in ((1.0, 0.9, 0.0), (0.0, 1.0, 0.9), (0.5, 0.5, 0.5), (1.0, 0.5, 0.2)):
        rating = np.array([values], dtype=np.float32)
        ratings, taste = Ratings(np.ones((1, 3), dtype=bool), rating), np.zeros((1, 1), np.float32)
        distributions.append(
            enumerate_distribution(
                lambda source, ratings=ratings, taste=taste: (
                    training.report(  # type: ignore[misc]
                        2, sent, taste, ratings, source
                    ).reports
                )
            )
        )
    pairs = [(one, other) for one in distributions for other in distributions]
    worst = float(exact_worst(pairs))
    assert 1 - 1e-6 < worst <= training.cost(2).epsilon


def test_ratings_that_are_not_present_do_not_matter() -> None:
    made = world(500)
    other = Ratings(made.kept.rated, np.where(made.kept.rated, made.kept.rating, np.nan))
    training = SpectralTraining(ADS, RANK, 1.0)
    tastes = np.zeros((500, RANK), dtype=np.float32)
    for number in range(3):
        reports = []
        for ratings in (made.kept, other):
            with new_run():
                source = SeededSource(1, "held", number)
                sent = training.report(number, training.start(), tastes, ratings, source)
                reports.append(sent.reports)
        assert np.array_equal(reports[0], reports[1])


# Odds and ends.


def test_the_kinds_are_listed() -> None:
    training = SpectralTraining(20, 3, 1.0)
    assert training.kind(0) == rated_bits_kind(64) == KIND_BUILDERS["rated-bits"](size=64)
    assert training.kind(1) == rating_directions_kind(64)
    assert training.kind(1) == KIND_BUILDERS["rating-directions"](size=64)
    assert training.kind(2) == rating_axes_kind(20) == KIND_BUILDERS["rating-axes"](size=20)
    assert SpectralTraining(20, 3, 1.0, form="lite").kind(2) == rating_axes_kind(40)
    assert SpectralTraining(20, 3, 4.0).kind(2) == rating_axes_kind(64)


def test_rounds_without_reports_teach_nothing_and_break_nothing() -> None:
    training = SpectralTraining(ADS, RANK, 1.0)
    sent = training.start()
    for number in range(3):
        tally = np.zeros(training.kind(number).cells, dtype=np.int64)
        sent = training.update(number, sent, tally, 0)
    assert not sent.model.offsets.any()
    made = world(3_000)
    lots = lots_of(3_000)
    some = made.kept[training.reporters(2, lots)]
    reports = training.report(
        2, sent, np.zeros((len(some), RANK), np.float32), some, SeededSource(1, "late")
    ).reports
    kind = training.kind(2)
    tally = kind.tally(kind.encode(reports))
    assert np.isfinite(training.update(2, sent, tally, len(some)).model.factors).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ads", 2),
        ("dimension", ADS),
        ("epsilon", 0.0),
        ("shares", (0.5, 0.0, 0.5)),
        ("shares", (0.6, 0.6, -0.2)),
        ("shares", (0.5, 0.4, 0.2)),
        ("form", "fast"),
        ("ridge", 0.0),
        ("centre", 2.0),
    ],
)
def test_bad_parameters_are_refused(name: str, value: object) -> None:
    given = {"ads": ADS, "dimension": RANK, "epsilon": 1.0, name: value}
    with pytest.raises(BadParameter, match=name):
        SpectralTraining(**given)  # type: ignore[arg-type]  # the fault


def test_ratings_of_another_catalogue_are_refused() -> None:
    training, made = SpectralTraining(ADS + 1, RANK, 1.0), world(10)
    with pytest.raises(OutOfDomain):
        training.report(
            0, training.start(), np.zeros((10, RANK), np.float32), made.kept, SeededSource(1, "x")
        )
