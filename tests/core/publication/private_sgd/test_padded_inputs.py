"""Padded inputs: cut to about their own length, and the same gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from noisefloor.errors import BadParameter, OutOfDomain, UnsupportedModule
from noisefloor.publication.noised_vectors import NoisedVector
from noisefloor.publication.private_sgd import PaddedInputs, PrivateTraining, initialise, train
from noisefloor.publication.private_sgd.module_checks import ExampleBatch
from noisefloor.randomness import SeededSource, new_run
from private_sgd_cases import CLASSES, PLAN, Heads, weights

LENGTHS = torch.tensor([3, 12, 4, 1, 0, 9, 5])


def texts() -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return tokens with flags of what is text, of unlike length, and labels."""
    generator = SeededSource(4, "texts").generator()
    tokens = torch.from_numpy(generator.integers(0, 11, (7, 12)))
    is_text = (torch.arange(12) < LENGTHS.unsqueeze(1)).long()
    is_text[:, 0] = 1  # attention needs something to look at
    return (tokens, is_text), torch.arange(7) % CLASSES


def first_sum(padding: PaddedInputs | None) -> tuple[Tensor, Tensor]:
    """Return the sum of the first step, before noise, and the weights at the end."""
    seen: list[NoisedVector] = []
    inputs, labels = texts()
    with new_run():
        module = Heads()
        initialise(module, SeededSource(4, "weights"))
        module.double()
        plan = replace(PLAN, expected_batch=7, averaging=0.0)
        source = SeededSource(4, "training")
        train(module, inputs, labels, plan, source, padding=padding, residuals=seen.append)
    return torch.from_numpy(seen[0].clean), weights(module)


@pytest.mark.parametrize("step", [1, 4, 100])
def test_cut_batches_have_the_gradients_of_padded_ones(step: int) -> None:
    padded, after = first_sum(None)
    cut, cut_after = first_sum(PaddedInputs(LENGTHS, (0, 1), step=step))
    assert float((padded - cut).abs().max()) < 1e-6
    assert float((after - cut_after).abs().max()) < 1e-6


def test_a_cut_that_is_too_short_is_seen() -> None:
    padded, _ = first_sum(None)
    cut, _ = first_sum(PaddedInputs(LENGTHS.sub(4).clamp(min=1), (0, 1), step=1))
    assert float((padded - cut).abs().max()) > 1e-3


def test_an_example_is_cut_to_its_own_length_whatever_others_are() -> None:
    padding = PaddedInputs(LENGTHS, step=4)
    parts = list(padding.micro_batches(None, 2))
    assert [one.tolist() for one in parts] == [[0, 2], [3, 4], [6], [1, 5]]
    some = list(padding.micro_batches(torch.tensor([1, 3, 6]), 10))
    assert [one.tolist() for one in some] == [[3], [6], [1]]
    (tokens, is_text), labels = texts()
    batch = ExampleBatch((tokens[:1], is_text[:1]), labels[:1])
    assert padding.cut(batch, torch.tensor([0])).inputs[0].shape == (1, 4)
    assert padding.cut(batch, torch.tensor([0])).inputs[1].shape == (1, 12)
    assert padding.cut(batch, torch.tensor([5])).inputs[0].shape == (1, 12)
    assert list(padding.micro_batches(torch.arange(0), 10)) == []


def test_targets_may_be_sequences_as_well() -> None:
    padding = PaddedInputs(LENGTHS, targets=True, step=4)
    batch = ExampleBatch((torch.zeros(7, 12),), torch.zeros(7, 12))
    padding.check(batch)
    assert padding.cut(batch, torch.tensor([0])).targets.shape == (7, 4)


def test_a_module_that_takes_no_shorter_inputs_is_refused_before_the_first_step() -> None:
    """Later on each example of it would raise, and count as zero."""
    module = nn.Sequential(nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, CLASSES))
    inputs, labels = torch.ones(7, 12), torch.arange(7) % CLASSES
    with (
        pytest.raises(UnsupportedModule, match="takes no made-up examples"),
        PrivateTraining(
            module,
            inputs,
            labels,
            PLAN,
            SeededSource(1, "shorter"),
            padding=PaddedInputs(LENGTHS, step=4),
        ),
    ):
        pass


def test_lengths_that_do_not_fit_are_refused() -> None:
    batch = ExampleBatch((torch.zeros(7, 12),), torch.zeros(7))
    for padding in (
        PaddedInputs(LENGTHS[:5]),
        PaddedInputs(LENGTHS, (1,)),
        PaddedInputs(LENGTHS, targets=True),
    ):
        with pytest.raises(OutOfDomain, match="Expected"):
            padding.check(batch)
    with pytest.raises(BadParameter, match="lengths"):
        PaddedInputs(LENGTHS.double())
    with pytest.raises(BadParameter, match="step"):
        PaddedInputs(LENGTHS, step=0)
