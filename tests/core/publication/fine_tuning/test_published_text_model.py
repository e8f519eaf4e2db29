"""The published file has what was trained and nothing else, and works on its backbone alone."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from noisefloor.errors import BadBackbone, BadParameter, BadSnapshot, BadTable
from noisefloor.publication import read_metadata, read_tensors
from noisefloor.publication.fine_tuning import (
    Backbone,
    FeatureScaling,
    TextModel,
    TextModelFile,
    TopLayers,
    check_release_bytes,
    is_text_model,
    load_backbone,
    load_text_model,
    release_bytes,
    run_frozen,
    tokenise,
)
from noisefloor.publication.tensors import MOST_RELEASE_BYTES
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import Categories, TextSchema
from tiny_backbones import DEPTH, WIDTH, WORDS, write_tiny_bert, write_tokeniser

SCHEMA = TextSchema("a review", {"text": 12}, "mood", Categories(("bad", "fair", "good")))
TEXTS = ["good film", "the plot is dull", "great", "a warm story", "cold and weak music"]
POOLED = (2, 3)
NAME = "attention.self.query"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def backbone(folder: Path) -> Backbone:
    return load_backbone(folder)


def numbers(seed: int, *shape: int) -> Any:
    with new_run():
        draw = SeededSource(seed, "numbers").generator()
        return draw.normal(size=shape).astype(np.float32)


def scaling() -> FeatureScaling:
    return FeatureScaling.of(numbers(3, 20, 2 * WIDTH) + 1, "made up")


def file_of(backbone: Backbone, **tensors: Any) -> TextModelFile:
    head = scaling().folded(numbers(4, 3, 2 * WIDTH), numbers(5, 3))
    named = {name.replace("_", "."): one for name, one in tensors.items()}
    hashes = backbone.weights_sha256, backbone.tokeniser_sha256
    return TextModelFile(SCHEMA, POOLED, *hashes, {**head, **named})


def card_of(content: bytes) -> dict[str, Any]:
    return {"content_sha256": hashlib.sha256(content).hexdigest()}


def test_a_head_is_a_small_file_with_its_metadata(backbone: Backbone) -> None:
    content = file_of(backbone).written()
    assert set(read_tensors(content)) == {"head.weight", "head.bias"}
    about = json.loads(read_metadata(content)["noisefloor"])
    assert about["form"] == "text-classifier"
    assert about["pooling"] == {"kind": "mean", "layers": [2, 3]}
    assert about["schema"]["columns"]["text"] == {"text": 12}
    assert about["schema"]["columns"]["mood"] == {"categories": ["bad", "fair", "good"]}
    assert about["backbone_sha256"] == backbone.weights_sha256
    assert about["tokeniser_sha256"] == backbone.tokeniser_sha256
    assert len(content) < 4000
    assert is_text_model(content)
    assert not is_text_model(b"nothing")
    read = TextModelFile.read(content)
    assert read.schema == SCHEMA
    assert (read.parameters, read.trained) == (3 * (2 * WIDTH + 1), ("head",))


def test_labels_of_texts_are_those_of_the_head_on_scaled_features(
    folder: Path, backbone: Backbone
) -> None:
    content = file_of(backbone).written()
    model = load_text_model(content, card_of(content), backbone=folder, unsigned=True)
    features = run_frozen(backbone, tokenise(backbone, SCHEMA, {"text": TEXTS}), POOLED).pooled
    expected = scaling().scaled(features) @ numbers(4, 3, 2 * WIDTH).T + numbers(5, 3)
    assert np.allclose(model.logits({"text": TEXTS}), expected, atol=1e-4)
    names = ["bad", "fair", "good"]
    assert model.predict(TEXTS) == [names[place] for place in expected.argmax(axis=1)]
    assert model.predict({"text": TEXTS}) == model.predict(TEXTS)


@pytest.mark.parametrize("train_layers", [1, 2])
def test_trained_layers_predict_as_the_module_did(backbone: Backbone, train_layers: int) -> None:
    module = TopLayers(backbone, train_layers, POOLED, scaling(), classes=3)
    with torch.no_grad():
        for place, parameter in enumerate(module.parameters()):
            parameter.add_(torch.from_numpy(numbers(place, *parameter.shape)) * 0.2)
    before = backbone.layers[-1].get_parameter(f"{NAME}.weight").clone()
    made = replace(file_of(backbone), tensors=module.trained_tensors())
    assert {name.split(".")[0] for name in made.tensors} == {"head", "layers"}
    assert made.trained[-1] == f"layer {DEPTH}"
    tokens = tokenise(backbone, SCHEMA, {"text": TEXTS})
    states = run_frozen(backbone, tokens, POOLED, train_layers=train_layers)
    expected = module(*module.inputs(states)).detach().numpy()
    model = TextModel.on(TextModelFile.read(made.written()), backbone)
    assert np.allclose(model.logits({"text": TEXTS}), expected, atol=1e-4)
    assert torch.equal(backbone.layers[-1].get_parameter(f"{NAME}.weight"), before)


def test_adapters_add_the_product_of_their_factors(backbone: Backbone) -> None:
    left, right = numbers(8, WIDTH, 2), numbers(9, 2, WIDTH)
    named = {f"adapters.3.{NAME}.left": left, f"adapters.3.{NAME}.right": right}
    made = replace(file_of(backbone), tensors={**file_of(backbone).tensors, **named})
    plain = backbone.layers[2].get_parameter(f"{NAME}.weight").numpy()
    model = TextModel.on(made, backbone)
    merged = model.backbone.layers[2].get_parameter(f"{NAME}.weight").numpy()
    assert np.allclose(merged, plain + left @ right, atol=1e-5)
    assert made.trained == ("head", "adapters of layer 3")
    assert TextModel.on(file_of(backbone), backbone).backbone is backbone


def test_another_backbone_or_tokeniser_is_refused_by_its_hash(
    folder: Path, backbone: Backbone, tmp_path: Path
) -> None:
    content = file_of(backbone).written()
    other = write_tiny_bert(tmp_path / "other", seed=2)
    with pytest.raises(BadBackbone, match=r"other: is not what .*: its weights and configuration"):
        load_text_model(content, card_of(content), backbone=other, unsigned=True)
    words = Path(shutil.copytree(folder, tmp_path / "words"))
    write_tokeniser(words, (*WORDS[1:], WORDS[0]))
    with pytest.raises(BadBackbone, match=r"words: is not what .*: its tokeniser differ"):
        load_text_model(content, card_of(content), backbone=words, unsigned=True)


def test_a_changed_file_is_refused_before_anything_else(backbone: Backbone) -> None:
    content = file_of(backbone).written()
    with pytest.raises(BadSnapshot, match="SHA-256 differs"):
        load_text_model(content + b" ", card_of(content), backbone=backbone, unsigned=True)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("layers.0.output.dense.bias", (WIDTH,)),
        ("layers.4.output.dense.bias", (WIDTH,)),
        ("layers.x.output.dense.bias", (WIDTH,)),
        ("layers.3.output.dense.bias", (1,)),
        ("layers.3.no.such", (WIDTH,)),
        ("embeddings.no.such", (WIDTH,)),
        (f"adapters.3.{NAME}.left", (WIDTH, 2)),
        ("adapters.3.no.such.left", (WIDTH, 2)),
    ],
)
def test_parameters_that_the_backbone_does_not_have_are_refused(
    backbone: Backbone, name: str, shape: tuple[int, ...]
) -> None:
    tensors = {**file_of(backbone).tensors, name: numbers(1, *shape)}
    made = replace(file_of(backbone), tensors=tensors)
    with pytest.raises(BadSnapshot, match="does not have"):
        TextModel.on(made, backbone)


@pytest.mark.parametrize(
    "tensors",
    [
        {"head.weight": numbers(1, 2, 8)},
        {"head.weight": numbers(1, 3, 9)},
        {"head.bias": numbers(1, 2)},
        {"head.weight": numbers(1, 3, 8) * np.float32("nan")},
        {"other": numbers(1, 2)},
        {"layers.1.a": numbers(1, 2).astype(np.float64)},
    ],
)
def test_a_file_that_is_no_text_classifier_is_refused(backbone: Backbone, tensors: Any) -> None:
    made = file_of(backbone)
    with pytest.raises(BadParameter):
        replace(made, tensors={**made.tensors, **tensors})


def test_damaged_metadata_are_refused(backbone: Backbone) -> None:
    content = file_of(backbone).written()
    for old, new in (
        (b"text-class", b"text-glass"),
        (b"mean", b"max "),
        (b"backbone", b"bakkbone"),
    ):
        with pytest.raises(BadSnapshot, match="no text classifier"):
            TextModelFile.read(content.replace(old, new))
    with pytest.raises(BadSnapshot):
        TextModelFile.read(b"")


def test_texts_for_a_prediction_are_checked(backbone: Backbone) -> None:
    model = TextModel.on(file_of(backbone), backbone)
    with pytest.raises(BadTable, match=r"column 'text': .*an empty one in row 2"):
        model.predict(["good", ""])
    with pytest.raises(BadTable, match="Expected a list of texts, found one text"):
        model.predict("good")
    pair = replace(SCHEMA, texts={"first": 3, "second": 3})
    with pytest.raises(BadTable, match="a list for each of the columns first, second"):
        TextModel.on(replace(file_of(backbone), schema=pair), backbone).predict(["good"])


def test_the_size_of_a_release_is_known_from_its_plan(backbone: Backbone) -> None:
    made = file_of(backbone)
    shapes = {name: one.shape for name, one in made.tensors.items()}
    assert len(made.written()) <= release_bytes(shapes)
    assert check_release_bytes(shapes) < 1 << 17
    layers = {f"layers.{n}": (1_774_464,) for n in range(6)}  # those of MiniLM, 42.6 MB
    assert check_release_bytes(layers) < MOST_RELEASE_BYTES
    whole = {**layers, "embeddings.word_embeddings.weight": (30_522, 384)}
    with pytest.raises(BadParameter, match="at most 64 MiB; these take 85: train fewer layers"):
        check_release_bytes(whole)


def test_scaled_features_are_centred_and_constant_ones_left_out() -> None:
    features = numbers(2, 500, 4) * [1, 10, 100, 0] + [1, 2, 3, 4]
    made = FeatureScaling.of(features.astype(np.float32), "made up")
    scaled = made.scaled(features.astype(np.float32))
    assert np.allclose(scaled.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(np.linalg.norm(scaled, axis=1).mean(), 1, atol=0.1)
    assert not scaled[:, 3].any()
    assert len(made.sha256) == 64
    with pytest.raises(BadParameter, match="two public texts"):
        FeatureScaling.of(features[:1].astype(np.float32), "one")
