"""Directories of language models: what is loaded, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noisefloor import checks
from noisefloor.errors import BadBackbone, MissingExtra
from noisefloor.publication.text.language_models import (
    OWN_MODEL_VARIABLE,
    load_language_model,
    shared_language_model,
)
from tiny_language_models import (
    MARKS,
    POSITIONS,
    tiny_model,
    write_byte_tokeniser,
    write_tiny_llama,
)


def test_a_directory_is_loaded_with_its_tokeniser(tmp_path: Path) -> None:
    model = load_language_model(write_tiny_llama(tmp_path / "tiny"))
    assert (model.name, model.positions) == ("tiny", POSITIONS)
    assert model.precision in ("float32", "bfloat16")
    assert len(model.weights_sha256) == 64
    other = load_language_model(write_tiny_llama(tmp_path / "other", seed=2))
    assert other.weights_sha256 != model.weights_sha256
    assert other.tokeniser.sha256 == model.tokeniser.sha256


def test_a_prompt_is_the_turn_of_a_user_where_the_model_knows_turns(tmp_path: Path) -> None:
    model = tiny_model()
    pieces = model.prompt_pieces("The film")
    assert model.tokeniser.words[pieces[0]] == MARKS[1]
    assert pieces.count(1) == 2 and pieces.count(2) == 1
    write_tiny_llama(tmp_path)
    write_byte_tokeniser(tmp_path, marks=MARKS[:1])
    plain = load_language_model(tmp_path, "", "float32")
    text = plain.tokeniser.tokenizer.decode(plain.prompt_pieces("The film"))
    assert text == "The film\n\n"


def test_a_model_of_ones_own_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MODEL_VARIABLE, str(write_tiny_llama(tmp_path / "mine")))
    assert shared_language_model("own") is shared_language_model("own")
    assert shared_language_model("own").name == "own"


def without(file: str, folder: Path) -> None:
    (folder / file).unlink()


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def cut(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def changed(folder: Path, **fields: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


def with_code(folder: Path) -> None:
    """Name code of the directory's own, which must never be run."""
    (folder / "own.py").write_text("raise SystemExit('it was run')\n")
    changed(folder, model_type="own", auto_map={"AutoConfig": "own.C", "AutoModel": "own.M"})


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no tokeniser": (lambda it: without("tokenizer.json", it), "expected a tokeniser"),
    "no configuration": (lambda it: without("config.json", it), "config.json"),
    "no weights": (lambda it: without("model.safetensors", it), "expected weights"),
    "pickled": (pickled, "pickled weights alone"),
    "cut": (cut, "expected a causal language model"),
    "code": (with_code, "expected a causal language model"),
    "another shape": (lambda it: changed(it, num_hidden_layers=3), "do not fit it"),
    "an encoder": (lambda it: changed(it, model_type="t5"), "expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_directory_that_is_none_is_refused(fault: str, tmp_path: Path) -> None:
    spoil, rule = FAULTS[fault]
    spoil(write_tiny_llama(tmp_path / "model"))
    with pytest.raises(BadBackbone, match=rule):
        load_language_model(tmp_path / "model", "", "float32")


def test_a_tokeniser_of_another_model_is_refused(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path, vocab_size=100)
    with pytest.raises(BadBackbone, match="at most 100 pieces in its tokeniser"):
        load_language_model(tmp_path, "", "float32")


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'noisefloor\[text-lm\]'"):
        load_language_model(tmp_path)
    with pytest.raises(MissingExtra, match=r"pip install 'noisefloor\[text-lm\]'"):
        shared_language_model("smollm2-135m")
