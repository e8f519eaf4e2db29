"""Fluency a piece and its error, and a pretrained model read from a directory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noisefloor.errors import BadBackbone, BadParameter
from noisefloor.publication.text.evaluation import FluencyGap, fluency_of, pretrained_nats
from noisefloor.randomness import SeededSource

WORDS = ("<s>", "<unk>", "a", "good", "film", "bad", "plot")
TEXTS = ["a good film", "", "bad", "a bad plot a good film a film"]


def test_nats_are_a_piece_and_empty_texts_do_not_count() -> None:
    nats, pieces = np.array([6.0, 0.0, 2.0, 4.0]), np.array([2, 0, 1, 3])
    found = fluency_of(nats, pieces)
    assert found.nats == pytest.approx(2.0)
    assert (found.texts, found.pieces) == (3, 6)
    left = nats[[0, 2, 3]] - 2.0 * pieces[[0, 2, 3]]
    assert found.error == pytest.approx(np.sqrt(3 * left.var(ddof=1)) / 6)
    gap = FluencyGap(found, fluency_of(nats / 2, pieces))
    assert gap.nats == pytest.approx(1.0)
    assert gap.interval[0] < 1.0 < gap.interval[1]
    assert gap.as_json()["published"] == found.as_json()
    with pytest.raises(BadParameter, match="at least 2"):
        fluency_of(nats[:2], pieces[:2])


@pytest.mark.statistical
def test_the_error_is_the_spread_over_corpora(seed: int) -> None:
    # 400 corpora of 50 texts: the mean square of the deviation by the error is that of a
    # chi-square of about 400, within 0.4 of 1 (six of its standard deviations, 0.07 each).
    draw = SeededSource(seed, "corpora").generator()
    ratios = []
    for _ in range(400):
        pieces = draw.integers(1, 40, 50)
        found = fluency_of(3 * pieces + draw.normal(0, 1, 50) * pieces, pieces)
        ratios.append((found.nats - 3) / found.error)
    spread = float(np.mean(np.square(ratios)))
    assert 0.6 < spread < 1.5
    assert not 0.6 < spread / 4 < 1.5  # the twin: an error twice too large


def write_model(folder: Path, *, mark: bool) -> Path:
    """Write a tiny causal model with random weights and a tokeniser of words."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, "<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    marks = {"unk_token": "<unk>"} | ({"bos_token": "<s>"} if mark else {})
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, **marks).save_pretrained(folder)
    config: Any = GPT2Config
    settings = config(
        vocab_size=len(WORDS), n_embd=8, n_layer=1, n_head=2, n_positions=12, bos_token_id=0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model: Any = GPT2LMHeadModel(settings)  # type: ignore[no-untyped-call]
        for parameter in model.parameters():
            parameter.data.normal_(0.0, 0.5)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("mark", [True, False])
def test_a_pretrained_model_gives_the_nats_of_each_text_alone(tmp_path: Path, mark: bool) -> None:
    import torch
    from transformers import GPT2LMHeadModel

    folder = write_model(tmp_path / "model", mark=mark)
    nats, pieces = pretrained_nats(TEXTS, folder, longest=6)
    model: Any = GPT2LMHeadModel.from_pretrained(folder)
    for place, text in enumerate(TEXTS):
        row = [WORDS.index(word) for word in text.split()][:6]
        row = [0, *row] if mark else row
        expected = 0.0
        if len(row) > 1:
            with torch.inference_mode():
                logits = model(torch.tensor([row])).logits[0, :-1].double()
            chance = torch.log_softmax(logits, dim=-1)
            expected = -float(chance[torch.arange(len(row) - 1), row[1:]].sum())
        assert nats[place] == pytest.approx(expected, abs=1e-4)
        assert pieces[place] == max(0, len(row) - 1)


def test_a_directory_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadBackbone, match="safetensors"):
        pretrained_nats(TEXTS, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadBackbone, match="causal language model"):
        pretrained_nats(TEXTS, tmp_path)
