"""Whole trainings: something is learnt, and the same from the same coins."""

import pytest
import torch
from torch import Tensor

from noisefloor.publication.private_sgd import (
    PrivateTraining,
    SgdPlan,
    check_learnt,
    cross_entropy,
    initialise,
    train,
)
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import blobs, engine_sum, mlp, weights


def test_easy_examples_are_learnt_through_the_noise() -> None:
    inputs, targets = blobs(2_000, "train")
    plan = SgdPlan(
        examples=2_000, expected_batch=200, steps=60, noise_multiplier=1.7, learning_rate=0.02
    )
    found = []
    for _ in range(2):
        module = mlp()
        with new_run():
            initialise(module, SeededSource(2, "weights"))
            train(module, inputs, targets, plan, SeededSource(2, "training"))
        found.append(weights(module))
    assert torch.equal(found[0], found[1])
    with torch.no_grad():
        tested, labels = blobs(500, "test")
        assert check_learnt(module(tested).argmax(1), labels, margin=0.3) > 0.9


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("batch", [40.0, 13.0])
def test_examples_without_a_number_can_be_left_out_and_change_nothing(
    per_example: bool, batch: float
) -> None:
    """A run that stops tells of an example; one that leaves it out is as if it were not there."""
    plan = SgdPlan(examples=40, expected_batch=batch, steps=4, noise_multiplier=0.5)
    inputs, labels = blobs(40, "broken")
    broken = inputs.clone()
    broken[3], broken[17, 2], broken[39] = float("nan"), float("inf"), -float("inf")
    found = []
    for values in (broken, inputs):
        module = mlp()
        with new_run():
            initialise(module, SeededSource(1, "weights"))
            training = PrivateTraining(
                module,
                values,
                labels,
                plan,
                SeededSource(1, "training"),
                per_example=per_example,
                skips=values is broken,
            )
            if values is inputs:  # the same examples, taken out by hand
                _without(training, {3, 17, 39})
            with training:
                training.run()
                training.finish()
        found.append(weights(module))
    assert found[0].numpy() == pytest.approx(found[1].numpy(), abs=1e-6)


def _without(training: PrivateTraining, gone: set[int]) -> None:
    """Let a training pass over some examples whenever they are drawn."""
    add = training._add

    def kept(part: Tensor | slice) -> None:
        places = torch.arange(len(training._targets))[part]
        kept_places = places[[int(one) not in gone for one in places]]
        if len(kept_places):
            add(kept_places)

    training._add = kept  # type: ignore[method-assign] # the point of it


def test_the_noise_covers_what_sums_of_single_floats_are_off_by() -> None:
    """One example less moves the others up: in single floats they then add up to another sum."""
    count = 20_000
    inputs, labels = blobs(count, "many")
    plan = SgdPlan(examples=count, expected_batch=count, steps=1, noise_multiplier=1.0)
    module = mlp()
    with new_run():
        initialise(module, SeededSource(2, "weights"))
    whole, rest, own = (
        torch.cat(
            list(
                engine_sum(
                    module, inputs[some], labels[some], loss=cross_entropy, clipping=plan.clipping
                ).values()
            )
        )
        for some in (slice(None), slice(1, None), slice(0, 1))
    )
    beyond = float((whole - rest - own).norm())
    assert beyond > 1e-5  # more than the margin of clipping
    assert float(own.norm()) + beyond <= plan.noise_scale
