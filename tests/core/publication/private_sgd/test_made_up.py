"""Checks before the first step: on made-up examples, which have nothing to do with real ones."""

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import OutOfDomain, TrainingFailed, UnsupportedModule
from noisefloor.publication.private_sgd import PrivateTraining, cross_entropy, initialise, train
from noisefloor.publication.private_sgd.module_checks import (
    PLACEHOLDER_ROWS,
    as_batch,
    placeholder_examples,
)
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CASES, PLAN, blobs, made, mlp, weights


def test_made_up_examples_do_not_depend_on_real_ones() -> None:
    floats, whole = torch.rand(5, 3, 2), torch.arange(10).view(5, 2)
    kinds = list(placeholder_examples(as_batch((floats, whole > 3), whole)))
    others = list(placeholder_examples(as_batch((floats * torch.nan, whole > 9), 7 - whole)))
    for kind, other in zip(kinds, others, strict=True):
        pairs = zip((*kind.inputs, kind.targets), (*other.inputs, other.targets), strict=True)
        assert all(torch.equal(one, two) for one, two in pairs)
        assert [one.dtype for one in kind.inputs] == [torch.float32, torch.bool]
        assert (
            kind.inputs[0].shape == (PLACEHOLDER_ROWS, 3, 2) and kind.targets.dtype == torch.int64
        )
        assert len({tuple(row.view(-1).tolist()) for row in kind.inputs[0]}) == PLACEHOLDER_ROWS


class Choosy(nn.Module):
    """Takes logarithms, looks up tokens, and reads up to a length."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(2, 4), nn.Linear(8, 3)

    def forward(self, values: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        if bool((values <= 0).any()) or bool((lengths < 1).any()):
            raise ValueError("expected positive values and lengths")
        seen = self.table(tokens).sum(1) / lengths.unsqueeze(1)
        logits: Tensor = self.head(torch.cat([values.log(), seen], 1))
        return logits


def test_a_kind_is_found_that_the_module_takes() -> None:
    values, tokens = torch.full((7, 4), 2.0), torch.ones(7, 2, dtype=torch.int64)
    inputs = (values, tokens, 2 * tokens[:, 0])
    report = train(Choosy(), inputs, tokens[:, 0], PLAN, SeededSource(1, "choosy"))
    assert report.moved > 0


def test_where_no_kind_is_taken_public_examples_are() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 3)

        def forward(self, values: Tensor) -> Tensor:
            if float(values.min()) < 5:
                raise ValueError("expected no value below 5")
            logits: Tensor = self.head(values)
            return logits

    inputs, labels = torch.full((7, 8), 6.0), torch.zeros(7, dtype=torch.int64)
    with pytest.raises(UnsupportedModule, match=r"takes no made-up examples \(ValueError: exp"):
        train(Picky(), inputs, labels, PLAN, SeededSource(1, "picky"))
    public = (torch.arange(16.0).view(2, 8) + 5, torch.tensor([0, 1]))
    source = SeededSource(1, "public")
    assert train(Picky(), inputs, labels, PLAN, source, public_examples=public).moved > 0
    with pytest.raises(OutOfDomain, match="at least two"):
        one = (public[0][:1], public[1][:1])
        train(Picky(), inputs, labels, PLAN, SeededSource(1, "one"), public_examples=one)


def test_checks_leave_weights_and_random_numbers_alone() -> None:
    module, inputs, targets = made(CASES["lstm"], "alone")
    before, drawn = weights(module), torch.get_rng_state()
    training = PrivateTraining(module, inputs, targets, PLAN, SeededSource(1, "alone"))
    with training:
        assert torch.equal(weights(module), before)
        assert not training._sums.any()
    assert torch.equal(torch.get_rng_state(), drawn)


def test_the_result_does_not_depend_on_what_was_checked() -> None:
    found = []
    inputs, labels = blobs(7, "checked")
    for public in (None, (inputs + 1, labels)):
        module = mlp()
        with new_run():
            initialise(module, SeededSource(1, "weights"))
            source = SeededSource(1, "training")
            train(module, inputs, labels, PLAN, source, public_examples=public)
        found.append(weights(module))
    assert torch.equal(found[0], found[1])


def test_a_refused_module_is_left_as_it_was() -> None:
    def shared(outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets) / len(targets)

    module = mlp()
    before = weights(module)
    with pytest.raises(UnsupportedModule):
        train(module, *blobs(7, "left"), PLAN, SeededSource(1, "left"), loss=shared)
    assert torch.equal(weights(module), before)
    assert all(one.requires_grad for one in module.parameters())
    assert not any("forward" in vars(layer) for layer in module.modules())


def test_a_loss_that_reaches_no_weight_is_dead_before_the_first_step() -> None:
    training = PrivateTraining(
        mlp(),
        *blobs(7, "dead"),
        PLAN,
        SeededSource(1, "dead"),
        loss=lambda outputs, _: 0.0 * outputs.sum(1),
    )
    with pytest.raises(TrainingFailed, match="All gradients are zero"), training:
        pass
    assert training.step == 0
