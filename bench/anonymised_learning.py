"""AnonymizedLearning against plain training: what a step costs, in CPU time.

A network of 148-64-64-64-2 (one-hot Adult) on made-up records, batches of 50, one thread. Plain
steps and those of every form run in turns in one process; a turn is many steps, updates included.
The ratio is the median over turns. It reports; it does not fail on a missed target.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median

# `python bench/anonymised_learning.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.worker import ONE_THREAD

os.environ.update(ONE_THREAD)  # before numpy is loaded

import numpy as np
from bench.table import aligned, figure

from noisefloor.publication.networks.anonymised_learning import AnonymisedLearning, IncrementForm
from noisefloor.publication.networks.dense import (
    DenseNetwork,
    Increments,
    NetworkShape,
    NetworkTraining,
    plain_increments,
    steps,
)
from noisefloor.randomness import SeededSource
from noisefloor.tables.one_hot import Examples

RECORDS, FEATURES = 20_000, 148
STEPS, TURNS, QUICK_TURNS = 200, 31, 7
TARGET = 2.5

FORMS: dict[str, IncrementForm] = {
    "as printed": "printed",
    "clipped before the noise": "clipped",
    "corrected, sum of widths": "widths",
    "corrected, L1 norm": "norm",
}


def examples() -> Examples:
    """Return records at random: what they say does not matter to the clock."""
    draw = SeededSource(1, "bench").generator()
    features = draw.random((RECORDS, FEATURES)) < 13 / FEATURES
    labels = (draw.random(RECORDS) < 0.25).astype(np.int64)
    return Examples(features.astype(np.float32), labels, 2)


def turn_of(
    name: str,
    training: NetworkTraining,
    shape: NetworkShape,
    increments: Increments,
    records: Examples,
) -> Callable[[], float]:
    """Return what makes some steps, and returns the CPU seconds of one."""
    network = DenseNetwork.initial(shape, SeededSource(2, "network", name))
    batches = training.batches(records, SeededSource(2, "batches", name))
    going = steps(network, batches, training, increments)

    def turn() -> float:
        start = time.process_time()
        for _ in islice(going, STEPS):
            pass
        return (time.process_time() - start) / STEPS

    return turn


def measure(*, quick: bool = False) -> list[tuple[str, float, float]]:
    """Return the name, the median microseconds and the median ratio of each kind of step."""
    training = NetworkTraining(
        learning_rate=1e-6, epochs=1000
    )  # nothing grows, whatever the noise
    records, shape = examples(), training.shape(FEATURES, 2)
    plain = plain_increments(shape, training.batch)
    turns = {"plain": turn_of("plain", training, shape, plain, records)}
    for name, form in FORMS.items():
        for clamps in (True, False):
            learning = AnonymisedLearning(1.0, training, form, clamps=clamps)
            whole = f"{name}, {'clamped' if clamps else 'not clamped'} after"
            noisy = learning.increments_of(shape, SeededSource(3, "noise", whole))
            turns[whole] = turn_of(whole, training, shape, noisy, records)
    for turn in turns.values():  # warm up
        turn()
    taken: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(QUICK_TURNS if quick else TURNS):
        for name, turn in turns.items():
            taken[name].append(turn())
    return [
        (
            name,
            1e6 * median(times),
            median(one / base for one, base in zip(times, taken["plain"], strict=True)),
        )
        for name, times in taken.items()
    ]


def printed(rows: list[tuple[str, float, float]]) -> str:
    """Return the table."""
    lines = []
    for name, micros, ratio in rows:
        is_plain = name == "plain"
        verdict = "" if is_plain else ("met" if ratio <= TARGET else "missed")
        target = "" if is_plain else f"<= {TARGET}"
        lines.append((name, f"{micros:.0f}", figure(ratio), target, verdict))
    return aligned(("step", "us", "over plain", "target", "verdict"), lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    print(printed(measure(quick=parser.parse_args().quick)))


if __name__ == "__main__":
    main()
