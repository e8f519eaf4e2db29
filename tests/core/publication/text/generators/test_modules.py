"""Modules: clipped by book-keeping as a loop would, and the same piece by piece as at once."""

import numpy as np
import pytest
import torch
from torch import Tensor

from generator_cases import SHAPES, a_generator, a_vocabulary, some_documents
from noisefloor.errors import BadParameter
from noisefloor.publication.private_sgd import Flat, example_gradients
from noisefloor.publication.private_sgd.bookkeeping import BookKeeping, find_untapped_layers
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.text.generators import GeneratorShape
from noisefloor.publication.text.generators.model_weights import Module, loaded_modules
from noisefloor.publication.text.generators.teacher_forcing import (
    DropoutFactors,
    ForcedTexts,
    forced,
    text_loss,
)
from noisefloor.publication.text.generators.training_texts import lay_out
from noisefloor.randomness import SeededSource

CLOSE = 1e-5


def a_batch(shape: GeneratorShape, share: float) -> ForcedTexts:
    texts = lay_out(some_documents(9), a_vocabulary(), shape)
    keep = DropoutFactors(shape, texts.count, share, SeededSource(1, "keep"))
    keep.renew(0)
    return forced(texts, keep.factors)


def engine_sum(module: Module, batch: ForcedTexts, bound: float) -> dict[str, Tensor]:
    flat = FlatParameters(module)
    sums = torch.zeros_like(flat.vector)
    with BookKeeping(module, flat, sums, loss=text_loss, clipping=Flat(bound)) as adding:
        adding.clip(*batch.examples).add()
    found = dict(zip(flat.names, [view.clone() for view in flat.views(sums)], strict=True))
    flat.release()
    return found


@pytest.mark.parametrize("bound", [0.05, 100.0])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("name", SHAPES)
def test_clipped_sums_are_those_of_a_loop_over_texts(
    name: str, share: float, bound: float
) -> None:
    shape = SHAPES[name]
    module = loaded_modules(a_generator(shape))[0]
    batch = a_batch(shape, share)
    rows = example_gradients(module, batch.examples.inputs, batch.examples.targets, text_loss)
    norms = torch.cat([one.flatten(1) for one in rows.values()], 1).norm(dim=1)
    factors = (bound / norms.clamp(min=1e-30)).clamp(max=1.0)
    assert (factors < 1).any() == (bound < 1)
    found = engine_sum(module, batch, bound)
    assert found.keys() == rows.keys()
    for parameter, one in rows.items():
        expected = torch.einsum("n,n...->...", factors, one)
        assert float((found[parameter] - expected).abs().max()) < CLOSE, parameter


@pytest.mark.parametrize("name", SHAPES)
def test_every_layer_is_clipped_by_book_keeping(name: str) -> None:
    module = loaded_modules(a_generator(SHAPES[name]))[0]
    flat = FlatParameters(module)
    assert find_untapped_layers(module, flat) == []
    flat.release()


@pytest.mark.parametrize("name", SHAPES)
def test_one_piece_at_a_time_gives_the_logits_of_whole_texts(name: str) -> None:
    shape = SHAPES[name]
    module = loaded_modules(a_generator(shape))[0]
    inputs = torch.from_numpy(SeededSource(2, "inputs").generator().integers(0, 13, (5, 8)))
    labels = torch.tensor([0, 1, 1, 0, 1])
    seeds = inputs[:, :1]
    with torch.inference_mode():
        whole = module(inputs, seeds, labels, torch.ones(5, 0))
        states = module.begin(seeds, labels)
        for place in range(8):
            count = 5 if place < 4 else 3
            states = module.first(states, count)
            logits, states = module.advance(inputs[:count, place], states)
            assert torch.allclose(logits, whole[:count, place], atol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_no_piece_sees_a_later_one(name: str) -> None:
    shape = SHAPES[name]
    module = loaded_modules(a_generator(shape))[0]
    inputs = torch.from_numpy(SeededSource(2, "inputs").generator().integers(0, 13, (5, 8)))
    changed = inputs.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 13
    rest = (inputs[:, :1], torch.zeros(5, dtype=torch.long), torch.ones(5, 0))
    with torch.inference_mode():
        before, after = module(inputs, *rest), module(changed, *rest)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize("name", [name for name in SHAPES if "both labels" in name])
def test_a_label_changes_what_comes_next(name: str) -> None:
    module = loaded_modules(a_generator(SHAPES[name]))[0]
    inputs = torch.ones(2, 3, dtype=torch.long)
    with torch.inference_mode():
        logits = module(inputs, inputs[:, :1], torch.tensor([0, 1]), torch.ones(2, 0))
    assert not torch.allclose(logits[0], logits[1])


def test_factors_of_dropout_keep_means_and_change_with_the_epoch() -> None:
    """4,000 texts of 11 values: a mean beyond 0.03 has a probability of less than 1e-20."""
    keep = DropoutFactors(SHAPES["encoder-decoder"], 4000, 0.2, SeededSource(3, "keep"))
    keep.renew(0)
    first = keep.factors.clone()
    keep.renew(1)
    assert {0.0, 1.25} == set(np.unique(first.numpy()).tolist())
    assert abs(float(first.mean()) - 1) < 0.03
    assert abs(float((first > 0).eq(keep.factors > 0).float().mean()) - 0.68) < 0.02


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kind": "rnn"}, "kind"),
        ({"reads": "nothing"}, "reads"),
        ({"vocabulary": 1}, "vocabulary"),
        ({"longest": 1}, "longest"),
        ({"kind": "transformer", "embedding": 9}, "a multiple of 4 heads"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(change: dict[str, object], match: str) -> None:
    fields = SHAPES["encoder-decoder"].as_json() | {"heads": 4} | change
    with pytest.raises(BadParameter, match=match):
        GeneratorShape.from_json(fields)
