"""Tiny random encoders as model directories, made on the spot: no test downloads one."""

import json
from pathlib import Path
from typing import Any

WORDS = (
    *(
        "good great fine warm clever bad poor dull cold weak film plot actor scene story music"
    ).split(),
    *("the a an of and is was it this that very quite ##ly ##s ##er un ##known").split(),
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WIDTH, DEPTH, POSITIONS = 16, 3, 40


def write_tiny_bert(folder: Path, seed: int = 1, **config: Any) -> Path:
    """Write a BERT of three layers with random weights and a tokeniser of a few words."""
    import torch
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "vocab_size": len(SPECIAL) + len(WORDS),
        "hidden_size": WIDTH,
        "num_hidden_layers": DEPTH,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": POSITIONS,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = BertModel(BertConfig(**settings | config))  # type: ignore[no-untyped-call]
        for parameter in model.parameters():
            parameter.data.normal_(0.0, 0.3)  # larger than at a start: layers have to matter
    model.save_pretrained(folder)
    write_tokeniser(folder)
    return folder


def write_tokeniser(folder: Path, words: tuple[str, ...] = WORDS) -> None:
    """Write the vocabulary and the settings of a tokeniser."""
    (folder / "vocab.txt").write_text("\n".join((*SPECIAL, *words, "")))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def write_piece_file(folder: Path, words: tuple[str, ...] = WORDS) -> Path:
    """Write a tokeniser as one file, as those who count pieces read it, and return its folder."""
    from tokenizers import BertWordPieceTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: place for place, word in enumerate((*SPECIAL, *words))}
    BertWordPieceTokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return folder
