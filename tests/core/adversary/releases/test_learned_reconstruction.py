"""Learned reconstruction: finds a planted leak, finds nothing where there is nothing."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from noisefloor.accounting import noise_multiplier_for
from noisefloor.adversary.audit.intervals import lower_limit
from noisefloor.adversary.releases.learned_reconstruction import (
    ReconstructionGame,
    Reconstructor,
    nearest,
    within,
)
from noisefloor.adversary.releases.reconstruction_bounds import candidate_bound, robustness_bound
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SeededSource, Source
from statistics_of_tests import FALSE_ALARM, binomial_p

SUBSTITUTED = Neighbours.RECORD_SUBSTITUTE
PLAIN = Guarantee.none("no noise", SUBSTITUTED, TrustModel.CENTRAL)
RIDGE = 1.0
FEATURES = 6
SHADOWS, GAMES = 300, 400

DRAW = SeededSource(21, "people").generator()
KNOWN = np.column_stack([DRAW.random((40, FEATURES)), DRAW.random(40) < 0.5])
CANDIDATES = np.column_stack([DRAW.random((12, FEATURES)), np.arange(12) % 2]).astype(np.float64)


def learnt(record: Floats) -> Floats:
    """Return logistic regression, with a ridge on all parameters, of the known and one more."""
    rows = np.vstack([KNOWN, record]).astype(np.float64)
    features, labels = np.column_stack([rows[:, :-1], np.ones(len(rows))]), rows[:, -1]
    at = np.zeros(FEATURES + 1)
    for _ in range(8):
        mean = 1 / (1 + np.exp(-features @ at))
        slope = features.T @ (mean - labels) + RIDGE * at
        curve = (features * (mean * (1 - mean))[:, None]).T @ features + RIDGE * np.eye(len(at))
        at = at - np.linalg.solve(curve, slope)
    return at


def release_of(sigma: float) -> Callable[[Floats, Source], Floats]:
    """Return the learner with noise on its parameters; models without noise are learnt once."""
    made: dict[bytes, Floats] = {}

    def release(record: Floats, source: Source) -> Floats:
        name = record.tobytes()
        if name not in made:
            made[name] = learnt(record)
        at = made[name]
        noise = source.stage("noise").normals(len(at)).astype(np.float64)
        return at + sigma * noise

    return release


def private(epsilon: float) -> tuple[float, Guarantee]:
    """Return the noise that output perturbation asks for, and what is proved.

    The objective is RIDGE-strongly convex, a record's gradient is at most sqrt(features + 1).
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, arXiv 0912.0071.
    """
    added = math.sqrt(FEATURES + 1) / RIDGE
    sigma = added * noise_multiplier_for(epsilon, 1e-5, neighbours=SUBSTITUTED)
    return sigma, Guarantee(epsilon, SUBSTITUTED, delta=1e-5, model=TrustModel.CENTRAL)


@pytest.mark.statistical
def test_a_model_without_noise_gives_the_missing_record_away(seed: int) -> None:
    # The planted leak: 300 shadows, 400 games, 12 candidates.
    game = ReconstructionGame(release_of(0.0), CANDIDATES, PLAIN)
    found = game.play(SHADOWS, GAMES, SeededSource(seed, "leak"))
    assert found.outcome.interval[0] > 0.9
    assert found.error < 0.1 * found.prior_error
    assert found.outcome.bound == 1.0


@pytest.mark.statistical
def test_records_that_no_shadow_had_are_reconstructed_too(seed: int) -> None:
    # 3,000 candidates, 300 shadows, 200 games: nearly all games have a record of their own.
    draw = SeededSource(9, "candidates").generator()
    many = np.column_stack([draw.random((3_000, FEATURES)), np.arange(3_000) % 2])
    game = ReconstructionGame(release_of(0.0), many.astype(np.float64), PLAIN, radius=0.3)
    found = game.play(SHADOWS, 200, SeededSource(seed, "many"))
    assert found.error < 0.1 * found.prior_error
    assert found.outcome.interval[0] > 0.7 > 10 * found.outcome.baseline


STEPS, RATE = 20, 0.05


def descent_of(sigma: float) -> Callable[[Floats, Source], Floats]:
    """Return noisy gradient descent on clipped gradients of all records: the last parameters."""

    def release(record: Floats, source: Source) -> Floats:
        rows = np.vstack([KNOWN, record]).astype(np.float64)
        features, labels = np.column_stack([rows[:, :-1], np.ones(len(rows))]), rows[:, -1]
        noise = source.stage("noise").normals(STEPS * (FEATURES + 1)).astype(np.float64)
        at = np.zeros(FEATURES + 1)
        for step in noise.reshape(STEPS, -1):
            residual = 1 / (1 + np.exp(-features @ at)) - labels
            slopes = features * residual[:, None]
            lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
            slopes /= np.maximum(1.0, lengths)
            at = at - RATE * (slopes.sum(axis=0) + sigma * step)
        return at

    return release


@pytest.mark.statistical
def test_noisy_gradient_descent_keeps_the_bound_and_plain_descent_does_not(seed: int) -> None:
    # 400 games; false alarm FALSE_ALARM. Without noise the claim of epsilon 1 is refuted.
    proved = Guarantee(1.0, SUBSTITUTED, delta=1e-5, model=TrustModel.CENTRAL)
    sigma = noise_multiplier_for(1.0, 1e-5, count=STEPS, neighbours=SUBSTITUTED)
    private, plain = (
        ReconstructionGame(descent_of(noise), CANDIDATES, proved).play(
            SHADOWS, GAMES, SeededSource(seed, "descent", name)
        )
        for name, noise in (("private", sigma), ("plain", 0.0))
    )
    assert lower_limit(private.outcome.right, GAMES, FALSE_ALARM) <= private.outcome.bound
    assert private.error > 0.9 * private.prior_error
    assert lower_limit(plain.outcome.right, GAMES, FALSE_ALARM) > plain.outcome.bound
    assert plain.outcome.success > 0.9


@pytest.mark.statistical
def test_a_private_model_keeps_the_record_within_the_bound(seed: int) -> None:
    # 400 games; false alarm FALSE_ALARM. The twin: what is found without noise passes the bound.
    sigma, proved = private(1.0)
    found = ReconstructionGame(release_of(sigma), CANDIDATES, proved).play(
        SHADOWS, GAMES, SeededSource(seed, "private")
    )
    assert lower_limit(found.outcome.right, GAMES, FALSE_ALARM) <= found.outcome.bound
    assert found.outcome.bound == pytest.approx(candidate_bound(proved, np.full(12, 1 / 12)))
    assert found.error > 0.9 * found.prior_error
    faulty = ReconstructionGame(release_of(sigma / 1e3), CANDIDATES, proved).play(
        SHADOWS, GAMES, SeededSource(seed, "faulty")
    )
    assert lower_limit(faulty.outcome.right, GAMES, FALSE_ALARM) > faulty.outcome.bound


@pytest.mark.statistical
def test_a_release_that_does_not_depend_on_the_record_tells_nothing(seed: int) -> None:
    # 2,000 games of 12 equally likely candidates; false alarm FALSE_ALARM. The twin: the leak.
    def deaf(record: Floats, source: Source) -> Floats:
        return source.stage("noise").normals(FEATURES + 1).astype(np.float64)

    found = ReconstructionGame(deaf, CANDIDATES, PLAIN).play(
        SHADOWS, 2_000, SeededSource(seed, "null")
    )
    assert binomial_p(found.outcome.right, 2_000, 1 / 12) > FALSE_ALARM
    assert found.prior_error - found.error < 5 * found.standard_error
    leak = ReconstructionGame(release_of(0.0), CANDIDATES, PLAIN).play(
        SHADOWS, GAMES, SeededSource(seed, "leak")
    )
    assert binomial_p(leak.outcome.right, GAMES, 1 / 12) < FALSE_ALARM
    assert leak.prior_error - leak.error > 5 * leak.standard_error


def test_near_guesses_count_within_the_radius() -> None:
    line = np.arange(5.0)[:, None]
    proved = Guarantee(0.5, SUBSTITUTED)
    game = ReconstructionGame(lambda record, _: record, line, proved, radius=1.0)
    found = game.play(50, 50, SeededSource(1, "near"))
    assert found.outcome.success == 1.0
    assert found.outcome.baseline == pytest.approx(0.6)
    assert found.outcome.bound == pytest.approx(robustness_bound(proved, 0.6))


def test_a_linear_leak_is_learned_exactly_with_more_parameters_than_shadows() -> None:
    draw = SeededSource(2, "linear").generator()
    records, mixing = draw.random((60, 3)), draw.normal(size=(3, 500))
    learned = Reconstructor.fit(records[:40] @ mixing + 2.0, records[:40])
    assert learned.records(records[40:] @ mixing + 2.0) == pytest.approx(records[40:], abs=1e-4)


def test_noise_alone_is_shrunk_to_the_prior_guess() -> None:
    draw = SeededSource(3, "noise").generator()
    records = draw.random((200, 2))
    learned = Reconstructor.fit(draw.normal(size=(200, 150)), records)
    told = learned.records(draw.normal(size=(200, 150)))
    # Without the leave-one-out choice of the ridge the spread would be that of the records.
    assert np.abs(told - learned.prior_guess).max() < 0.5 * records.std()


def test_nearest_candidates_and_what_lies_within() -> None:
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert nearest(np.array([[0.1, 0.2], [0.2, 0.9], [5.0, 0.0]]), corners).tolist() == [0, 1, 2]
    shares = np.array([0.2, 0.5, 0.3])
    assert within(corners, shares, 0.0) == pytest.approx(0.5)
    assert within(corners, shares, 1.0) == pytest.approx(1.0)
    assert within(corners[1:], np.array([0.5, 0.5]), 1.0) == pytest.approx(0.5)


def test_bad_games_are_refused() -> None:
    release = release_of(0.0)
    with pytest.raises(BadParameter, match="candidates"):
        ReconstructionGame(release, CANDIDATES[:1], PLAIN)
    with pytest.raises(BadParameter, match="radius"):
        ReconstructionGame(release, CANDIDATES, PLAIN, radius=-1.0)
    with pytest.raises(BadParameter, match="shadows"):
        ReconstructionGame(release, CANDIDATES, PLAIN).play(3, 10, SeededSource(1, "few"))
    with pytest.raises(BadParameter, match="released"):
        Reconstructor.fit(np.zeros((9, 2)), np.zeros((8, 2)))
