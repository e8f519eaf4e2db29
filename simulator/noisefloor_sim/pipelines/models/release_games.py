"""Attacks on the last release itself: a missing value, and nearness to synthetic records."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.likelihood import Guess
from noisefloor.adversary.releases.attribute_inference import (
    attack_attribute,
    guess_by_confidence,
    population_prior,
)
from noisefloor.adversary.releases.hamming import Codes
from noisefloor.adversary.releases.nearest_records import attack_nearest
from noisefloor.publication.published_model import PublishedModel
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.models.held import Holdings
from noisefloor_sim.pipelines.models.holder import Release
from noisefloor_sim.pipelines.models.reading import table_of

FEWEST = 60
"""People who are left out, a third of whom the adversary knows beforehand."""

_MOST = 2_000
"""People on either side."""


def attack_missing_value(
    release: Release, model: PublishedModel, holdings: Holdings
) -> list[Metric]:
    """Guess the first column of people whose other columns and label are known.

    How much more often it is right of members than of people who were left out is what the
    release gives away; the rest is what a model is for.
    """
    others = np.flatnonzero(holdings.is_test)
    if len(others) < FEWEST:
        return []
    known, rest = others[: len(others) // 3], others[len(others) // 3 :][:_MOST]
    encoding = model.encoding
    members, targets, sample = (
        _rows(holdings, model, some)
        for some in (np.flatnonzero(release.owners)[:_MOST], rest, known)
    )

    def confidence(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        logits = model.logits(encoding.features(rows[:, :-1])).astype(np.float64)
        logits -= np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return np.asarray(np.exp(logits[np.arange(len(rows)), rows[:, -1]]))

    def guesser(rows: NDArray[np.int64]) -> Guess:
        prior = population_prior(sample, rows, 0, encoding.sizes[0])
        return guess_by_confidence(confidence, rows, 0, prior)

    found = attack_attribute(guesser, members, targets, 0, release.plan.proved)
    n = found.members.n + found.others.n
    return [
        Metric("attack.missing_value.advantage", found.advantage, *found.interval, n),
        Metric("attack.missing_value.advantage_bound", found.bound, n=n),
        Metric("attack.missing_value.members", found.members.success, n=found.members.n),
        Metric("attack.missing_value.others", found.others.success, n=found.others.n),
    ]


def attack_synthetic(release: Release, holdings: Holdings) -> list[Metric]:
    """Tell members by how near the nearest synthetic record is; beside it, copied records."""
    encoding, table, labels = table_of(release.content)
    rows = np.column_stack([table, labels])
    sides = []
    for some in (release.owners, holdings.is_test):
        records = holdings.records[np.flatnonzero(some)[:_MOST]]
        sides.append(np.column_stack([encoding.codes(records), records.codes[encoding.label]]))
    found = attack_nearest(sides[0], sides[1], rows[:_MOST], release.plan.proved)
    copied = attack_nearest(sides[0], sides[1], sides[0], release.plan.proved)
    n = len(sides[0]) + len(sides[1])
    return [
        Metric("attack.nearest.auc", found.area, *found.interval, n),
        Metric("attack.nearest.auc_bound", found.bound, n=n),
        Metric("attack.nearest.distance_members", found.distance, n=len(sides[0])),
        Metric("attack.nearest.distance_others", found.other_distance, n=len(sides[1])),
        Metric("attack.planted.nearest_auc", copied.area, *copied.interval, n),
    ]


def _rows(holdings: Holdings, model: PublishedModel, users: NDArray[np.int64]) -> Codes:
    """Return the places of some users' values, the label last."""
    records = holdings.records[users]
    encoding = model.encoding
    return np.column_stack([encoding.codes(records), records.codes[encoding.label]])
