"""Tiny random language models as directories, and their own tokenisers of bytes."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.text import Documents
from noisefloor.publication.text.language_models import LanguageModel, load_language_model
from noisefloor.randomness import SeededSource

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEXTS = tuple(
    f"The {one} film was {other} and the {place} had a {one} story."
    for one in ("good", "bad", "dull", "warm")
    for other in ("great", "poor", "fine", "cold")
    for place in ("plot", "actor", "music")
)
SIZE, POSITIONS = 320, 96


def write_byte_tokeniser(folder: Path, size: int = SIZE, marks: tuple[str, ...] = MARKS) -> Path:
    """Write a byte-level tokeniser that learned its pieces from a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainer(
            vocab_size=size,
            special_tokens=list(marks),
            initial_alphabet=sorted(alphabet),
            show_progress=False,
        ),
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_tiny_llama(folder: Path, seed: int = 1, **config: Any) -> Path:
    """Write a Llama of two layers with random weights, and its tokeniser."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    write_byte_tokeniser(folder)
    settings = {
        "vocab_size": SIZE,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kinds: Any = (LlamaForCausalLM, LlamaConfig)  # transformers types half of them
        model = kinds[0](kinds[1](**settings | config))
        for parameter in model.parameters():
            parameter.data.normal_(0.0, 0.4)  # larger than at a start: layers have to matter
    model.save_pretrained(folder)
    return folder


@cache
def tiny_model() -> LanguageModel:
    """Return a tiny model in single precision."""
    with TemporaryDirectory() as folder:
        return load_language_model(write_tiny_llama(Path(folder)), "tiny", "float32")


def private_documents(count: int = 600, longest: int = 12, seed: int = 3) -> Documents:
    """Return documents of two labels: one is of good films, the other of bad ones."""
    draw = SeededSource(seed, "private").generator()
    labels = draw.integers(0, 2, count)
    words = (("bad", "dull", "poor"), ("good", "warm", "great"))
    texts = [f"The film was {words[label][draw.integers(3)]} and fine." for label in labels]
    pieces, offsets = tiny_model().tokeniser.cut(texts, longest)
    return Documents(pieces, offsets, labels.astype(np.int64))


def logits_of(model: LanguageModel, rows: list[list[int]]) -> NDArray[np.float64]:
    """Return transformers' own logits after rows of pieces, of one pass without a cache.

    The model has more rows than the tokeniser has pieces, as many models do.
    """
    import torch

    with torch.inference_mode():
        found = model.module(input_ids=torch.tensor(rows), use_cache=False).logits[:, -1]
    return np.asarray(found.double().numpy())[:, : model.tokeniser.size]


def gguf_of(folder: Path, file: Path) -> None:
    """Write the model of a directory in GGUF, rows of queries and keys as llama.cpp has them."""
    from gguf import GGUFWriter
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    writer = GGUFWriter(file, "llama")
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    words = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in MARKS else 1 for word in words])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    for name, values in load_file(folder / "model.safetensors").items():
        own = values.astype(np.float32)
        if "q_proj" in name or "k_proj" in name:
            own = _in_pairs(own, heads if "q_proj" in name else key_heads)
        writer.add_tensor(_gguf_name(name), own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _in_pairs(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    rows, width = values.shape
    halves = values.reshape(heads, 2, rows // heads // 2, width)
    return np.ascontiguousarray(halves.transpose(0, 2, 1, 3).reshape(rows, width))


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.layers": "blk",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _gguf_name(name: str) -> str:
    for own, theirs in _NAMES.items():
        name = name.replace(own, theirs)
    return name
