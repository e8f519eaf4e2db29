"""Steps: Poisson samples, noise on the sum, optimisers, averages."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from noisefloor.publication.private_sgd import (
    Flat,
    PerGroup,
    PrivateTraining,
    SgdPlan,
    initialise,
    train,
)
from noisefloor.publication.private_sgd.optimisers import optimiser_for
from noisefloor.publication.private_sgd.subsampled_gaussian import micro_batches, poisson_sample
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, engine_sum, made, weights
from statistics_of_tests import FALSE_ALARM, binomial_p, chi_square_p


@pytest.mark.statistical
def test_samples_are_poisson(seed: int) -> None:
    """3,000 samples of 40 examples: sizes binomial (chi-square), each and each pair by rate.

    False alarm: 1e-6 for the sizes, and over all examples together by Bonferroni.
    """
    plan = SgdPlan(examples=40, expected_batch=6, steps=1, noise_multiplier=1.0)
    rate, trials = plan.sampling_rate, 3_000
    taken = np.zeros((trials, 40), dtype=np.bool_)
    for trial in range(trials):
        places = poisson_sample(plan, 40, SeededSource(seed, "sample", trial))
        assert places is not None
        taken[trial, places.numpy()] = True
    counts = np.bincount(taken.sum(1), minlength=41)
    assert chi_square_p(counts, stats.binom.pmf(np.arange(41), 40, rate)) > FALSE_ALARM
    for place in range(40):
        assert binomial_p(int(taken[:, place].sum()), trials, rate) > FALSE_ALARM / 40
    both = int((taken[:, 0] & taken[:, 1]).sum())
    assert binomial_p(both, trials, rate**2) > FALSE_ALARM
    # The twin: batches of fixed size.
    fixed = np.bincount(np.full(trials, 6), minlength=41)
    assert chi_square_p(fixed, stats.binom.pmf(np.arange(41), 40, rate)) < FALSE_ALARM


def test_a_full_batch_takes_everybody_in_parts() -> None:
    plan = SgdPlan(examples=5, expected_batch=5, steps=1, noise_multiplier=1.0)
    assert poisson_sample(plan, 5, SeededSource(1, "full")) is None
    assert list(micro_batches(None, 5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert [
        one.tolist() for one in map(torch.as_tensor, micro_batches(torch.arange(3), 9, 2))
    ] == [*([0, 1], [2])]
    assert list(micro_batches(torch.arange(0), 9, 2)) == []


@pytest.mark.parametrize("name", ["mlp", "lstm", "cnn"])
def test_a_step_is_the_clipped_sum_and_the_noise_over_the_expected_batch(name: str) -> None:
    case = CASES[name]
    module, inputs, targets = made(case, name)
    plan = SgdPlan(
        examples=7,
        expected_batch=7,
        steps=1,
        noise_multiplier=1e-3,
        clipping=Flat(0.1),
        optimiser="sgd",
        momentum=0.0,
        learning_rate=1.0,
    )
    before = weights(module)
    summed = engine_sum(module, inputs, targets, loss=case.loss, clipping=plan.clipping)
    report = train(module, inputs, targets, plan, SeededSource(1, name), loss=case.loss)
    assert report.road == "book-keeping"
    gap = 7 * (before - weights(module)).double() - torch.cat(list(summed.values()))
    # Normal noise of scale 1e-4 does not reach nine times that, by construction.
    assert 0 < float(gap.abs().max()) < 9e-4


@pytest.mark.statistical
def test_the_noise_of_a_step_is_over_the_sensitivity_of_all_groups(seed: int) -> None:
    """10,100 weights without a gradient: what moves them is noise. False alarm 1e-6.

    Twins: noise over the largest bound, and over the sum of the bounds.
    """
    module = nn.Sequential(nn.Linear(100, 90), nn.Linear(90, 11))
    initialise(module, SeededSource(seed, "weights"))
    plan = SgdPlan(
        examples=50,
        expected_batch=25,
        steps=1,
        noise_multiplier=2.0,
        clipping=PerGroup.of({"0": 3.0, "1": 4.0}),
        optimiser="sgd",
        momentum=0.0,
        learning_rate=1.0,
    )
    before = weights(module)
    inputs, targets = torch.zeros(50, 100), torch.zeros(50, dtype=torch.int64)
    with PrivateTraining(
        module,
        inputs,
        targets,
        plan,
        SeededSource(seed, "training"),
        loss=lambda outputs, labels: labels * outputs.sum(1),  # all are wanted to be zero
    ) as training:
        training.run()
    noise = 25 * (weights(module) - before).double().numpy()
    p = {scale: _variance_p(noise, 2.0 * scale) for scale in (5.0, 4.0, 7.0)}
    assert p[5.0] > FALSE_ALARM
    assert p[4.0] < FALSE_ALARM and p[7.0] < FALSE_ALARM
    assert abs(noise.mean()) < 10.0 * stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(noise.size)


def _variance_p(sample: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scale: float) -> float:
    below = float(stats.chi2.cdf(float(np.sum((sample / scale) ** 2)), sample.size))
    return 2 * min(below, 1 - below)


def test_an_empty_sample_still_gets_noise() -> None:
    module, inputs, targets = made(CASES["mlp"], "empty")
    plan = SgdPlan(examples=7, expected_batch=1e-9, steps=2, noise_multiplier=1.0)
    assert train(module, inputs, targets, plan, SeededSource(1, "empty")).moved > 0


def test_parts_do_not_matter() -> None:
    found = []
    for most in (2, 100):
        with new_run():
            module, inputs, targets = made(CASES["lstm"], "parts")
            train(module, inputs, targets, PLAN, SeededSource(1, "parts"), micro_batch=most)
        found.append(weights(module))
    assert torch.allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_optimisers_are_those_of_torch(kind: str) -> None:
    plan = SgdPlan(
        examples=1,
        expected_batch=1,
        steps=1,
        noise_multiplier=1.0,
        optimiser=kind,  # type: ignore[arg-type]
        learning_rate=0.1,
    )
    ours = torch.linspace(-1, 1, 9)
    theirs = nn.Parameter(ours.clone())
    reference: torch.optim.Optimizer = torch.optim.Adam([theirs], lr=0.1)
    if kind == "sgd":
        reference = torch.optim.SGD([theirs], lr=0.1, momentum=0.9)
    optimiser = optimiser_for(plan, ours)
    for step in range(1, 6):
        gradient = torch.sin(step * torch.arange(9.0))
        theirs.grad = gradient.clone()
        reference.step()
        optimiser.move(ours, gradient, step)
    assert torch.allclose(ours, theirs.detach(), atol=1e-6)


def test_averaging_is_the_mean_of_the_last_weights() -> None:
    plan = SgdPlan(examples=7, expected_batch=3, steps=4, noise_multiplier=1.0, averaging=0.5)
    module, inputs, targets = made(CASES["mlp"], "averaging")
    with PrivateTraining(module, inputs, targets, plan, SeededSource(1, "average")) as training:
        seen = []
        for step in range(1, 5):
            training.run(step)
            seen.append(weights(module))
        training.finish()
    assert torch.allclose(weights(module), (seen[2] + seen[3]) / 2, atol=1e-6)


def test_weight_decay_pulls_to_zero() -> None:
    norms = []
    for decay in (0.0, 5.0):
        plan = SgdPlan(
            examples=7,
            expected_batch=3,
            steps=20,
            noise_multiplier=1e-3,
            optimiser="sgd",
            learning_rate=0.05,
            weight_decay=decay,
        )
        with new_run():
            module, inputs, targets = made(CASES["mlp"], "decay")
            train(module, inputs, targets, plan, SeededSource(1, "decay"))
        norms.append(float(weights(module).norm()))
    assert norms[1] < 0.5 * norms[0]
