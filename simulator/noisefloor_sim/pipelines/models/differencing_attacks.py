"""Differencing: what two releases tell of a record that came in between.

Noisy tables have an exact law: which record is missing, and who came between two releases?
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success
from noisefloor.adversary.releases import (
    CellNoiseDistribution,
    WeeklyRelease,
    area_margin,
    area_under_curve,
    as_substitution,
    blind_game,
    candidate_bound,
    newcomer_game,
)
from noisefloor.privacy import Guarantee
from noisefloor.publication import CellNoise, PublishedModel, methods
from noisefloor.randomness import SeededSource
from noisefloor.tables import Records
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.models.evaluation import log_odds
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.releases import Release
from noisefloor_sim.pipelines.scoring import attack_metrics

_GAMES = 400

TABLE_GAMES = ("missing_record", "difference")
"""Which are played on noisy tables."""


def attack_tables(
    plan: methods.ModelPlan, candidates: Records, source: SeededSource, played: Sequence[str]
) -> list[Metric]:
    """Name the record among candidates, from the counts of each column with the label.

    Once all other records are known, and once, from two releases, none of them: then the counts
    of one week are taken from those of the next. Other counts that are released tell more; these
    are a part of the release, so its guarantee bounds what they tell.

    Args:
        plan: Of one release.
        candidates: One of them is the record.
        source: Of all random numbers.
        played: Which of the two games; for the difference there has to be a second release.
    """
    if not isinstance(plan, methods.AnonymisingFirstPlan | methods.SyntheticTablePlan):
        return []
    week, shifts = _week(plan), _shifts(plan.tables, candidates)
    makers = dict(zip(TABLE_GAMES, (newcomer_game, blind_game), strict=True))
    games = {name: makers[name](shifts, (week, week)) for name in played}
    claimed = candidate_bound(as_substitution(plan.spec.cost), np.ones(1) / len(shifts))
    metrics = []
    for name, game in games.items():
        outcome = game.play(_GAMES, source.child(name))
        metrics += attack_metrics(name, outcome)
        metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))
    return metrics


def last_records(pool: Records, count: int) -> Records:
    """Return the last records of a pool."""
    return pool[np.arange(pool.count - count, pool.count)]


def _week(plan: methods.AnonymisingFirstPlan | methods.SyntheticTablePlan) -> WeeklyRelease:
    """Return law and guarantee of the counts of each column with the label, or of all cells."""
    tables = plan.tables
    noise = tables.tables.budget.noises[next(iter(tables.changes))]
    # It adds noise to integers and tells its likelihood: that is all that is asked of it.
    return WeeklyRelease(CellNoiseDistribution(cast("CellNoise", noise)), plan.proved)


def _shifts(tables: methods.PrivateTables, candidates: Records) -> NDArray[np.int64]:
    """Return what each candidate adds to the cells that any of them lies in."""
    encoding = tables.encoding
    values = np.column_stack([encoding.codes(candidates), candidates.codes[encoding.label]])
    if tables.kind == "cells":
        cells = [values]
    else:
        cells = [values[:, [place, -1]] for place in range(values.shape[1] - 1)]
    parts = []
    for rows in cells:
        kinds, place = np.unique(rows, axis=0, return_inverse=True)
        parts.append(np.eye(len(kinds), dtype=np.int64)[place.reshape(-1)])
    return np.concatenate(parts, axis=1)


FEWEST = 20
"""People on either side, below which nothing is reported."""

Scores = NDArray[np.float64]


def attack_newcomers(
    releases: Sequence[Release[methods.ModelPlan]],
    models: Sequence[PublishedModel],
    assignment: UserRecordAssignment,
) -> list[Metric]:
    """Tell who came between two releases from those who never did.

    Sees:      two releases, one after the other.
    Knows:     the record of the target, label included; no other record.
    Guesses:   that whose label the later model tells more surely than the earlier one came in
               between; beside it, the same by the later model alone.
    Reference: Yeom et al. 2018, arXiv 1709.01604, for the loss; the difference is taken here.

    A newcomer and somebody who never came change places by one substitution in the later release,
    so its guarantee bounds the area under the curve.
    """
    apart: list[tuple[Scores, Scores]] = []
    alone: list[tuple[Scores, Scores]] = []
    for (before, after), (earlier, later) in zip(
        pairwise(releases), pairwise(models), strict=True
    ):
        came = after.owners & ~before.owners
        if np.count_nonzero(came) < FEWEST or np.count_nonzero(assignment.is_test) < FEWEST:
            continue
        sides = [assignment.records[some] for some in (came, assignment.is_test)]
        now = [log_odds(later, side) for side in sides]
        then = [log_odds(earlier, side) for side in sides]
        apart.append((now[0] - then[0], now[1] - then[1]))
        alone.append((now[0], now[1]))
    if not apart:
        return []
    last = releases[-1].plan
    proved, claimed = as_substitution(last.proved), as_substitution(last.spec.cost)
    n = sum(len(came) for came, _ in apart)
    area, low, high = _area(apart)
    return [
        Metric("attack.newcomer.auc", area, low, high, n),
        Metric("attack.newcomer.auc_bound", _success(proved), n=n),
        Metric("attack.newcomer.claimed_auc", _success(claimed), n=n),
        Metric("attack.newcomer_alone.auc", *_area(alone), n),
        Metric("attack.newcomer.records", n / len(apart), n=n),
    ]


def _success(guarantee: Guarantee) -> float:
    return float(binary_success(guarantee.epsilon, guarantee.delta))


def _area(sides: Sequence[tuple[Scores, Scores]]) -> tuple[float, float, float]:
    """Return the mean area over pairs of releases, and the ends of its interval."""
    aucs = [area_under_curve(*one) for one in sides]
    came = sum(len(one) for one, _ in sides)
    margin = area_margin(came, min(len(one) for _, one in sides))
    area = float(np.mean(aucs))
    return area, max(0.0, area - margin), min(1.0, area + margin)
