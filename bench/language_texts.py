"""How readable, how useful and how close are reviews that a language model writes under DP counts?

    python bench/language_texts.py                        # split 1, 1,000 texts each way
    python bench/language_texts.py --split 0 --texts 200 --strength 0.7    # tuning

Reviews, splits, classifiers and measures of likeness are those of ``bench/pseudo_texts.py``; all
ways have the same number of texts, originals too, since classifiers and discriminators depend on
it. The language model cuts reviews with a tokeniser of its own, to 64 pieces (these are about 60
of the others), and what it writes is judged cut to 60. Settings were chosen on the tuning split 0.
*CPU-s* is what a text takes, what is written to lead the model included. Neither trigram model has
anything to do with the language model: *nats* is under one of public texts, *own nats* under one
of the reviews that were learned from; both are less that of real reviews.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

# `python bench/language_texts.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.pseudo_texts import (
    DELTA,
    MEANING_TEXTS,
    PUBLIC_WEIGHT,
    SEED,
    TESTED,
    Bench,
    Judged,
    Split,
    made_up,
)
from bench.table import aligned

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.methods import TextLanguageModelPlan, TextSpec
from noisefloor.publication.text import Documents, read_documents
from noisefloor.randomness import SeededSource

EPSILON, LENGTH, JUDGED_LENGTH, SHOWN = 8.0, 64, 60, 6
PROMPT = "Write a film review as people post it on a web site, in their own words, without title."


def language_texts(
    split: Split, number: int, texts: int, settings: dict[str, float | str]
) -> tuple[Documents, list[str], float]:
    """Return made-up texts, the same as they are read, and the epsilon that is proved."""
    records = split.bench.records[split.rows]
    schema = replace(records.schema, texts={"text": LENGTH})
    cost = Guarantee(EPSILON, Neighbours.RECORD_ADD_REMOVE, delta=DELTA, model=TrustModel.CENTRAL)
    plan = TextLanguageModelPlan.of(TextSpec.read(schema, cost, {"texts": texts, **settings}))
    tokeniser = plan.model.tokeniser
    documents = read_documents(replace(records, schema=schema), tokeniser)
    written = plan.written(documents, SeededSource(SEED, "language model", number))
    found = tokeniser.written(written.pieces, written.offsets)
    pieces, offsets = split.bench.tokeniser.cut(found, JUDGED_LENGTH)
    return Documents(pieces, offsets, written.labels.copy()), found, plan.proved.epsilon


def compared(split: Split, number: int, texts: int) -> list[tuple[Judged, float]]:
    """Judge the originals and the two ways of n-grams, with the CPU seconds of a text."""
    rows = [(split.originals(split.learned[:texts]), 0.0)]
    for way, weight in (("n-grams", 0.0), ("crossed", PUBLIC_WEIGHT)):
        source = SeededSource(SEED, "compared", number, way)
        start = time.process_time()
        found, proved = made_up(split.learned, split.bench.public, EPSILON, weight, source, texts)
        spent = (time.process_time() - start) / texts
        rows.append((split.judged(way, proved, found, source), spent))
    return rows


def printed(rows: list[tuple[Judged, float]], texts: int) -> str:
    """Return the table."""
    lines = [
        [
            row.way,
            "-" if np.isinf(row.epsilon) else f"{row.epsilon:.3f}",
            *(f"{value:.3f}" for value in (row.naive_bayes, row.logistic)),
            *(f"{value:.3f}" for value in (row.pairs, row.meaning, row.nats, row.own_nats)),
            f"{row.copied:.3f}",
            f"{spent:.3f}",
        ]
        for row, spent in rows
    ]
    n_pairs, n_meaning = min(texts, TESTED), min(texts, MEANING_TEXTS)
    header = ["texts", "epsilon", "naive Bayes", "logistic", f"pairs (n={n_pairs})"]
    header += [f"meaning (n={n_meaning})", "nats", "own nats", "copied", "CPU-s"]
    return aligned(header, lines)


def main() -> None:
    """Write, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", type=int, default=1)
    parser.add_argument("--texts", type=int, default=1_000)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--strength", type=float)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--only", action="store_true", help="the language model alone")
    arguments = parser.parse_args()
    bench = Bench.loaded()
    split = bench.split(arguments.split)
    given = {name: getattr(arguments, name) for name in ("prompt", "strength", "temperature")}
    settings = {name: value for name, value in given.items() if value is not None}
    rows = [] if arguments.only else compared(split, arguments.split, arguments.texts)
    start = time.process_time()
    found, texts, proved = language_texts(split, arguments.split, arguments.texts, settings)
    spent = (time.process_time() - start) / arguments.texts
    source = SeededSource(SEED, "language model judged", arguments.split)
    rows.append((split.judged("language model", proved, found, source), spent))
    print(f"split {arguments.split}, {arguments.texts:,} texts each way, {settings}")
    print(printed(rows, arguments.texts))
    print("\n".join(texts[:SHOWN]))


if __name__ == "__main__":
    main()
