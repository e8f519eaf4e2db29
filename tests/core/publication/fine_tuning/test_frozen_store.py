"""Outputs of frozen layers that are kept: the same bytes, and no layer runs twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from noisefloor.publication.fine_tuning import (
    Backbone,
    FrozenStore,
    TokenTable,
    kept_by,
    load_backbone,
    run_frozen,
    shared_backbone,
    tokenise,
    using_backbone,
)
from noisefloor.tables import Categories, TextSchema
from tiny_backbones import write_tiny_bert

SCHEMA = TextSchema("one text", {"text": 8}, "mood", Categories((0, 1)))
TEXTS = ["a good film", "a poor story and a dull plot", "warm music", "a good film"]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    return load_backbone(write_tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="module")
def tokens(backbone: Backbone) -> TokenTable:
    return tokenise(backbone, SCHEMA, {"text": TEXTS})


@pytest.mark.parametrize("train_layers", [0, 1])
def test_what_is_kept_is_what_the_layers_give(
    backbone: Backbone, tokens: TokenTable, train_layers: int
) -> None:
    made = run_frozen(backbone, tokens, (2, 3), train_layers=train_layers)
    store = FrozenStore(backbone)
    with kept_by(store):
        for _ in range(2):
            kept = run_frozen(backbone, tokens, (2, 3), train_layers=train_layers)
            assert np.array_equal(kept.hidden, made.hidden)
            assert np.array_equal(kept.pooled, made.pooled)
            assert np.array_equal(kept.lengths, made.lengths)
    assert store.texts_run == 4, "the second time nothing runs"


def test_some_of_the_texts_are_found_again(backbone: Backbone, tokens: TokenTable) -> None:
    store = FrozenStore(backbone)
    with kept_by(store):
        every = run_frozen(backbone, tokens, (3,))
        some = run_frozen(backbone, tokens[np.array([2, 0])], (3,))
    assert np.array_equal(some.pooled, every.pooled[[2, 0]])
    assert store.texts_run == 4


def test_nothing_is_kept_of_a_backbone_with_trained_layers(
    backbone: Backbone, tokens: TokenTable
) -> None:
    """It has the hash of the one that it was made from, and other outputs."""
    store, other = FrozenStore(backbone), replace(backbone)
    with kept_by(store):
        run_frozen(other, tokens, (3,))
    assert (store.texts_run, store.rows) == (0, {})


def test_beyond_its_bytes_a_store_keeps_nothing_more(
    backbone: Backbone, tokens: TokenTable
) -> None:
    store = FrozenStore(backbone, most_bytes=2 * 4 * backbone.width)
    with kept_by(store):
        first = run_frozen(backbone, tokens, (3,))
        again = run_frozen(backbone, tokens, (3,))
    assert len(store.rows) == 2
    assert np.allclose(first.pooled, again.pooled, atol=1e-6)


def test_a_chosen_backbone_is_shared_for_a_while(tmp_path: Path, backbone: Backbone) -> None:
    write_tiny_bert(tmp_path / "other", seed=2)
    with using_backbone(tmp_path / "other"):
        found = shared_backbone()
        assert found.folder == tmp_path / "other"
        with using_backbone(backbone.folder):
            assert shared_backbone().weights_sha256 == backbone.weights_sha256
        assert shared_backbone() is found
