"""How useful, and how close to real texts, are made-up reviews? DP n-grams on IMDB.

    python bench/pseudo_texts.py                 # splits 1 to 4, three measures of likeness
    python bench/pseudo_texts.py --splits 1      # one of them
    python bench/pseudo_texts.py --part speed    # counts learned, 100,000 texts written

Reviews: IMDB without duplicates and without markup, those of at least 60 pieces, cut to 60: 20,000
to learn from, 4,468 to test on, by a seeded order for each split. Public texts: Rotten Tomatoes.
What is fixed in ``ngram_plan`` and ``table_cells`` was chosen on another order of the same
reviews (the tuning split), by F1 and pairs at epsilon 8 and 1; so was the weight of public text,
0.85, by meaning and F1 at epsilon 8. Tuning and testing share reviews, since there are no others.

Columns: macro F1 of naive Bayes on counts and of logistic regression on presence, trained on
100,000 made-up texts and tested on real ones; *pairs* and *meaning*: AUC of two discriminators,
0.5 if they cannot tell (n texts of each kind, half to learn; both rise with n); *nats*: a piece
under a trigram model of the public texts, less that of real reviews. Crossed texts are made of
the same public texts, so that this last figure flatters them; *own nats* is under a trigram model
of the reviews that were learned from. *copied*: share of texts with 8 pieces of public text in a
row. The table is a report: it does not fail on a missed target.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# `python bench/pseudo_texts.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned
from bench.worker import ROOT

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import Backbone, load_backbone
from noisefloor.publication.text import Documents, TextTokeniser, load_tokeniser, read_documents
from noisefloor.publication.text.evaluation import (
    BENCHMARK,
    TrigramModel,
    discriminate_meaning,
    discriminate_pairs,
    evaluate_utility,
    verbatim_runs,
)
from noisefloor.publication.text.ngrams import (
    NgramPlan,
    NgramWriter,
    PublicCorpus,
    count_ngrams,
    fit_pairs,
    public_corpus,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables import PUBLIC_TEXT_SCHEMAS, TextRecords, load_texts

OUT = ROOT / "bench/results/pseudo_texts.json"
SEED, LENGTH, LEARNED, TESTED = 40, 60, 20_000, 4_468
DELTA, TEXTS, MEANING_TEXTS, COPIED = 1e-5, 100_000, 600, 8
PUBLIC_WEIGHT = 0.85
WAYS = (("n-grams", 8.0, 0.0), ("crossed", 8.0, PUBLIC_WEIGHT), ("n-grams", 1.0, 0.0))
COUNTED_SPLITS = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Judged:
    """What made-up texts reached on one split."""

    way: str
    epsilon: float
    naive_bayes: float
    logistic: float
    pairs: float
    meaning: float
    nats: float
    own_nats: float
    copied: float


def reviews(tokeniser: TextTokeniser) -> tuple[TextRecords, Documents]:
    """Return the distinct reviews of at least 60 pieces, and these cut to 60."""
    schema = replace(PUBLIC_TEXT_SCHEMAS["imdb"], texts={"text": LENGTH})
    records = load_texts("imdb", schema)
    _, first = np.unique(records.texts["text"].astype(str), return_index=True)
    records = records[np.sort(first)]
    documents = read_documents(records, tokeniser)
    is_long = np.flatnonzero(documents.lengths >= LENGTH)
    return records[is_long], documents[is_long]


def split_of(count: int, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the reviews to learn from and of those to test on."""
    order = SeededSource(SEED, "split", split).permutation(count)
    return order[:LEARNED], order[LEARNED : LEARNED + TESTED]


def made_up(
    learned: Documents,
    public: PublicCorpus,
    epsilon: float,
    weight: float,
    source: SeededSource,
    count: int = TEXTS,
) -> tuple[Documents, float]:
    """Return made-up texts, and the epsilon that is proved of them."""
    cost = Guarantee(epsilon, Neighbours.RECORD_ADD_REMOVE, delta=DELTA, model=TrustModel.CENTRAL)
    plan = NgramPlan.of(cost, 2, LENGTH, public.size)
    counts = count_ngrams(learned, plan, public, source.child("counts"))
    model = fit_pairs(counts, public.tokeniser.continuations)
    writer = NgramWriter(model, plan.bin_width, LENGTH, public, weight)
    return writer.write(count, source.child("texts")), plan.guarantee.epsilon


@dataclass(frozen=True)
class Bench:
    """What all splits have in common."""

    tokeniser: TextTokeniser
    backbone: Backbone
    public: PublicCorpus
    records: TextRecords
    documents: Documents

    @classmethod
    def loaded(cls) -> "Bench":
        """Load data sets and models."""
        tokeniser = load_tokeniser()
        public = public_corpus("rotten-tomatoes", tokeniser)
        return cls(tokeniser, load_backbone(), public, *reviews(tokeniser))

    def split(self, split: int) -> "Split":
        """Return a split, with the language models that judge its texts."""
        rows, others = split_of(self.documents.count, split)
        learned, tested = self.documents[rows], self.documents[others]
        size = self.public.size
        models = tuple(TrigramModel.train(one, size) for one in (self.public.documents, learned))
        return Split(self, rows, learned, tested, models)

    def judge(self, split: int) -> list[Judged]:
        """Judge every way on one split, and the originals."""
        found = self.split(split)
        rows = [found.originals(found.learned)]
        for way, epsilon, weight in WAYS:
            source = SeededSource(SEED, "texts", split, way, f"{epsilon:g}")
            texts, proved = made_up(found.learned, self.public, epsilon, weight, source)
            rows.append(found.judged(way, proved, texts, source))
        return rows


@dataclass(frozen=True)
class Split:
    """Reviews to learn from and to test on, and what judges made-up ones."""

    bench: Bench
    rows: NDArray[np.int64]
    learned: Documents
    tested: Documents
    models: tuple[TrigramModel, ...]

    @cached_property
    def real_nats(self) -> list[float]:
        """Of a piece of real reviews, under both models."""
        return [_nats(model, self.tested[:1_000]) for model in self.models]

    def originals(self, texts: Documents) -> Judged:
        """Judge real reviews: classifiers alone."""
        scores = self._scores(texts)
        copied = verbatim_runs(self.tested[:2_000], self.bench.public.documents).share(COPIED)
        return Judged("originals", np.inf, *scores, 0.5, 0.5, 0.0, 0.0, copied)

    def judged(self, way: str, epsilon: float, texts: Documents, source: SeededSource) -> Judged:
        """Judge made-up texts."""
        bench, tested = self.bench, self.tested
        pairs = discriminate_pairs(tested, texts, bench.public.size, source.child("pairs"))
        meaning = discriminate_meaning(
            tested, texts, bench.backbone, source.child("meaning"), MEANING_TEXTS, is_scaled=False
        )
        nats = [
            _nats(model, texts[:1_000]) - real
            for model, real in zip(self.models, self.real_nats, strict=True)
        ]
        copied = verbatim_runs(texts[:2_000], bench.public.documents).share(COPIED)
        scores = self._scores(texts)
        return Judged(way, epsilon, *scores, pairs.auc, meaning.auc, nats[0], nats[1], copied)

    def _scores(self, texts: Documents) -> tuple[float, float]:
        found = evaluate_utility(texts, self.tested, self.bench.public.size, 2, BENCHMARK)
        return found["naive-bayes"].macro_f1, found["logistic-presence"].macro_f1


def _nats(model: TrigramModel, texts: Documents) -> float:
    return float(model.nats(texts).sum() / len(texts.pieces))


def printed(splits: Sequence[list[Judged]]) -> str:
    """Return means over splits, and how far each is below the originals."""
    lines = []
    for rows in zip(*splits, strict=True):
        table = np.array([list(asdict(row).values())[2:] for row in rows], dtype=np.float64)
        original = np.array([[one[0].naive_bayes, one[0].logistic] for one in splits])
        below = (original - table[:, :2]).mean(axis=0)
        means = table.mean(axis=0)
        lines.append(
            [
                rows[0].way,
                "-" if np.isinf(rows[0].epsilon) else f"{rows[0].epsilon:.3f}",
                *(
                    f"{value:.3f} ({less:+.3f})"
                    for value, less in zip(means, -below, strict=False)
                ),
                *(f"{value:.3f}" for value in means[2:]),
            ]
        )
    header = ["texts", "epsilon", "naive Bayes", "logistic", "pairs", "meaning"]
    return aligned([*header, "nats", "own nats", "copied"], lines)


def speed(bench: Bench) -> str:
    """Return the CPU seconds of counting 20,000 reviews and of writing 100,000 texts."""
    learned = bench.documents[split_of(bench.documents.count, 0)[0]]
    start = time.process_time()
    texts, _ = made_up(learned, bench.public, 8.0, 0.0, SeededSource(SEED, "speed"))
    made = time.process_time() - start
    bench.tokeniser.written(texts.pieces, texts.offsets)
    whole = time.process_time() - start
    return (
        f"{LEARNED:,} reviews counted and {TEXTS:,} texts made in {made:.1f} CPU s, "
        f"written out as text in {whole:.1f} (target 15); {LEARNED:,} reviews in pieces beforehand"
    )


def main() -> None:
    """Judge, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["likeness", "speed"], default="likeness")
    parser.add_argument("--splits", type=int, nargs="+", default=COUNTED_SPLITS)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    bench = Bench.loaded()
    if arguments.part == "speed":
        return print(speed(bench))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    splits: list[list[Judged]] = []
    for split in arguments.splits:
        splits.append(bench.judge(split))
        print(f"{len(splits)} of {len(arguments.splits)} splits, {time.process_time():.0f} CPU s")
        print(printed(splits), flush=True)
        content = [[asdict(row) for row in rows] for rows in splits]
        # Infinity is no JSON: the originals have no epsilon.
        arguments.out.write_text(json.dumps(content).replace("Infinity", "null") + "\n")


if __name__ == "__main__":
    main()
