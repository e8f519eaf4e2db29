"""Corpora: splits, texts that are read and cut, and how alike two corpora are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from noisefloor.publication.text import Documents
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import load_texts
from noisefloor_sim.papers.text import corpora, measuring
from text_paper_cases import GOOD, TINY, Pair


def test_splits_of_a_repetition_judge_each_text_once() -> None:
    judges = [corpora.split_rows(43, TINY, split)[1] for split in range(10)]
    for first in (0, 5):
        together = np.sort(np.concatenate(judges[first : first + 5]))
        assert together.tolist() == list(range(43))
    assert judges[0].tolist() != judges[5].tolist()
    rows, others = corpora.split_rows(43, TINY, 3)
    assert not set(rows.tolist()) & set(others.tolist())


def test_texts_are_read_once_each_without_marks_and_by_label(tiny: Pair, folder: Path) -> None:
    found = corpora.load_corpus(*tiny, TINY)
    texts = load_texts(tiny[0]).texts["text"].tolist()
    assert len(set(texts)) == found.count < len(texts)
    assert len(set(found.texts)) == found.count
    assert "<br" not in " ".join(found.texts)
    is_good = np.array([any(word in text for word in GOOD) for text in found.texts])
    assert (found.documents.labels == is_good).all()
    assert found.documents.lengths.max() <= found.longest == 8
    some = corpora.load_corpus(*tiny, replace(TINY, records=60))
    assert some.count == 60
    assert set(some.texts) < set(found.texts)


def test_texts_are_cut_after_a_word_by_themselves() -> None:
    assert corpora._shortened("ab cd", 60) == "ab cd"
    cut = corpora._shortened("word " * 400, 60)
    assert cut == ("word " * 144).rstrip()
    assert corpora._shortened("x" * 2_000, 60) == "x" * 720


def test_likeness_of_texts_with_themselves_is_complete() -> None:
    offsets = np.arange(0, 60, 5)
    pieces = np.repeat(np.arange(11), 5).astype(np.int32)
    real = Documents(pieces, offsets, np.zeros(11, np.int64))
    with new_run():
        found = measuring.likeness(real, real, 20, TINY, SeededSource(1, "likeness"))
    other = Documents((pieces + 1) % 20, offsets, real.labels)
    with new_run():
        less = measuring.likeness(real, other, 20, TINY, SeededSource(1, "likeness"))
    assert found["row_maxima"] == pytest.approx([100.0] * 11)
    assert found["cosine_mean"] == pytest.approx(100 / 11)
    assert less["cosine_mean"] < found["cosine_mean"]
    assert sum(one > 99 for one in less["row_maxima"]) == 10


def test_pieces_are_left_out_of_their_own_documents() -> None:
    texts = Documents(np.array([5, 1, 1, 7, 5], np.int32), np.array([0, 2, 3, 3, 5]), np.arange(4))
    found = measuring.without(texts, np.array([5, 9]))
    assert found.pieces.tolist() == [1, 1, 7]
    assert found.offsets.tolist() == [0, 1, 2, 2, 3]
    assert found.labels.tolist() == [0, 1, 2, 3]
