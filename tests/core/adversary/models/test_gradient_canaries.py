"""Gradient canaries: ratios by densities, audits near what is proved, faults and nulls."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from noisefloor.adversary.models.canary_directions import (
    DiracDirections,
    Directions,
    RandomDirections,
)
from noisefloor.adversary.models.gradient_canaries import (
    CanaryGame,
    CanaryRun,
    canary_log_ratios,
    gaussian_epsilon,
    laplace_projection,
)
from noisefloor.adversary.models.shadows.dense import Networks
from noisefloor.adversary.models.shadows.private_dense import clipped_sums
from noisefloor.adversary.one_run import one_run_bound
from noisefloor.adversary.releases.noise_laws import LaplaceLaw
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

ALPHA, DELTA = 1e-6, 1e-5
"""Each bound below is wrong with probability ALPHA."""

SMALL_DELTA = 1e-9
"""For audits of one run, which pay 2 delta for each canary out of ALPHA."""


@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_ratios_are_those_of_the_two_mixtures(rate: float) -> None:
    noise = 1.7
    seen = np.linspace(-4, 5, 12).reshape(4, 3)
    inside = rate * norm.pdf(seen, 1, noise) + (1 - rate) * norm.pdf(seen, 0, noise)
    expected = np.log(inside / norm.pdf(seen, 0, noise)).sum(axis=0)
    assert canary_log_ratios(seen, noise, rate) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [DiracDirections, RandomDirections])
def test_directions_are_orthonormal(kind: type[DiracDirections | RandomDirections]) -> None:
    directions = kind.draw(5, 40, SeededSource(1, "directions"))
    rows = np.stack([directions.combine(row) for row in np.eye(5)])
    assert rows @ rows.T == pytest.approx(np.eye(5), abs=1e-9)
    assert directions.project(rows) == pytest.approx(np.eye(5), abs=1e-9)
    assert directions.count == 5
    with pytest.raises(BadParameter, match="count"):
        kind.draw(41, 40, SeededSource(1, "too many"))


@pytest.mark.statistical
def test_the_gaussian_audit_comes_close_to_what_is_proved() -> None:
    """100,000 trainings of each kind, 16 steps."""
    game = CanaryGame(4.0, 16)
    proved = game.proved(DELTA).epsilon
    assert game.mu == 1.0
    assert gaussian_epsilon(game.mu, DELTA) == pytest.approx(proved, abs=0.02)
    bound = game.audit_gaussian(100_000, SeededSource(2, "close"), alpha=ALPHA, delta=DELTA)
    assert 0.88 * proved < bound.epsilon < proved


@pytest.mark.statistical
def test_too_little_noise_is_found() -> None:
    """The sum is noised with a quarter less than stated: the audit passes what is proved."""
    stated, real = CanaryGame(4.0, 16), CanaryGame(3.0, 16)
    bound = real.audit_gaussian(100_000, SeededSource(3, "fault"), alpha=ALPHA, delta=DELTA)
    assert bound.epsilon > stated.proved(DELTA).epsilon
    assert bound.epsilon < real.proved(DELTA).epsilon


@pytest.mark.statistical
def test_without_assumptions_the_bound_is_lower_and_holds_for_sampled_steps_too() -> None:
    game = CanaryGame(1.0, 10, 0.3)
    bound = game.audit(50_000, SeededSource(4, "sampled"), alpha=ALPHA, delta=DELTA)
    assert 0.3 * game.proved(DELTA).epsilon < bound.epsilon < game.proved(DELTA).epsilon
    with pytest.raises(BadParameter, match="Gaussian audit"):
        game.audit_gaussian(100, SeededSource(4, "refused"), alpha=ALPHA, delta=DELTA)


@pytest.mark.statistical
def test_scores_have_the_law_of_the_closed_form() -> None:
    """50,000 trainings: the ratio is above 0 with Phi(mu / 2); false alarm 1e-6."""
    game = CanaryGame(5.0, 9)
    scores = game.scores(50_000, SeededSource(5, "law"), is_in=True)
    right = int((scores > 0).sum())
    assert binomial_p(right, 50_000, norm.cdf(game.mu / 2)) > FALSE_ALARM
    assert binomial_p(right, 50_000, norm.cdf(1.15 * game.mu / 2)) < FALSE_ALARM


def test_the_limit_of_many_sampled_steps_is_near_the_account() -> None:
    game = CanaryGame(1.0, 1000, 0.01)
    assert game.mu == pytest.approx(0.01 * math.sqrt(1000 * (math.e - 1)))
    assert gaussian_epsilon(game.mu, DELTA) == pytest.approx(game.proved(DELTA).epsilon, rel=0.2)


def canary_run(
    directions: Directions, noise: float, steps: int, name: str, *, is_leaky: bool = True
) -> CanaryRun:
    """Put canaries into a training whose other gradients are a constant, and see every step."""
    source = SeededSource(6, name)
    members = source.child("coins").bernoulli(1 << 63, directions.count)
    run = CanaryRun(directions, members, 0.5, noise, 1.0, source)
    rest = directions.combine(np.full(directions.count, 0.2))
    for step in range(steps):
        sums: NDArray[np.float64] = rest + run.insert(step) * is_leaky
        drawn = source.child("noise", step).normals(len(sums)).astype(np.float64)
        run.see(sums + 0.5 * noise * drawn, rest)
    return run


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [DiracDirections, RandomDirections])
def test_one_run_with_many_canaries_is_audited(
    kind: type[DiracDirections | RandomDirections],
) -> None:
    directions = kind.draw(800, 1000, SeededSource(7, "many"))
    run = canary_run(directions, 2.0, 4, "leak")
    proved = CanaryGame(2.0, 4).proved(SMALL_DELTA).epsilon
    bound = run.audit(alpha=ALPHA, delta=SMALL_DELTA)
    assert 0 < bound.epsilon < proved
    fixed = one_run_bound(run.scores(), run.members, alpha=ALPHA, delta=SMALL_DELTA, made=200)
    assert 0.4 < fixed.epsilon < proved
    silent = canary_run(directions, 2.0, 4, "null", is_leaky=False)
    assert silent.audit(alpha=ALPHA).epsilon == 0


@pytest.mark.statistical
def test_canaries_in_a_real_training_are_audited_below_what_is_proved() -> None:
    """DP-SGD on a network: its own gradients are clipped, summed and noised with the canaries."""
    source = SeededSource(9, "training")
    words = source.child("features").words(200 * 6) >> np.uint64(11)
    features = torch.from_numpy((words * 2.0**-53).astype(np.float32)).view(1, 200, 6)
    labels, there = (features[..., 0] > 0.5).long(), torch.ones(1, 200, dtype=torch.bool)
    networks, clip, noise = Networks(1, (6, 128, 2)), 0.5, 1.0
    networks.start([source.child("start")])
    directions = DiracDirections.draw(1000, len(networks.gradient), source.child("places"))
    members = source.child("coins").bernoulli(1 << 63, 1000)
    run = CanaryRun(directions, members, clip, noise, 1.0, source)
    with torch.no_grad():
        for step in range(2):
            clipped_sums(networks, features, labels, there, clip)
            rest = networks.gradient.numpy().astype(np.float64)
            drawn = source.child("noise", step).normals(len(rest))
            released = rest + run.insert(step) + clip * noise * drawn
            run.see(released, rest)
            networks.parameters -= 0.01 * torch.from_numpy(released.astype(np.float32))
    proved = CanaryGame(noise, 2).proved(SMALL_DELTA).epsilon
    found = one_run_bound(run.scores(), members, alpha=ALPHA, delta=SMALL_DELTA, made=300)
    assert 1 < found.epsilon < proved


@pytest.mark.statistical
def test_the_projection_of_laplace_noise_has_a_closed_form() -> None:
    """20,000 trainings of 20 steps by 30 parameters: false alarm 1e-6; 15 % more is found."""
    steps, parameters, size, scale, games = 20, 30, 0.1, 2.0, 20_000
    shift = laplace_projection(steps, parameters, -size, scale)
    assert shift == pytest.approx(math.sqrt(600) * 0.1 / (2 * math.sqrt(2)))
    seen = LaplaceLaw(scale).draw((games, steps * parameters), SeededSource(10, "laplace")) + size
    right = int((seen.sum(axis=1) > steps * parameters * size / 2).sum())
    assert binomial_p(right, games, norm.cdf(shift / 2)) > FALSE_ALARM
    assert binomial_p(right, games, norm.cdf(1.15 * shift / 2)) < FALSE_ALARM


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(BadParameter, match="noise_multiplier"):
        CanaryGame(0.0, 3)
    with pytest.raises(BadParameter, match="sampling_rate"):
        CanaryGame(1.0, 3, 1.5)
    directions = DiracDirections.draw(3, 5, SeededSource(8, "three"))
    with pytest.raises(BadParameter, match="coin for each"):
        CanaryRun(directions, np.array([True]), 1.0, 1.0, 1.0, SeededSource(8, "one"))
    run = CanaryRun(directions, np.ones(3, dtype=np.bool_), 1.0, 1.0, 1.0, SeededSource(8, "ok"))
    with pytest.raises(BadParameter, match="steps"):
        run.scores()
