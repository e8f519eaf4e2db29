"""Texts become pieces and frozen states, each from its own record alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from noisefloor.errors import BadParameter, BadTable
from noisefloor.publication.fine_tuning import (
    Backbone,
    FeatureScaling,
    TopLayers,
    frozen_layers,
    load_backbone,
    run_frozen,
    states_bytes,
    tokenise,
)
from noisefloor.publication.fine_tuning.backbone import additive_mask, run_layer
from noisefloor.publication.private_sgd import cross_entropy
from noisefloor.tables import Categories, TextSchema
from tiny_backbones import DEPTH, WIDTH, write_tiny_bert

ONE = TextSchema("a review", {"text": 12}, "mood", Categories(("bad", "good")))
PAIR = TextSchema("a pair", {"first": 3, "second": 5}, "kind", Categories(("no", "yes", "maybe")))
TEXTS = [
    "good film",
    "the plot is dull and the actor is weak",
    "great",
    "a very warm story",
    "bad bad bad bad bad bad bad bad bad bad bad bad bad bad",
    "fine music",
]
POOLED = (2, 3)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    return load_backbone(write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny"))


def scaling(width: int) -> FeatureScaling:
    rising = np.linspace(-1, 1, width, dtype=np.float32)
    return FeatureScaling(rising, np.exp(rising), "made up")


def test_texts_are_cut_to_their_longest_length_and_counted(backbone: Backbone) -> None:
    tokens = tokenise(backbone, ONE, {"text": TEXTS})
    assert tokens.cut == {"text": 1}
    assert tokens.lengths.tolist() == [4, 11, 3, 6, 14, 4]
    assert tokens.ids.shape == (6, 14)
    assert tokens.ids[0].tolist() == [2, 5, 15, 3] + [0] * 10
    assert tokens.ids[4, 13] == 3
    assert tokens.padded_lengths.tolist() == [8, 14, 8, 8, 14, 8]
    assert not tokens.segments.any()


def test_each_text_of_a_pair_is_cut_by_itself(backbone: Backbone) -> None:
    pair = {"first": ["good film", "a b c d e"], "second": ["bad", "the plot is dull and cold"]}
    tokens = tokenise(backbone, PAIR, pair)
    assert tokens.cut == {"first": 1, "second": 1}
    assert tokens.lengths.tolist() == [2 + 1 + 3, 3 + 5 + 3]
    assert tokens.segments[0].tolist() == [0, 0, 0, 0, 1, 1] + [0] * 5
    assert tokens.segments[1].tolist() == [0] * 5 + [1] * 6


@pytest.mark.parametrize(
    ("schema", "texts", "said"),
    [
        (ONE, {"text": ["good", " "]}, "column 'text': .*an empty one in row 2"),
        (ONE, {"text": ["good", 3]}, "column 'text': .*another value in row 2"),
        (ONE, {"other": ["good"]}, "column 'text': Expected this column, it is missing"),
        (PAIR, {"first": ["good"], "second": ["a", "b"]}, "as many texts in each column"),
    ],
)
def test_bad_texts_are_named_by_column_and_row(
    backbone: Backbone, schema: TextSchema, texts: Any, said: str
) -> None:
    with pytest.raises(BadTable, match=said):
        tokenise(backbone, schema, texts)


def test_texts_longer_than_the_model_are_refused_by_the_schema_alone(backbone: Backbone) -> None:
    long = TextSchema("a review", {"text": 39}, "mood", ONE.classes)
    with pytest.raises(BadParameter, match="at most 38 pieces in all"):
        tokenise(backbone, long, {"text": ["good"]})


def test_what_a_record_becomes_follows_from_that_record_alone(backbone: Backbone) -> None:
    whole = run_frozen(backbone, tokenise(backbone, ONE, {"text": TEXTS}), POOLED, train_layers=1)
    for row, text in enumerate(TEXTS):
        alone = run_frozen(backbone, tokenise(backbone, ONE, {"text": [text]}), POOLED)
        assert np.allclose(alone.pooled[0, :WIDTH], whole.pooled[row], atol=1e-6)
    assert not whole.hidden[0, 4:].any()
    assert whole.mask.sum(axis=1).tolist() == whole.lengths.tolist()


def test_features_are_means_over_pieces_of_the_chosen_layers(backbone: Backbone) -> None:
    tokens = tokenise(backbone, ONE, {"text": TEXTS[:2]})
    seen: list[int] = []
    states = run_frozen(backbone, tokens, POOLED, progress=seen.append)
    assert sum(seen) == 2
    hidden = whole_run(backbone, tokens.ids, tokens.lengths)
    means = [hidden[layer][1, :11].mean(dim=0) for layer in POOLED]
    assert np.allclose(states.pooled[1], torch.cat(means).numpy(), atol=1e-6)


def whole_run(backbone: Backbone, ids: Any, lengths: Any) -> list[torch.Tensor]:
    mask = (torch.arange(ids.shape[1]) < torch.from_numpy(lengths)[:, None]).float()
    pieces = torch.from_numpy(ids).long()
    found = [backbone.embed(pieces, torch.zeros_like(pieces))]
    for layer in backbone.layers:
        found.append(run_layer(layer, found[-1], additive_mask(mask)))
    return found


@pytest.mark.parametrize("train_layers", [0, 1, 2, DEPTH])
def test_gradients_on_cached_layers_are_those_of_the_whole(
    backbone: Backbone, train_layers: int
) -> None:
    tokens = tokenise(backbone, ONE, {"text": TEXTS})
    cached, whole = (
        TopLayers(backbone, count, POOLED, scaling(2 * WIDTH), classes=2)
        for count in (train_layers, DEPTH)
    )
    for module in (cached, whole):  # a head of zeros hands no gradient to the layers
        torch.nn.init.constant_(module.head.weight[:1].detach(), 0.1)
    labels = torch.tensor([1, 0, 1, 1, 0, 1])
    for module, count in ((cached, train_layers), (whole, DEPTH)):
        states = run_frozen(backbone, tokens, POOLED, train_layers=count)
        loss = cross_entropy(module(*module.inputs(states)), labels).sum()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    of_whole = dict(whole.named_parameters())
    for name, parameter in cached.named_parameters():
        part, _, rest = name.partition(".")
        number, _, inner = rest.partition(".")
        same = f"layers.{int(number) + DEPTH - train_layers}.{inner}" if part == "layers" else name
        gradient, expected = parameter.grad, of_whole[same].grad
        assert gradient is not None and expected is not None
        assert torch.allclose(gradient, expected, atol=1e-5), name


def test_states_that_would_not_fit_are_refused_before_anything_runs(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tokenise(backbone, ONE, {"text": TEXTS})
    assert states_bytes(backbone, 6, 14) == 6 * 14 * WIDTH * 4
    monkeypatch.setattr(frozen_layers, "MOST_STATE_BYTES", 6 * 14 * WIDTH * 4 - 1)
    with pytest.raises(BadParameter, match="their hidden states take at most"):
        run_frozen(backbone, tokens, POOLED, train_layers=1)
    run_frozen(backbone, tokens, POOLED)


@pytest.mark.parametrize(
    ("pooled", "layers"), [((), 0), ((3, 2), 0), ((2, 2), 0), ((4,), 0), ((0, 1), 0), ((3,), 4)]
)
def test_layers_that_are_not_there_are_refused(
    backbone: Backbone, pooled: tuple[int, ...], layers: int
) -> None:
    tokens = tokenise(backbone, ONE, {"text": TEXTS})
    with pytest.raises(BadParameter, match=r"pooled_layers|train_layers"):
        run_frozen(backbone, tokens, pooled, train_layers=layers)


def test_minilm_gives_the_features_of_transformers(real_data: Callable[[str], None]) -> None:
    real_data("minilm-l6")
    from transformers import AutoModel

    backbone = load_backbone()
    tokens = tokenise(backbone, ONE, {"text": ["a warm, clever film", "no plot at all"]})
    found = run_frozen(backbone, tokens, (6,)).pooled
    model = AutoModel.from_pretrained(Path(backbone.folder)).eval()
    with torch.no_grad():
        hidden = model(torch.from_numpy(tokens.ids[:1, :7]).long()).last_hidden_state
    assert tokens.lengths[0] == 7
    assert np.allclose(found[0], hidden[0].mean(dim=0).numpy(), atol=1e-5)
