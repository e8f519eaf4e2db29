"""Whole trainings: something is learnt, and the same from the same draws."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from noisefloor.publication.private_sgd import (
    PrivateTraining,
    SgdPlan,
    cross_entropy,
    initialise,
    train,
)
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import Case, blobs, engine_sum, made, mlp, weights


def test_easy_examples_are_fitted_through_the_noise() -> None:
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
        accuracy = float((module(tested).argmax(1) == labels).double().mean())
    largest = float(labels.bincount().max()) / len(labels)
    assert accuracy > max(0.9, largest + 0.3)


class Choosy(nn.Module):
    """Adds a row of a table; raises where an example has an unlucky number in it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.body = nn.Embedding(5, 8), mlp()

    def forward(self, values: Tensor, tokens: Tensor) -> Tensor:
        if bool((values == 13.0).any()):
            raise ValueError("13")
        logits: Tensor = self.body(values + self.table(tokens))
        return logits


def _spoilt(inputs: Tensor, tokens: Tensor, labels: Tensor) -> dict[int, str]:
    """Spoil some examples, each in its own way; return which, and how."""
    inputs[3] = float("nan")
    inputs[17, 2] = float("inf")
    inputs[21, 5] = 13.0
    tokens[24] = 5  # of a table of five rows
    labels[30] = 3  # of three classes
    inputs[39] = -float("inf")
    return {3: "NaN", 17: "inf", 21: "raises", 24: "token", 30: "label", 39: "-inf"}


@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("batch", [40.0, 13.0])
def test_examples_that_cannot_be_computed_count_as_zero_and_nothing_shows_it(
    per_example: bool,
    batch: float,
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run that stops is a fact about an example; one that goes on is as if it were not there."""
    plan = SgdPlan(examples=40, expected_batch=batch, steps=4, noise_multiplier=0.5)
    clean, labels = blobs(40, "broken")
    found, reports = [], []
    for is_spoilt in (True, False):
        inputs, tokens, classes = clean.clone(), torch.arange(40) % 5, labels.clone()
        spoilt = _spoilt(clean.clone(), tokens.clone(), labels.clone())
        if is_spoilt:
            _spoilt(inputs, tokens, classes)
        module = Choosy()
        with new_run():
            initialise(module, SeededSource(1, "weights"))
            source = SeededSource(1, "training")
            training = PrivateTraining(
                module, (inputs, tokens), classes, plan, source, per_example=per_example
            )
            if not is_spoilt:  # the same examples, taken out by hand
                _without(training, set(spoilt))
            with training:
                training.run()
                reports.append(training.finish())
        found.append(weights(module))
    assert found[0].numpy() == pytest.approx(found[1].numpy(), abs=1e-6)
    assert replace(reports[0], moved=0.0) == replace(reports[1], moved=0.0)
    assert not recwarn.list and not caplog.records


def test_an_example_whose_loss_is_no_number_counts_as_zero_though_its_gradient_is_one() -> None:
    def marred(outputs: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(outputs, labels) + torch.where(labels == 1, torch.nan, 0.0)

    def zeroed(outputs: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(outputs, labels) * (labels != 1)

    full = SgdPlan(examples=30, expected_batch=30, steps=3, noise_multiplier=1.0)
    public = (torch.eye(8)[:2], torch.tensor([0, 2]))
    found = []
    for loss in (marred, zeroed):
        with new_run():
            module = mlp()
            initialise(module, SeededSource(1, "weights"))
            source = SeededSource(1, "training")
            train(module, *blobs(30, "marred"), full, source, loss=loss, public_examples=public)
        found.append(weights(module))
    assert found[0].numpy() == pytest.approx(found[1].numpy(), abs=1e-6)


def test_an_example_whose_positions_cancel_does_not_stop_a_run() -> None:
    """Its norm by Gram matrices is that of a rounding error, and no check looks at it."""
    case = Case(lambda: nn.Sequential(nn.Linear(30, 40), nn.Flatten(), nn.Linear(160, 3)), (4, 30))
    module, inputs, targets = made(case, "cancel")
    with torch.no_grad():
        head = module[2].weight  # type: ignore[index]
        head[:, 40:80], head[:, 120:] = -head[:, :40], -head[:, 80:120]
        head *= 1e4
    module[2].requires_grad_(False)  # type: ignore[index]
    inputs[0, 1], inputs[0, 3] = inputs[0, 0], inputs[0, 2]
    full = SgdPlan(examples=7, expected_batch=7, steps=2, noise_multiplier=1.0)
    report = train(
        module, inputs, targets, full, SeededSource(1, "run"), loss=lambda out, _: out[:, 0]
    )
    assert report.road == "book-keeping"


def test_a_run_of_examples_without_gradients_is_not_stopped() -> None:
    """That all gradients are zero is a fact about the examples: with one more it may be false."""

    def of_some(outputs: Tensor, labels: Tensor) -> Tensor:
        return labels * outputs.sum(1)

    inputs, zeros = torch.ones(30, 8), torch.zeros(30, dtype=torch.int64)
    plan = SgdPlan(examples=30, expected_batch=15, steps=30, noise_multiplier=1.0)
    assert train(mlp(), inputs, zeros, plan, SeededSource(1, "none"), loss=of_some).moved > 0


def _without(training: PrivateTraining, gone: set[int]) -> None:
    """Let a training pass over some examples whenever they are drawn."""
    add = training._add

    def kept(part: Tensor | slice) -> None:
        places = torch.arange(len(training._examples.targets))[part]
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
