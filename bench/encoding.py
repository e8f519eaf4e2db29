"""CPU-seconds to protect records: encoding and response, against numpy written out plainly.

A million records of 30 numbers: each value becomes one of L classes, and each class is answered by
k-ary randomised response; then the joint response, one symbol for K attributes and the label. The
baseline is what one would write without this project: ``digitize``, a uniform float for the
choice to lie, an integer modulo for the lie. One thread, best of the repeats taken in turns;
imports and inputs are not timed. It reports; it does not fail on a missed target.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# `python bench/encoding.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned
from bench.worker import ROOT

from noisefloor.collection.collecting.collectors import JointCollector, UnifiedCollector
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import Continuous, Label, ScaledRecords, ScaledSchema

RECORDS, QUICK_RECORDS, ATTRIBUTES, CLASSES, EPSILON = 1_000_000, 100_000, 30, 5, 5.0
REPEATS, CHOSEN = 5, 4
TARGET = 3.0
"""CPU-seconds for a million records of 30 attributes."""

SCHEMA = ScaledSchema(
    tuple(Continuous(f"x{place}", 0.0, 1.0) for place in range(ATTRIBUTES)), Label("y", "0", "1")
)


def _records(count: int) -> ScaledRecords:
    generator = SeededSource(1, "bench", "records").generator()
    values = generator.uniform(-1.0, 1.0, (count, ATTRIBUTES))
    return ScaledRecords(values, generator.random(count) < 0.5)


def _plain(records: ScaledRecords) -> object:
    """Protect all attributes and the label with numpy alone."""
    generator = SeededSource(1, "bench", "plain").generator()
    edges = np.linspace(-1.0, 1.0, CLASSES + 1)[1:-1]
    codes = np.digitize(records.values, edges)
    share = math.exp(EPSILON / (ATTRIBUTES + 1))
    keeps = generator.random(codes.shape) < share / (share + CLASSES - 1)
    lies = (codes + generator.integers(1, CLASSES, codes.shape)) % CLASSES
    labels = records.labels == (generator.random(len(records)) < share / (share + 1))
    return np.where(keeps, codes, lies), labels


def measure(*, quick: bool) -> list[dict[str, float | str]]:
    """Return the least CPU-seconds of each way, by name."""
    records, classes = _records(QUICK_RECORDS if quick else RECORDS), Discretiser(SCHEMA, CLASSES)
    everything, few = range(ATTRIBUTES), range(CHOSEN)
    unified, joint = UnifiedCollector(classes, EPSILON), JointCollector(classes, EPSILON)
    ways: dict[str, Callable[[int], object]] = {
        "plain numpy": lambda _: _plain(records),
        "unified response, 30 attributes": lambda turn: unified.report(
            records, everything, SeededSource(2, "unified", turn)
        ),
        f"joint response, {CHOSEN} attributes": lambda turn: joint.report(
            records, few, SeededSource(2, "joint", turn)
        ),
    }
    best = dict.fromkeys(ways, math.inf)
    for turn in range(REPEATS):
        for name, way in ways.items():
            start = time.process_time()
            way(turn)
            best[name] = min(best[name], time.process_time() - start)
    baseline = best["plain numpy"]
    return [{"way": name, "cpu_s": s, "times_plain": s / baseline} for name, s in best.items()]


def printed(rows: list[dict[str, float | str]]) -> str:
    """Return the table."""
    cells = [[str(r["way"]), f"{r['cpu_s']:.2f}", f"{r['times_plain']:.2f}"] for r in rows]
    return aligned(["way", "CPU-s", "of plain numpy"], cells)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/encoding.json")
    given = parser.parse_args()
    rows = measure(quick=given.quick)
    print(f"{printed(rows)}\nTarget for a million records: {TARGET:g} CPU-s")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"quick": given.quick, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
