"""Turns a model in GGUF, the format of llama.cpp, into a directory as transformers write it.

Weights are dequantised to half precision, under the names of transformers' Llama; the rows of the
attention's queries and keys go back to the order that they had before llama.cpp changed it. The
tokeniser is written as tokenizer.json. Only the family that is needed is read: a Llama with
a byte-level tokeniser that cuts digits one by one.

Reference: ggml-org/llama.cpp, convert_hf_to_gguf.py (LlamaModel: names, ``permute``).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_extra
from noisefloor.errors import BadBackbone

EXTRA = "text-lm"

_OUTER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3
"""The kind of pieces that are marks of the model, such as the end of a text."""

_EXPECTED = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
}

Halves = NDArray[np.float16]


def write_model_directory(file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json into a directory that is there.

    Args:
        file: A model in GGUF.
        folder: Empty.

    Raises:
        MissingExtra: gguf, tokenizers or safetensors are not installed.
        BadBackbone: The file is of another family of models, or cannot be read.
    """
    check_extra("A language model", EXTRA, "gguf", "safetensors", "tokenizers")
    from gguf import GGUFReader
    from safetensors.numpy import save_file

    try:
        reader: Any = GGUFReader(file)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise BadBackbone(file, f"cannot be read as GGUF ({type(error).__name__})") from None
    for field, value in _EXPECTED.items():
        if _field(reader, file, field) != value:
            raise BadBackbone(file, f"expected {field} to be {value}")
    config = _config(reader, file)
    heads = config["num_attention_heads"], config["num_key_value_heads"]
    tensors = dict(_tensors(reader, file, *heads))
    config["tie_word_embeddings"] = "lm_head.weight" not in tensors
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write_tokeniser(reader, file, folder)


def _field(reader: Any, file: Path, name: str) -> Any:
    if name not in reader.fields:
        raise BadBackbone(file, f"expected the field {name}")
    return reader.fields[name].contents()


def _config(reader: Any, file: Path) -> dict[str, Any]:
    def of(name: str) -> Any:
        return _field(reader, file, f"llama.{name}")

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float16",
        "hidden_act": "silu",
        "vocab_size": len(_field(reader, file, "tokenizer.ggml.tokens")),
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "max_position_embeddings": of("context_length"),
        # Single precision in the file: 1e-5 is 9.99999975e-06 there.
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 12),
        "rope_theta": of("rope.freq_base"),
        "bos_token_id": _field(reader, file, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": _field(reader, file, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": _field(reader, file, "tokenizer.ggml.padding_token_id"),
    }


def _tensors(reader: Any, file: Path, heads: int, key_heads: int) -> Iterator[tuple[str, Halves]]:
    """Yield the weights by the names of transformers."""
    from gguf import dequantize

    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        kind = tensor.name.split(".")[-2]
        if kind in ("attn_q", "attn_k"):
            values = _in_halves(values, heads if kind == "attn_q" else key_heads)
        yield _name(tensor.name, file), np.ascontiguousarray(values.astype(np.float16))


def _name(name: str, file: Path) -> str:
    """Return the name that transformers have for a tensor."""
    match name.split("."):
        case ["blk", number, kind, "weight"] if kind in _INNER:
            return f"model.layers.{number}.{_INNER[kind]}.weight"
        case [kind, "weight"] if kind in _OUTER:
            return f"{_OUTER[kind]}.weight"
    raise BadBackbone(file, f"has a tensor that no Llama has: {name[:64]!r}")


def _in_halves(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Return rows of queries or keys in the order of transformers.

    Rotary positions turn pairs of rows of a head: neighbours in GGUF, a row and the one half
    a head further in transformers.
    """
    rows, width = values.shape
    pairs = values.reshape(heads, rows // heads // 2, 2, width)
    return pairs.swapaxes(1, 2).reshape(rows, width)


def _write_tokeniser(reader: Any, file: Path, folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pieces = _field(reader, file, "tokenizer.ggml.tokens")
    kinds = _field(reader, file, "tokenizer.ggml.token_type")
    merges = [tuple(one.split(" ")) for one in _field(reader, file, "tokenizer.ggml.merges")]
    tokenizer: Any = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    marks = [piece for piece, kind in zip(pieces, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(one, normalized=False) for one in marks])
    tokenizer.save(str(folder / "tokenizer.json"))
