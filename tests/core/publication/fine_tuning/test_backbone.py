"""Backbones are read from a directory alone; what is no model is refused by name and rule."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from noisefloor.errors import BadBackbone, MissingData
from noisefloor.publication.fine_tuning import backbone as backbones
from noisefloor.publication.fine_tuning import load_backbone
from tiny_backbones import DEPTH, POSITIONS, WIDTH, WORDS, write_tiny_bert, write_tokeniser


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def copied(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


def test_a_directory_is_read_without_any_network(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    found = load_backbone(tiny)
    assert (found.width, found.depth, found.positions) == (WIDTH, DEPTH, POSITIONS)
    assert not any(one.requires_grad for one in found.layers.parameters())


def test_dropout_is_set_to_zero_and_said(tiny: Path) -> None:
    found = load_backbone(tiny)
    assert found.notes == (
        "hidden_dropout_prob is 0.1 and was set to 0",
        "attention_probs_dropout_prob is 0.1 and was set to 0",
    )
    rates = {one.p for one in found.layers.modules() if isinstance(one, torch.nn.Dropout)}
    assert rates == {0.0}


def test_parts_one_after_the_other_are_the_forward_pass_of_transformers(tiny: Path) -> None:
    from transformers import BertModel

    found = load_backbone(tiny)
    whole: Any = BertModel.from_pretrained(tiny)
    whole.eval()
    ids = torch.tensor([[2, 7, 8, 9, 3], [2, 12, 3, 0, 0]])
    kinds = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]])
    mask = (ids != 0).float()
    with torch.no_grad():
        expected = whole(ids, mask, kinds).last_hidden_state
        hidden = found.embed(ids, kinds)
        for layer in found.layers:
            hidden = backbones.run_layer(layer, hidden, backbones.additive_mask(mask))
    assert torch.allclose(hidden[mask.bool()], expected[mask.bool()], atol=1e-5)


def test_hashes_change_with_weights_configuration_and_tokeniser(copied: Path) -> None:
    first = load_backbone(copied)
    assert load_backbone(copied).weights_sha256 == first.weights_sha256
    write_tokeniser(copied, ("##y", *WORDS[1:]))
    second = load_backbone(copied)
    assert second.weights_sha256 == first.weights_sha256
    assert second.tokeniser_sha256 != first.tokeniser_sha256
    write_tiny_bert(copied, seed=2)
    assert load_backbone(copied).weights_sha256 != first.weights_sha256


def test_pickled_weights_are_never_loaded(copied: Path) -> None:
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(BadBackbone, match=r"pickled weights alone \(pytorch_model.bin\).*never"):
        load_backbone(copied)


def damage(folder: Path, what: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    if what == "no config":
        (folder / "config.json").unlink()
    elif what == "no weights":
        (folder / "model.safetensors").unlink()
    elif what == "cut weights":
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:500])
    elif what == "no tokeniser":
        (folder / "vocab.txt").unlink()
        (folder / "tokenizer_config.json").unlink()
    elif what == "another kind":
        (folder / "config.json").write_text('{"model_type": "no-such-kind"}')
    elif what == "not JSON":
        (folder / "config.json").write_text("{")
    elif what == "more layers":
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    elif what == "index":
        (folder / "model.safetensors").unlink()
        index = {"weight_map": {"a": "../model.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("no config", "expected a model directory with config.json"),
        ("no weights", "expected weights in model.safetensors"),
        ("cut weights", "model.safetensors cannot be read by transformers"),
        ("no tokeniser", "expected the files of a tokeniser"),
        ("another kind", "config.json cannot be read by transformers"),
        ("not JSON", "config.json cannot be read by transformers"),
        ("more layers", "expected weights for all of config.json"),
        ("index", "to list safetensors that are there"),
    ],
)
def test_what_is_no_model_is_refused_by_name(copied: Path, what: str, said: str) -> None:
    damage(copied, what)
    with pytest.raises(BadBackbone) as caught:
        load_backbone(copied)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{copied}: ")


def test_a_missing_directory_and_a_model_that_was_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadBackbone, match="expected a directory, there is none"):
        load_backbone(tmp_path / "none")
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingData, match="noisefloor data fetch minilm-l6"):
        load_backbone()


def test_an_encoder_whose_layers_do_not_add_up_is_refused(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def halved(layer: Any, hidden: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        return run(layer, hidden, added) / 2

    run = backbones.run_layer
    monkeypatch.setattr(backbones, "run_layer", halved)
    with pytest.raises(BadBackbone, match="one after the other give something else"):
        load_backbone(tiny)


def test_a_decoder_is_refused(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=1, n_positions=16)
    model: Any = GPT2Model(config)  # type: ignore[no-untyped-call]  # transformers' own
    model.save_pretrained(tmp_path)
    write_tokeniser(tmp_path)
    with pytest.raises(BadBackbone, match="as BERT has them, found GPT2Model"):
        load_backbone(tmp_path)
