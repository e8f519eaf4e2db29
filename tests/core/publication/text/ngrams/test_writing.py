"""Chains and the texts they write: shares of pieces, labels, lengths, public text."""

from functools import cache

import numpy as np
import pytest

from made_up_texts import documents_of
from ngram_cases import LENGTH, a_plan, number_tokeniser, private_texts, public_texts
from noisefloor.errors import BadParameter
from noisefloor.publication.text import Documents
from noisefloor.publication.text.evaluation import verbatim_runs
from noisefloor.publication.text.ngrams import (
    NgramWriter,
    PairModel,
    PublicCorpus,
    count_ngrams,
    fit_pairs,
)
from noisefloor.publication.text.ngrams.public_corpus import Rows, followers
from noisefloor.randomness import SeededSource, new_run
from statistics_of_tests import FALSE_ALARM, chi_square_p
from tiny_backbones import SPECIAL

NO_ENDINGS = np.zeros(0, dtype=np.int64)


@cache
def a_model() -> PairModel:
    with new_run():
        counts = count_ngrams(private_texts(3_000), a_plan(8.0), public_texts(), SeededSource(9))
    return fit_pairs(counts, NO_ENDINGS)


def a_writer(weight: float = 0.0, width: int = 1) -> NgramWriter:
    return NgramWriter(a_model(), width, LENGTH, public_texts(), weight)


def joint(model: PairModel, label: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of rows and columns of a label's table."""
    chain = model.chains[label]
    rows = np.bincount(model.before, chain.pairs, model.size + 1) + chain.rests
    columns = np.bincount(model.pieces, chain.pairs, model.size)
    return rows, columns + chain.others * chain.rests.sum()


@pytest.mark.parametrize("label", [0, 1])
def test_sums_of_a_table_are_the_shares_of_its_label(label: int) -> None:
    model = a_model()
    rows, columns = joint(model, label)
    shares = model.shares[label]
    assert np.abs(columns - shares).sum() < 1e-9
    assert np.abs(rows[:-1] - shares * (1 - 1 / LENGTH)).sum() < 0.02
    assert rows[-1] == pytest.approx(1 / LENGTH, rel=0.02)


def test_texts_have_the_shares_of_their_labels() -> None:
    texts = a_writer().write(20_000, SeededSource(1, "shares"))
    for label in (0, 1):
        part = texts[texts.labels == label]
        found = np.bincount(part.pieces, minlength=a_model().size) / len(part.pieces)
        assert np.abs(found - a_model().shares[label]).sum() < 0.06
        other = a_model().shares[1 - label]
        assert np.abs(found - other).sum() > 0.3


@pytest.mark.statistical
@pytest.mark.parametrize(("tilt", "is_right"), [(0.0, True), (0.3, False)])
def test_the_next_piece_follows_the_chain(tilt: float, is_right: bool) -> None:
    """First pieces against their row: alarms with probability 1e-6; the twin is tilted."""
    texts = a_writer().write(60_000, SeededSource(2, "first", f"{tilt:g}"))
    first = texts.pieces[texts.offsets[:-1]][texts.labels == 0]
    model, chain = a_model(), a_model().chains[0]
    own = model.before == model.size
    row = np.zeros(model.size)
    row[model.pieces[own]] = chain.pairs[own]
    # Every word has a cell of its own after the start: no try finds another one.
    assert row[chain.others > 0].all()
    row += chain.rests[-1] * chain.others
    row /= row.sum()
    row[: model.size // 2] *= 1 + tilt
    counts = np.bincount(first, minlength=model.size)
    assert (chi_square_p(counts[row > 0], row[row > 0] / row.sum()) > FALSE_ALARM) is is_right


def test_the_same_source_writes_the_same_texts() -> None:
    one = a_writer(0.5).write(50, SeededSource(3, "same"))
    with new_run():
        two = a_writer(0.5).write(50, SeededSource(3, "same"))
    other = a_writer(0.5).write(50, SeededSource(4, "same"))
    assert np.array_equal(one.pieces, two.pieces)
    assert np.array_equal(one.labels, two.labels)
    assert not np.array_equal(one.pieces, other.pieces)


def test_lengths_and_labels_are_those_that_were_estimated() -> None:
    draw = SeededSource(5, "lengths").generator()
    rows = [[len(SPECIAL) + 1] * int(size) for size in draw.integers(5, 9, 2_000)]
    documents = documents_of(rows, [int(row % 4 == 0) for row in range(2_000)])
    counts = count_ngrams(documents, a_plan(8.0), public_texts(), SeededSource(5))
    model = fit_pairs(counts, NO_ENDINGS)
    texts = NgramWriter(model, 1, LENGTH).write(4_000, SeededSource(5, "texts"))
    assert texts.labels.mean() == pytest.approx(0.25, abs=0.02)
    inside = (texts.lengths >= 5) & (texts.lengths < 9)
    assert inside.mean() > 0.95
    assert texts.lengths.max() <= LENGTH


def test_wide_bins_of_lengths_are_spread_evenly() -> None:
    texts = a_writer(width=4).write(2_000, SeededSource(6, "wide"))
    assert 1 <= texts.lengths.min() <= texts.lengths.max() <= LENGTH


def test_no_mark_is_written() -> None:
    texts = a_writer(0.3).write(3_000, SeededSource(7, "marks"))
    assert not np.isin(texts.pieces, number_tokeniser().marks).any()


def test_more_public_text_is_copied_with_more_weight() -> None:
    shares = []
    for weight in (0.0, 0.5, 1.0):
        texts = a_writer(weight).write(400, SeededSource(8, f"{weight:g}"))
        shares.append(verbatim_runs(texts, public_texts().documents).share(6))
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.5


def test_endings_of_words_follow_what_they_were_seen_to_follow() -> None:
    counts = count_ngrams(private_texts(3_000), a_plan(8.0), public_texts(), SeededSource(10))
    endings = np.arange(len(SPECIAL) + 150, number_tokeniser().size)
    texts = {}
    for name, chosen in (("any", NO_ENDINGS), ("seen", endings)):
        writer = NgramWriter(fit_pairs(counts, chosen), 1, LENGTH)
        texts[name] = writer.write(4_000, SeededSource(10, name))
    known = set(zip(counts.cells.before.tolist(), counts.cells.pieces.tolist(), strict=True))

    def strange(documents: Documents) -> int:
        before, pieces = followers(documents, number_tokeniser().size)
        at = np.flatnonzero(np.isin(pieces, endings))
        return sum((int(before[one]), int(pieces[one])) not in known for one in at)

    assert strange(texts["seen"]) < 0.5 * strange(texts["any"])


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_weights_that_are_no_chance_are_refused(weight: float) -> None:
    with pytest.raises(BadParameter, match="public_weight"):
        a_writer(weight)


def test_public_text_is_needed_to_take_pieces_from() -> None:
    with pytest.raises(BadParameter, match="public corpus"):
        NgramWriter(a_model(), 1, LENGTH, None, 0.5)


def test_rows_count_what_follows() -> None:
    rows = Rows.of(np.array([3, 1, 3, 3]), np.array([7, 2, 7, 5]), 10)
    assert rows.contexts.tolist() == [1, 3]
    assert rows.starts.tolist() == [0, 1, 3]
    assert rows.pieces.tolist() == [2, 5, 7]
    assert rows.counts.tolist() == [1, 1, 2]
    assert rows.totals.tolist() == [1, 3]
    places, seen = rows.find(np.array([0, 1, 2, 3, 9]))
    assert seen.tolist() == [False, True, False, True, False]
    assert places[seen].tolist() == [0, 1]


def test_a_public_corpus_counts_pieces_pairs_and_triples() -> None:
    tokeniser = number_tokeniser()
    documents = documents_of([[5, 6, 7], [6], [], [5, 6, 8]])
    public = PublicCorpus("four texts", documents, tokeniser)
    start = public.size
    assert public.frequencies.sum() == pytest.approx(1)
    assert public.frequencies[6] == public.frequencies.max()
    assert (public.frequencies[tokeniser.marks] == 0).all()
    assert public.frequencies[100] > 0
    pairs = {
        (int(context), int(piece))
        for row, context in enumerate(public.pairs.contexts)
        for piece in public.pairs.pieces[public.pairs.starts[row] : public.pairs.starts[row + 1]]
    }
    assert pairs == {(start, 5), (start, 6), (5, 6), (6, 7), (6, 8)}
    wide = start + 1
    assert set(public.triples.contexts.tolist()) == {
        start * wide + start,
        start * wide + 5,
        5 * wide + 6,
    }
    other = PublicCorpus("four texts", documents[:3], tokeniser)
    assert other.sha256 != public.sha256
