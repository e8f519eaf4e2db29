"""A private head on features: it learns, follows its plan, and its scales are public."""

from pathlib import Path

import numpy as np
import pytest

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import (
    Backbone,
    HeadSettings,
    frozen_layers,
    load_backbone,
    public_features,
    public_scaling,
    train_head,
)
from noisefloor.publication.fine_tuning.public_scales import COUNT, made_up_tokens
from noisefloor.randomness import SeededSource
from tiny_backbones import DEPTH, POSITIONS, WIDTH, write_tiny_bert

COST = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    return load_backbone(write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny"))


def test_a_head_learns_within_its_budget() -> None:
    source = SeededSource(4, "head")
    draw = source.child("data").generator()
    labels = draw.integers(0, 3, 900).astype(np.int64)
    spread = draw.normal(size=(900, 8)) / 8
    spread[np.arange(900), labels] += 1
    features = spread.astype(np.float32)
    plan = HeadSettings(steps=20).plan(COST, 900)
    assert plan.is_full_batch
    assert plan.guarantee(1e-5).epsilon <= 2.0
    weight, bias = train_head(features, labels, 3, plan, source.child("training"))
    assert weight.shape == (3, 8) and bias.shape == (3,)
    predicted = (features @ weight.T + bias).argmax(axis=1)
    assert (predicted == labels).mean() > 0.8  # by chance one in three
    assert not HeadSettings().plan(COST, 900, batch=100).is_full_batch


def test_scales_of_an_unknown_backbone_follow_from_it_alone(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    tokens = made_up_tokens(backbone)
    assert tokens.count == COUNT
    assert int(tokens.lengths.min()) == 10 and int(tokens.lengths.max()) == 34 <= POSITIONS
    assert set(tokens.ids[:, 0].tolist()) == {2}
    assert not np.isin(tokens.ids[0, 1:9], range(5)).any()
    first, again = (public_scaling(backbone, (2, 3)) for _ in range(2))
    assert first.sha256 == again.sha256
    assert len(first.mean) == 2 * WIDTH
    assert "made-up texts" in first.source


def test_features_of_public_texts_are_made_once(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    tokens = made_up_tokens(backbone)[:20]
    seen: list[int] = []
    made = public_features(backbone, tokens, (DEPTH,), progress=seen.append)
    (file,) = (tmp_path / "features").iterdir()
    monkeypatch.setattr(frozen_layers, "run_layer", None)  # nothing runs a second time
    kept = public_features(backbone, tokens, (DEPTH,), progress=seen.append)
    assert np.array_equal(made, kept) and sum(seen) == 40
    monkeypatch.undo()
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    file.write_bytes(file.read_bytes()[:50])
    assert np.array_equal(public_features(backbone, tokens, (DEPTH,)), made)
    public_features(backbone, tokens[:10], (DEPTH,))
    public_features(backbone, tokens, (1,))
    assert len(list((tmp_path / "features").iterdir())) == 3


def test_the_scales_that_are_shipped_are_those_of_minilm() -> None:
    import json
    from importlib import resources

    from noisefloor.publication import fine_tuning, read_metadata, read_tensors
    from noisefloor.publication.fine_tuning.public_scales import SHIPPED

    content = resources.files(fine_tuning).joinpath(SHIPPED).read_bytes()
    moments = read_tensors(content)
    assert {name: one.shape for name, one in moments.items()} == {
        "mean": (6, 384),
        "deviation": (6, 384),
    }
    about = json.loads(read_metadata(content)["noisefloor"])
    assert about["source"] == "2,000 IMDB reviews, cut to 64 pieces"
    assert len(about["backbone_sha256"]) == 64
