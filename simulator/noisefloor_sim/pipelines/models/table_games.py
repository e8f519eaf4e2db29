"""Noisy tables have an exact law: which record is missing, and who came between two releases?"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.releases.bounds import as_substitution, candidate_bound
from noisefloor.adversary.releases.differencing import Week, blind_game, newcomer_game
from noisefloor.adversary.releases.informed import InformedGame
from noisefloor.adversary.releases.released_laws import CellLaw
from noisefloor.publication.cell_noise import CellNoise
from noisefloor.publication.model_methods import ModelPlan
from noisefloor.publication.model_methods.anonymising_first import (
    AnonymisingFirstPlan,
    SyntheticTablePlan,
)
from noisefloor.publication.model_methods.private_tables import PrivateTables
from noisefloor.publication.records import Records
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.attack_metrics import attack_metrics
from noisefloor_sim.pipelines.base import Metric

_GAMES = 400


def attack_tables(
    plan: ModelPlan, candidates: Records, source: SeededSource, *, has_weeks: bool
) -> list[Metric]:
    """Name the record among candidates, from the counts of each column with the label.

    Once all other records are known, and once, from two releases, none of them: then the counts
    of one week are taken from those of the next. Other counts that are released tell more; these
    are a part of the release, so its guarantee bounds what they tell.

    Args:
        plan: Of one release.
        candidates: One of them is the record.
        source: Of all coins.
        has_weeks: Whether there is a second release.
    """
    if not isinstance(plan, AnonymisingFirstPlan | SyntheticTablePlan):
        return []
    week, shifts = _week(plan), _shifts(plan.tables, candidates)
    games: dict[str, InformedGame] = {"missing_record": newcomer_game(shifts, (week, week))}
    if has_weeks:
        games["difference"] = blind_game(shifts, (week, week))
    claimed = candidate_bound(as_substitution(plan.wanted.cost), np.ones(1) / len(shifts))
    metrics = []
    for name, game in games.items():
        outcome = game.play(_GAMES, source.child(name))
        metrics += attack_metrics(name, outcome)
        metrics.append(Metric(f"attack.{name}.claimed_bound", claimed, n=outcome.n))
    return metrics


def last_records(pool: Records, count: int) -> Records:
    """Return the last records of a pool."""
    return pool[np.arange(pool.count - count, pool.count)]


def _week(plan: AnonymisingFirstPlan | SyntheticTablePlan) -> Week:
    """Return law and guarantee of the counts of each column with the label, or of all cells."""
    tables = plan.tables
    noise = tables.tables.budget.noises[next(iter(tables.changes))]
    # It adds noise to integers and tells its likelihood: that is all that is asked of it.
    return Week(CellLaw(cast("CellNoise", noise)), plan.proved)


def _shifts(tables: PrivateTables, candidates: Records) -> NDArray[np.int64]:
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
