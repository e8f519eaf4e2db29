"""How well does private fine-tuning do on Rotten Tomatoes? Accuracy at epsilon 2, delta 1e-5.

    python bench/fine_tuning.py head            # five splits of 6,824 / 1,706
    python bench/fine_tuning.py head --choose   # search settings again, on IMDB alone
    python bench/fine_tuning.py paired          # fine-tuning against the head on these splits
    python bench/fine_tuning.py scales          # write the public scales that are shipped

Part ``head``: a linear head on the mean-pooled layers 4, 5 and 6 of MiniLM-L6, full batches, one
record added or removed. Its settings are the defaults of ``HeadSettings``. They were fixed on IMDB
reviews, before any text of Rotten Tomatoes was judged: by a simulation of the same steps in numpy,
on 12,000 reviews cut to 64 pieces ('<br />' taken out), of which 2,000 gave the scales, 6,824 were
trained on and the other 3,176 chose, in two splits or more, among about 100 settings. Of several
that were best within the noise, one was taken. Afterwards that simulation was run on Rotten
Tomatoes at two settings, these and rate 8 with clip 0.5, to check the figure; nothing was changed
by it. ``--choose`` searches again, by the engine itself and on another selection of reviews: there
the defaults came seventh of 36, 0.6 points below the first, with a standard error of 0.5 points on
each.

Part ``paired`` is in ``paired_fine_tuning.py``; every training is kept when it is done.

Splits are the five parts of one division by seed; every text is in one test part. The interval is
Student's over the five (training parts overlap, so it is a guide). Features are made once and kept
in the cache of data sets, by the hash of what decides them: about two minutes for Rotten Tomatoes
and one for the 2,000 reviews on one core. It reports; it does not fail on a missed target.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# `python bench/fine_tuning.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned
from bench.worker import ROOT

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import (
    Backbone,
    FeatureScaling,
    HeadSettings,
    load_backbone,
    public_features,
    public_scaling,
    tokenise,
    train_head,
)
from noisefloor.publication.fine_tuning.public_scales import SHIPPED
from noisefloor.publication.tensors import write_tensors
from noisefloor.randomness import SeededSource, Source
from noisefloor.tables import PUBLIC_TEXT_SCHEMAS, TextRecords, folds, load_texts
from noisefloor_sim.cli.progress import counting_bar
from noisefloor_sim.pipelines.plotting import student_interval

OUT = ROOT / "bench/results/fine_tuning.json"
SEED, PARTS, POOLED = 20, 5, (4, 5, 6)
COST = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
PUBLIC, TRAINED, LEFT = 2_000, 6_824, 3_176
STEPS, RATES, CLIPS = (40, 60, 100), (2.0, 3.0, 5.0, 8.0), (0.3, 0.5, 1.0)
CHOOSING_SPLITS = 2

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One way: what it proves and what it reached on each split."""

    method: str
    epsilon: float
    accuracy: tuple[float, ...]
    seconds: float


def features_of(
    backbone: Backbone, records: TextRecords, pooled: tuple[int, ...] = POOLED
) -> Floats:
    """Return features of public texts, with a bar where they are made for the first time."""
    tokens = tokenise(backbone, records.schema, records.texts)
    with counting_bar() as bar:
        task = bar.add_task("features", total=tokens.count)
        return public_features(
            backbone, tokens, pooled, progress=lambda done: bar.advance(task, done)
        )


def reviews(start: int, count: int) -> TextRecords:
    """Return some of the distinct IMDB reviews in a seeded order, cut as the sentences are."""
    schema = replace(PUBLIC_TEXT_SCHEMAS["imdb"], texts={"text": 64})
    records = load_texts("imdb", schema)
    _, first = np.unique(records.texts["text"].astype(str), return_index=True)
    order = np.sort(first)[SeededSource(SEED, "reviews").permutation(len(first))]
    chosen = records[order[start : start + count]]
    texts = [text.replace("<br />", " ") for text in chosen.texts["text"]]
    return TextRecords.of(
        {"text": texts, "label": np.asarray([0, 1])[chosen.labels]}, schema, "imdb"
    )


def trained_accuracy(
    features: Floats,
    labels: Labels,
    is_test: NDArray[np.bool_],
    settings: HeadSettings,
    source: Source,
) -> float:
    """Train a private head on what is not is_test out, and score it on what is."""
    train, test = features[~is_test], features[is_test]
    plan = settings.plan(COST, len(train))
    weight, bias = train_head(train, labels[~is_test], 2, plan, source)
    return float(((test @ weight.T + bias).argmax(axis=1) == labels[is_test]).mean())


def plain_accuracy(features: Floats, labels: Labels, is_test: NDArray[np.bool_]) -> float:
    """Fit logistic regression without privacy, as scikit-learn does by default."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=1000).fit(features[~is_test], labels[~is_test])
    return float(fitted.score(features[is_test], labels[is_test]))


def head(backbone: Backbone, scaling: FeatureScaling) -> list[Row]:
    """Judge private and plain heads on the same splits."""
    records = load_texts("rotten-tomatoes")
    features = scaling.scaled(features_of(backbone, records))
    part = folds(records.count, PARTS, SeededSource(SEED, "splits"))
    rows = []
    for method in ("private head", "plain head"):
        found, start = [], time.process_time()
        for split in range(PARTS):
            is_test, source = part == split, SeededSource(SEED, "head", split)
            found.append(
                trained_accuracy(features, records.labels, is_test, HeadSettings(), source)
                if method == "private head"
                else plain_accuracy(features, records.labels, is_test)
            )
        size = int((part != 0).sum())
        proved = HeadSettings().plan(COST, size).guarantee(COST.delta).epsilon
        epsilon = proved if method == "private head" else np.inf
        rows.append(Row(method, epsilon, tuple(found), time.process_time() - start))
    return rows


def choose(backbone: Backbone, scaling: FeatureScaling) -> list[Row]:
    """Try settings on IMDB reviews, best first."""
    records = reviews(PUBLIC, TRAINED + LEFT)
    features = scaling.scaled(features_of(backbone, records))
    rows = []
    for steps, rate, clip in product(STEPS, RATES, CLIPS):
        found, start = [], time.process_time()
        settings = HeadSettings(steps=steps, learning_rate=rate, clip=clip)
        for split in range(CHOOSING_SPLITS):
            source = SeededSource(SEED, "choose", steps, str(rate), str(clip), split)
            order = SeededSource(SEED, "choosing", split, steps, str(rate), str(clip))
            is_test = order.permutation(records.count) >= TRAINED
            found.append(trained_accuracy(features, records.labels, is_test, settings, source))
        name = f"{steps} steps, rate {rate:g}, clip {clip:g}"
        rows.append(Row(name, COST.epsilon, tuple(found), time.process_time() - start))
    return sorted(rows, key=lambda row: -float(np.mean(row.accuracy)))


def printed(rows: Sequence[Row]) -> str:
    """Return the table as text."""
    lines = []
    for row in rows:
        low, high = student_interval(row.accuracy)
        mean = f"{np.mean(row.accuracy):.4f}"
        between = f"{low:.4f} to {high:.4f}"
        lines.append([row.method, f"{row.epsilon:.3f}", mean, between, f"{row.seconds:.0f}"])
    return aligned(["method", "epsilon", "accuracy", "95 % interval", "CPU s"], lines)


def write_scales(backbone: Backbone) -> None:
    """Write means and deviations of every layer over public reviews, for the package."""
    every = tuple(range(1, backbone.depth + 1))
    features = features_of(backbone, reviews(0, PUBLIC), every).astype(np.float64)
    shape = (backbone.depth, backbone.width)
    moments = {"mean": features.mean(axis=0), "deviation": features.std(axis=0)}
    about = {
        "source": f"{PUBLIC:,} IMDB reviews, cut to 64 pieces",
        "backbone_sha256": backbone.weights_sha256,
    }
    tensors = {name: one.reshape(shape).astype(np.float32) for name, one in moments.items()}
    path = ROOT / "platform/noisefloor/publication/fine_tuning" / SHIPPED
    path.write_bytes(write_tensors(tensors, {"noisefloor": json.dumps(about)}))
    print(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    """Judge, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["head", "paired", "scales"])
    parser.add_argument("--choose", action="store_true", help="repeat the choice, on IMDB")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    backbone = load_backbone()
    if arguments.part == "scales":
        return write_scales(backbone)
    if arguments.part == "paired":
        from bench.paired_fine_tuning import PairedBench, judge_pairs

        bench = PairedBench(backbone, load_texts("rotten-tomatoes"), COST)
        return print(judge_pairs(bench, arguments.out.with_suffix(".paired.jsonl")))
    scaling = public_scaling(backbone, POOLED)
    rows = (choose if arguments.choose else head)(backbone, scaling)
    what = "IMDB" if arguments.choose else "Rotten Tomatoes"
    print(
        f"{what}, epsilon {COST.epsilon:g}, delta {COST.delta:g}, {TRAINED:,} records to train on"
    )
    print(printed(rows))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
