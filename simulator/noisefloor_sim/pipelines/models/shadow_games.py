"""Membership by shadow models: the adversary trains as the data holder does, by the same code.

A pool of records is dealt out by fair coins, half to each shadow model. Where a record may be
swapped, records are paired and a coin says which of the two is in: so neighbours in the game are
neighbours in the sense of the guarantee, and the bound is the guarantee's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.models.shadows import (
    ShadowRuns,
    attacked,
    fair_members,
    lira,
    loss_threshold,
)
from noisefloor.adversary.one_run import one_run_bound
from noisefloor.privacy import LowerBound, Neighbours
from noisefloor.publication.model_methods import ModelPlan
from noisefloor.publication.records import Records
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.models.areas import area_metric, area_metrics
from noisefloor_sim.pipelines.models.reading import log_odds, model_of

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]

_FEWEST_MODELS = 2
"""With a record, and without it: fewer do not tell what membership looks like."""


def pooled_lira(runs: ShadowRuns) -> Floats:
    """Score memberships by LiRA with one variance for all records: better for few shadows."""
    return lira(runs, is_pooled=True)


ATTACKS: Mapping[str, Callable[[ShadowRuns], Floats]] = {
    "loss": loss_threshold,
    "lira": pooled_lira,
}
"""By the names of their metrics."""


@dataclass(frozen=True, slots=True, eq=False)
class ShadowGame:
    """Many releases of one plan, from halves of a pool.

    Attributes:
        plan: Of each release; its size is half of the pool.
        pool: Records of known people.
        models: How many releases.
        source: Of all coins.
    """

    plan: ModelPlan
    pool: Records
    models: int
    source: SeededSource

    @property
    def is_paired(self) -> bool:
        """Whether one of two records is in, rather than one record or none."""
        return self.plan.wanted.cost.neighbours is Neighbours.RECORD_SUBSTITUTE

    def run(self) -> ShadowRuns:
        """Make all releases, and note how sure each is of each record."""
        count = self.pool.count
        coins = self.source.child("members")
        members = self.members(coins)
        odds = np.empty((self.models, count))
        for number, row in enumerate(members):
            own = self.source.child("model", number)
            content = self.plan.release(self.pool[row], own.child("release"))
            model = model_of(self.plan.NAME, content, own.child("recipient"))
            odds[number] = log_odds(model, self.pool)
        runs = ShadowRuns(members, odds, odds > 0, is_fair=not self.is_paired)
        return _some(runs, _told_by(members))

    def members(self, coins: SeededSource) -> Bits:
        """Deal the pool out."""
        if not self.is_paired:
            return fair_members(self.models, self.pool.count, coins)
        firsts = fair_members(self.models, self.pool.count // 2, coins)
        return np.stack([firsts, ~firsts], axis=2).reshape(self.models, -1)

    def audit(self, runs: ShadowRuns, *, alpha: float, delta: float) -> LowerBound:
        """Return the epsilon that the second half of the models proves against the first.

        Every coin of theirs is a canary of one run of many.
        """
        first = self.models // 2
        kept = _told_by(runs.members[:first])
        shadows, targets = (_some(part, kept) for part in (runs[:first], runs[first:]))
        scores = lira(shadows, targets.log_odds, is_pooled=True)
        coins = targets.members
        if self.is_paired:
            scores, coins = scores[:, ::2] - scores[:, 1::2], coins[:, ::2]
        return one_run_bound(scores.ravel(), coins.ravel(), alpha=alpha, delta=delta)

    def metrics(self, runs: ShadowRuns) -> list[Metric]:
        """Tell what each attack reached, and what it makes of members by other coins: nothing."""
        found = []
        for name, attack in ATTACKS.items():
            told = attacked(attack(runs), runs.members)
            found += area_metrics(name, told, self.plan.proved, self.plan.wanted.cost)
        # Coins of their own, for as many records: they have nothing to do with the models.
        others = self.members(self.source.child("null"))[:, : runs.records]
        learnt, left = runs.accuracy
        half = runs.members.size // 2
        return [
            *found,
            area_metric("null", attacked(ATTACKS["lira"](runs), others)),
            Metric("shadows.accuracy_members", learnt, n=half),
            Metric("shadows.accuracy_others", left, n=half),
            Metric("shadows.records", float(self.pool.count // 2), n=self.models),
        ]

    def planted_metrics(self) -> list[Metric]:
        """Tell what the attack reaches where it has to succeed."""
        runs = self.run()
        return [
            area_metric("planted", attacked(ATTACKS["lira"](runs), runs.members)),
            Metric("attack.planted.accuracy_members", runs.accuracy[0]),
        ]


def _told_by(members: Bits) -> Bits:
    """Return the records that enough models learnt from, and enough did not; the most are.

    By memberships alone. Of a pair the two are always kept together.
    """
    inside = members.sum(axis=0)
    return np.asarray(np.minimum(inside, len(members) - inside) >= _FEWEST_MODELS)


def _some(runs: ShadowRuns, kept: Bits) -> ShadowRuns:
    """Return what is known of some records."""
    correct = None if runs.correct is None else runs.correct[:, kept]
    return ShadowRuns(runs.members[:, kept], runs.log_odds[:, kept], correct, runs.is_fair)
