"""Which rates and clips does ``noisefloor reproduce lowrank`` train with? Fixed on IMDB alone.

    python bench/lowrank_settings.py

3,412 IMDB reviews cut to 28 pieces are trained on and 2,000 others judge. Batches and noise are
half of those of a run on 6,824 records, so that the noise in a mean gradient is the same. Each
method family gets every rate of ``RATES`` at every clip of ``CLIPS`` once, at epsilon 2, delta
1e-5, rank 8 and no masks; ``papers/lowrank/plans.py`` has what was taken. No text of Rotten
Tomatoes is read.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

# `python bench/lowrank_settings.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.fine_tuning import COST, SEED
from bench.worker import ROOT

from noisefloor.publication.fine_tuning import (
    TopLayers,
    load_backbone,
    public_scaling,
    run_frozen,
    tokenise,
)
from noisefloor.publication.fine_tuning.methods import (
    EncoderShapes,
    FineTuningPlan,
    MethodSettings,
    fine_tune,
)
from noisefloor.publication.private_sgd import PaddedInputs, ParameterGroup
from noisefloor.randomness import SeededSource
from noisefloor.tables import PUBLIC_TEXT_SCHEMAS, TextRecords, load_texts

OUT = ROOT / "bench/results/lowrank_settings.json"
BATCH = 1_365.0
POOLED, EXAMPLES, TRAINED, JUDGED, PIECES = (4, 5, 6), 6_824, 3_412, 2_000, 28
METHODS = ("lora", "rgp", "full")
RATES, CLIPS, HEAD_FACTOR = (3e-4, 1e-3, 3e-3, 1e-2), (1.0,), 10.0


def reviews() -> TextRecords:
    """Return distinct IMDB reviews in a seeded order, cut as sentences are."""
    schema = replace(PUBLIC_TEXT_SCHEMAS["imdb"], texts={"text": PIECES})
    records = load_texts("imdb", schema)
    _, first = np.unique(records.texts["text"].astype(str), return_index=True)
    order = np.sort(first)[SeededSource(SEED, "lowrank reviews").permutation(len(first))]
    return records[order[: TRAINED + JUDGED]]


def settings_of(rate: float, clip: float) -> MethodSettings:
    """Return the settings of a trial."""
    head = ParameterGroup("head", rate=HEAD_FACTOR)
    return MethodSettings(
        steps=20, batch=BATCH, clip=clip, learning_rate=rate, averaging=0.5, groups=(head,)
    )


def half_plan(name: str, rate: float, clip: float, shapes: EncoderShapes) -> FineTuningPlan:
    """Return a trial: half of the batch and of the noise of a run on all records."""
    settings = settings_of(rate, clip)
    batch = BATCH * TRAINED / EXAMPLES
    planned = FineTuningPlan.of(name, shapes, COST, EXAMPLES, settings)
    noise = planned.private.noise_multiplier * TRAINED / EXAMPLES
    half = replace(settings, batch=batch)
    return FineTuningPlan.of(name, shapes, COST, TRAINED, half, noise_multiplier=noise)


def main() -> None:
    """Train all, print and write."""
    torch.set_num_threads(1)
    backbone, records = load_backbone(), reviews()
    tokens = tokenise(backbone, records.schema, records.texts)
    states = run_frozen(backbone, tokens, POOLED, train_layers=1)
    shapes = EncoderShapes.of(backbone, 1, POOLED, classes=2)
    scaling, lengths = public_scaling(backbone, POOLED), torch.from_numpy(tokens.lengths.copy())
    labels, rows = torch.from_numpy(records.labels.copy()), []
    trials = [(name, rate, clip) for rate in RATES for clip in CLIPS for name in METHODS]
    for name, rate, clip in trials:
        start, plan = time.process_time(), half_plan(name, rate, clip, shapes)
        module = TopLayers(backbone, 1, POOLED, scaling, classes=2)
        inputs = module.inputs(states)
        trained = tuple(one[:TRAINED] for one in inputs)
        padding = PaddedInputs(lengths[:TRAINED], inputs=(0, 1))
        source = SeededSource(SEED, "lowrank settings", name, repr(rate), repr(clip))
        fine_tune(plan, module, trained, labels[:TRAINED], source, padding=padding)
        with torch.no_grad():
            outputs = module(*(one[TRAINED:] for one in inputs))
        accuracy = float((outputs.argmax(1) == labels[TRAINED:]).float().mean())
        took = time.process_time() - start
        rows.append(
            {"method": name, "rate": rate, "clip": clip, "accuracy": accuracy, "cpu_s": took}
        )
        print(json.dumps(rows[-1]), flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
