"""Run one cell: write a corpus, and measure it against real texts that were held out.

A cell follows from its own name, the plan and the texts alone: its draws are named by its key, so
that the order of cells, workers and interruptions change nothing. What is measured is for the
holder of the texts; nothing here is private.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Guarantee
from noisefloor.publication.text import Documents, shared_tokeniser
from noisefloor.publication.text.evaluation import (
    cosines,
    evaluate_utility,
    measure_diversity,
    residual_idf,
)
from noisefloor.publication.text.generalisation import SUPPRESSED
from noisefloor.publication.text.generators import (
    document_losses,
    largest_chances,
    most_frequent_pieces,
)
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.budgets import CLASSES, seed_delta
from noisefloor_sim.papers.text.corpora import PreparedCorpus, read_prepared, split_rows
from noisefloor_sim.papers.text.plans import (
    TextCell,
    TextRunPlan,
)
from noisefloor_sim.papers.text.systems import WrittenCorpus, write_corpus

CellFigures = dict[str, Any]  # JSON
HEAT = 12
"""Rows and columns of a heat map."""

SAMPLES, SAMPLE_CHARACTERS = 2, 160
_DIGITS = 6


def run_cell(cell: TextCell, plan: TextRunPlan, folder: Path) -> CellFigures:
    """Return what a cell gives; a worker's whole job."""
    import torch

    torch.set_num_threads(1)
    prepared = read_prepared(folder)
    rows, judges = split_rows(prepared.documents.count, plan, cell.split)
    train, held_out = prepared.documents[rows], prepared.documents[judges]
    size = shared_tokeniser().size
    with new_run():
        source = SeededSource(plan.seed, "text", cell.key)
        shared = SeededSource(plan.seed, "text", "shared", cell.split)
        written = write_corpus(cell, plan, prepared, rows, source)
        found = _scores(written.documents, held_out, size)
        found |= _diversity(written.documents, train, size, plan, shared.child("diversity"))
        if cell.system != "original":
            found |= likeness(train, written.documents, size, plan, shared.child("cosines"))
        found |= _generator_figures(written, plan, prepared, held_out)
    found["proved"] = {name: _as_json(one) for name, one in written.parts.items()}
    found["noise"] = written.noise
    if written.substituted is not None:
        found["substituted"] = _as_json(written.substituted)
    found["seeds"] = seed_facts(train)
    found["different_lengths"] = len(np.unique(train.lengths))
    found["samples"] = _samples(written, cell)
    return found


def _scores(written: Documents, held_out: Documents, size: int) -> CellFigures:
    scores = evaluate_utility(written, held_out, size, CLASSES, tuple(printed.CLASSIFIERS))
    return {
        "f1": {name: [_percent(one) for one in each.f1] for name, each in scores.items()},
        "notes": {name: each.note for name, each in scores.items()},
        "judged": held_out.count,
        "learned_from": written.count,
    }


def _diversity(
    written: Documents, train: Documents, size: int, plan: TextRunPlan, source: Source
) -> CellFigures:
    """Return how varied a corpus is, without the marks that suppressed names leave.

    These are rare in real texts: with them, generalised texts would have more rare words for
    having lost some.
    """
    marks, _ = shared_tokeniser().cut([SUPPRESSED], plan.longest)
    written, train = (without(corpus, marks) for corpus in (written, train))
    sample = max(2, min(plan.sample, train.count, written.count))
    found = measure_diversity(written, train, size, source, sample)
    return {
        "distinct_1": _percent(found.distinct_1),
        "distinct_2": _percent(found.distinct_2),
        "self_bleu": _percent(found.self_bleu),
        "rare_share": _percent(found.rare_share),
        "rare_kinds": found.rare_kinds,
        "vocabulary": found.vocabulary,
    }


def without(documents: Documents, pieces: NDArray[np.integer]) -> Documents:
    """Return documents without some pieces."""
    kept = ~np.isin(documents.pieces, pieces)
    lengths = np.bincount(documents.owners[kept], minlength=documents.count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Documents(documents.pieces[kept], offsets, documents.labels)


def likeness(
    real: Documents, written: Documents, size: int, plan: TextRunPlan, source: Source
) -> CellFigures:
    """Return Residual-IDF cosines of some real texts with some written ones, in percent.

    The real texts are the same for all systems of a split, so that systems pair text by text.

    Args:
        real: What was learnt from, before any generalisation; its weights are used.
        written: The corpus.
        size: Of the vocabulary.
        plan: How many of each are compared.
        source: Chooses them.
    """
    weights = residual_idf(real, size)
    some, others = (
        corpus[np.sort(source.child(name).permutation(corpus.count)[: plan.compared])]
        for name, corpus in (("real", real), ("written", written))
    )
    found = 100 * cosines(some, others, weights).astype(np.float64)
    picked = [np.arange(min(HEAT, count)) * count // min(HEAT, count) for count in found.shape]
    return {
        "cosine_mean": round(float(found.mean()), _DIGITS),
        "cosine_most": round(float(found.max()), _DIGITS),
        "row_means": _rounded(found.mean(axis=1)),
        "row_maxima": _rounded(found.max(axis=1)),
        "heat": [_rounded(row, 2) for row in found[np.ix_(*picked)]],
    }


def _generator_figures(
    written: WrittenCorpus, plan: TextRunPlan, prepared: PreparedCorpus, held_out: Documents
) -> CellFigures:
    """Return what is measured of a network: how likely it finds held-out texts, how sure it is.

    Largest output probabilities are those after the same public pieces, label by label.
    """
    if written.generator is None:
        return {}
    inputs = most_frequent_pieces(prepared.public.pieces, plan.inputs, is_public=True).pieces
    generator = written.generator
    found = [largest_chances(generator, label, inputs) for label in range(CLASSES)]
    losses = document_losses(generator, held_out)
    nats = float(losses.sum() / (held_out.lengths - 1).sum())
    return {"largest": _rounded(np.concatenate(found), 9), "nats": round(nats, _DIGITS)}


def seed_facts(train: Documents) -> CellFigures:
    """Return how likely a piece that stands once in all texts of a label comes up as a seed."""
    facts: list[dict[str, float]] = []
    for label in range(CLASSES):
        own = train[np.flatnonzero(train.labels == label)]
        pieces = len(own.pieces)
        facts.append(
            {"pieces": pieces, "texts": own.count, "delta": seed_delta(pieces, own.count)}
        )
    return {"labels": facts, "delta": max(one["delta"] for one in facts)}


def _samples(written: WrittenCorpus, cell: TextCell) -> list[str]:
    """Return the first words of the first texts of an encoder-decoder's or n-grams' corpus."""
    if cell.system == "original":
        return []
    some = written.documents[:SAMPLES]
    texts = shared_tokeniser().written(some.pieces, some.offsets)
    return [text[:SAMPLE_CHARACTERS] for text in texts]


def _as_json(proved: Guarantee) -> CellFigures:
    epsilon = proved.epsilon if proved.is_finite else None
    return {"epsilon": epsilon, "delta": proved.delta, "reason": proved.reason}


def _percent(share: float) -> float:
    return round(100 * float(share), _DIGITS)


def _rounded(values: NDArray[np.float64], digits: int = _DIGITS) -> list[float]:
    return [round(float(one), digits) for one in values]
