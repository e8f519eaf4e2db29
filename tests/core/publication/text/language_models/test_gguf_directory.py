"""A model in GGUF becomes a directory that gives the same logits and cuts texts alike."""

import json
from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadBackbone
from noisefloor.publication.text import load_tokeniser
from noisefloor.publication.text.language_models import load_language_model
from noisefloor.publication.text.language_models.gguf_directory import write_model_directory
from tiny_language_models import MARKS, TEXTS, gguf_of, logits_of, write_tiny_llama

pytest.importorskip("gguf")


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """Return the directory of a tiny model with as many rows as its tokeniser has pieces."""
    first = write_tiny_llama(tmp_path / "first")
    return write_tiny_llama(tmp_path / "original", vocab_size=load_tokeniser(first).size)


def converted(original: Path, folder: Path) -> Path:
    file = folder / "model.gguf"
    gguf_of(original, file)
    made = folder / "made"
    made.mkdir()
    write_model_directory(file, made)
    return made


def test_a_converted_model_gives_the_logits_of_the_original(
    original: Path, tmp_path: Path
) -> None:
    made = converted(original, tmp_path)
    assert sorted(one.name for one in made.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    rows = [[5, 80, 81, 82, 83, 84, 7, 9], [80, 5, 80, 5, 80, 5, 80, 5]]
    both = [logits_of(load_language_model(one, "", "float32"), rows) for one in (original, made)]
    # Weights are of half precision: eleven bits.
    assert np.abs(both[0] - both[1]).max() < 0.02 * np.abs(both[0]).max()


def test_the_order_of_rows_matters(original: Path, tmp_path: Path) -> None:
    """The twin: queries in the order of llama.cpp are another model."""
    from safetensors.numpy import load_file, save_file

    made = converted(original, tmp_path)
    weights = load_file(made / "model.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    rows, width = weights[name].shape
    weights[name] = np.ascontiguousarray(
        weights[name].reshape(4, 2, rows // 8, width).transpose(0, 2, 1, 3).reshape(rows, width)
    )
    save_file(weights, made / "model.safetensors", metadata={"format": "pt"})
    ids = [[5, 80, 81, 82, 83, 84, 7, 9]]
    both = [logits_of(load_language_model(one, "", "float32"), ids) for one in (original, made)]
    assert np.abs(both[0] - both[1]).max() > 0.05 * np.abs(both[0]).max()


def test_the_tokeniser_cuts_texts_as_the_original_does(original: Path, tmp_path: Path) -> None:
    own, made = load_tokeniser(original), load_tokeniser(converted(original, tmp_path))
    texts = [*TEXTS[:4], "It's 1998, caf\u00e9 \U0001f600\n\tand  more", "<|im_end|> film", ""]
    assert made.size == own.size
    assert made.marks.tolist() == own.marks.tolist() == list(range(len(MARKS)))
    both = own.cut(texts, 99), made.cut(texts, 99)
    assert [one.tolist() for one in both[0]] == [one.tolist() for one in both[1]]
    assert json.loads((tmp_path / "made/config.json").read_text())["rms_norm_eps"] == 1e-6


def test_other_files_are_refused(tmp_path: Path) -> None:
    from gguf import GGUFWriter

    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUX" + bytes(400))
    with pytest.raises(BadBackbone, match="cannot be read as GGUF"):
        write_model_directory(file, tmp_path)
    writer = GGUFWriter(file, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(BadBackbone, match=r"expected general\.architecture to be llama"):
        write_model_directory(file, tmp_path)
