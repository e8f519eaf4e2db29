"""Which batches, step and clip LDP-SGD is given: chosen on tables that judge nothing.

For each mechanism, epsilon and size of table (below ``FEW`` owners, or not) the setting of the
best mean accuracy is taken, over the families of ``bench/choosing_tables.py`` without that of
Adult, which judges. The search doubles and halves one of the three figures at a time, until that
gains nothing. Averaging the weights over the steps was tried as well, and lost two points.
``python bench/gradient_settings.py`` prints the table that stands below as ``SETTINGS``.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

# `python bench/gradient_settings.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.private_gradients import (
    Descent,
    PrivUnit,
    SampledHybrid,
    VectorMechanism,
    fit_gradients,
    width_of,
)

from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables.scaled_records import ScaledRecords, ScaledSchema

MECHANISMS: dict[str, Callable[[int, float], VectorMechanism]] = {
    "PrivUnit": PrivUnit,
    "hybrid": SampledHybrid,
}
FEW = 1500
"""Owners below which a table counts as small."""

START = Descent(16, 4.0, 0.25)
EPSILONS, SEEDS = (1.0, 2.0, 5.0, 10.0), 3

SETTINGS: dict[tuple[str, bool, float], Descent] = {
    ("PrivUnit", True, 1.0): Descent(16, 2.0, 0.125),  # 65.0
    ("PrivUnit", True, 2.0): Descent(8, 2.0, 0.25),  # 71.1
    ("PrivUnit", True, 5.0): Descent(16, 4.0, 0.25),  # 79.4
    ("PrivUnit", True, 10.0): Descent(32, 4.0, 0.25),  # 82.5
    ("PrivUnit", False, 1.0): Descent(4, 8.0, 0.25),  # 74.3
    ("PrivUnit", False, 2.0): Descent(64, 4.0, 0.25),  # 78.5
    ("PrivUnit", False, 5.0): Descent(32, 8.0, 0.25),  # 82.6
    ("PrivUnit", False, 10.0): Descent(16, 16.0, 0.25),  # 83.9
    ("hybrid", True, 1.0): Descent(16, 8.0, 0.125),  # 63.3
    ("hybrid", True, 2.0): Descent(8, 4.0, 0.25),  # 69.6
    ("hybrid", True, 5.0): Descent(32, 8.0, 0.25),  # 74.7
    ("hybrid", True, 10.0): Descent(16, 8.0, 0.25),  # 78.9
    ("hybrid", False, 1.0): Descent(32, 2.0, 0.25),  # 71.0
    ("hybrid", False, 2.0): Descent(16, 8.0, 0.25),  # 76.3
    ("hybrid", False, 5.0): Descent(32, 16.0, 0.25),  # 79.9
    ("hybrid", False, 10.0): Descent(16, 8.0, 0.5),  # 81.8
}
"""By mechanism, whether owners are few, and epsilon; behind them the accuracy that chose them."""


@lru_cache(maxsize=256)
def mechanism_of(name: str, dimension: int, epsilon: float) -> VectorMechanism:
    """Return a mechanism; its parameters take a search, so it is kept."""
    return MECHANISMS[name](dimension, epsilon)


def descent_of(name: str, owners: int, epsilon: float) -> Descent:
    """Return the setting for a number of owners, at the nearest epsilon that was tried."""
    nearest = min(EPSILONS, key=lambda one: abs(one - epsilon))
    return SETTINGS[name, owners < FEW, nearest]


class ChoosingSplit(NamedTuple):
    """One table, at one seed or with one part left out."""

    family: str
    schema: ScaledSchema
    train: ScaledRecords
    test: ScaledRecords
    path: tuple[str, int, int, int]


@cache
def _splits(*, few: bool) -> list[ChoosingSplit]:
    """Return the tables to choose on, drawn once."""
    from bench.choosing_tables import choosing_tables  # lazy: only for choosing

    return [
        ChoosingSplit(table.family, *fold, (table.family, table.owners, seed, place))
        for table in choosing_tables()
        if table.family != "adult" and (table.owners < FEW) == few
        for seed in range(1 if table.is_real else SEEDS)
        for place, fold in enumerate(table.folds(seed))
    ]


def _accuracy(name: str, epsilon: float, descent: Descent, *, few: bool) -> float:
    """Return the mean over families of the mean accuracy, in per cent."""
    found: dict[str, list[float]] = {}
    for family, schema, train, test, path in _splits(few=few):
        mechanism = mechanism_of(name, width_of(schema), epsilon)
        source = SeededSource(1, "descent", name, f"{epsilon:g}", *path)
        labels = train.labels.astype(np.int64)
        model = fit_gradients(mechanism, descent, schema, train.values, labels, source)
        right = np.mean(model.predict(test.values) == test.labels)
        found.setdefault(family, []).append(100 * float(right))
    return float(np.mean([np.mean(one) for one in found.values()]))


def choose(name: str, epsilon: float, *, few: bool) -> tuple[Descent, float]:
    """Return the best setting and its accuracy: no neighbour in any of the three is better."""
    tried: dict[Descent, float] = {}

    def score(one: Descent) -> float:
        if one not in tried:
            with new_run():  # every setting meets the same draws
                tried[one] = _accuracy(name, epsilon, one, few=few)
        return tried[one]

    best = START
    while True:
        after = max([best, *_neighbours(best)], key=score)
        if after == best:
            return best, tried[best]
        best = after


def _neighbours(one: Descent) -> Iterator[Descent]:
    """Yield each figure doubled and halved by itself."""
    for factor in (2, 0.5):
        if one.batches * factor >= 1:
            yield replace(one, batches=int(one.batches * factor))
        yield replace(one, step=one.step * factor)
        yield replace(one, clip=one.clip * factor)


def lines() -> Iterator[str]:
    """Yield the lines of ``SETTINGS``."""
    for name, few, epsilon in product(MECHANISMS, (True, False), EPSILONS):
        best, accuracy = choose(name, epsilon, few=few)
        values = f"{best.batches}, {best.step}, {best.clip}"
        yield f'    ("{name}", {few}, {epsilon}): Descent({values}),  # {accuracy:.1f}'


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
