"""Membership by shadow models: the adversary trains as the data holder does, by the same code.

A pool of records is dealt out by fair random bits, half to each shadow model. Where a record may
be swapped, records are paired and a random bit decides which of the two is in: so neighbours in
the game are neighbours in the sense of the guarantee, and the bound is the guarantee's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import has_power, one_run_bound
from noisefloor.adversary.models import (
    ShadowRuns,
    fair_members,
    lira,
    loss_threshold,
    membership_curve,
)
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases.canary_audit import ALPHA
from noisefloor_sim.pipelines.releases.roc_metrics import auc_metric, roc_curve_metrics

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]

ShadowRelease: TypeAlias = Callable[[Bits, SeededSource], Floats]
"""Publishes of some records of a pool, and says how sure the model is of each of the pool."""

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
class ShadowModelAttack:
    """Many releases of one plan, from halves of a pool.

    Attributes:
        release: Makes one, of the records that are in it, and returns ln p / (1 - p) of the true
            label of every record of the pool.
        cost: What is claimed of each release.
        proved: What is proved of it.
        pool: How many people's records are known.
        models: How many releases.
        source: Of all random numbers.
    """

    release: ShadowRelease
    cost: Guarantee
    proved: Guarantee
    pool: int
    models: int
    source: SeededSource

    @property
    def is_paired(self) -> bool:
        """Whether one of two records is in, rather than one record or none."""
        return self.cost.neighbours is Neighbours.RECORD_SUBSTITUTE

    def run(self) -> ShadowRuns:
        """Make all releases, and note how sure each is of each record."""
        count = self.pool
        draws = self.source.child("members")
        members = self.members(draws)
        odds = np.empty((self.models, count))
        for number, row in enumerate(members):
            odds[number] = self.release(row, self.source.child("model", number))
        runs = ShadowRuns(members, odds, odds > 0, is_fair=not self.is_paired)
        return _some(runs, _resolved_records(members))

    def members(self, draws: SeededSource) -> Bits:
        """Deal the pool out."""
        if not self.is_paired:
            return fair_members(self.models, self.pool, draws)
        firsts = fair_members(self.models, self.pool // 2, draws)
        return np.stack([firsts, ~firsts], axis=2).reshape(self.models, -1)

    def audit(self, runs: ShadowRuns, *, alpha: float, delta: float) -> LowerBound:
        """Return the epsilon that the second half of the models proves against the first.

        Every random bit of theirs is a canary of one run of many.
        """
        first = self.models // 2
        kept = _resolved_records(runs.members[:first])
        shadows, targets = (_some(part, kept) for part in (runs[:first], runs[first:]))
        scores = lira(shadows, targets.log_odds, is_pooled=True)
        draws = targets.members
        if self.is_paired:
            scores, draws = scores[:, ::2] - scores[:, 1::2], draws[:, ::2]
        return one_run_bound(scores.ravel(), draws.ravel(), alpha=alpha, delta=delta)

    def metrics(self, runs: ShadowRuns) -> list[Metric]:
        """Return what each attack reached, and a null: members by other random bits."""
        found = []
        for name, attack in ATTACKS.items():
            scored = membership_curve(attack(runs), runs.members)
            found += roc_curve_metrics(name, scored, self.proved, self.cost)
        # Random bits of their own, for as many records: they have nothing to do with the models.
        others = self.members(self.source.child("null"))[:, : runs.records]
        member_accuracy, left = runs.accuracy
        half = runs.members.size // 2
        return [
            *found,
            auc_metric("null", membership_curve(ATTACKS["lira"](runs), others)),
            Metric("shadows.accuracy_members", member_accuracy, n=half),
            Metric("shadows.accuracy_others", left, n=half),
            Metric("shadows.records", float(self.pool // 2), n=self.models),
        ]

    def planted_metrics(self, runs: ShadowRuns) -> list[Metric]:
        """Tell what the attack reaches where it has to succeed."""
        return [
            auc_metric("planted", membership_curve(ATTACKS["lira"](runs), runs.members)),
            Metric("attack.planted.accuracy_members", runs.accuracy[0]),
        ]


def play_membership(
    game: ShadowModelAttack, planted: ShadowModelAttack
) -> tuple[list[Metric], Claim]:
    """Attack releases of a plan, and releases without any noise, and state the claim.

    The latter are the planted fault of the audit: an audit that misses it is blind, and so is
    one whose confidence is not far above delta. What it found holds all the same.
    """
    runs, without, delta = game.run(), planted.run(), game.proved.delta
    audited = game.audit(runs, alpha=ALPHA, delta=delta)
    found = planted.audit(without, alpha=ALPHA, delta=delta)
    if not has_power(ALPHA, delta):
        found = replace(found, epsilon=0.0)
    claim = Claim(game.cost, game.proved, audited, planted=found)
    return [*game.metrics(runs), *planted.planted_metrics(without)], claim


def _resolved_records(members: Bits) -> Bits:
    """Return the records that enough models learnt from, and enough did not; the most are.

    By memberships alone. Of a pair the two are always kept together.
    """
    inside = members.sum(axis=0)
    return np.asarray(np.minimum(inside, len(members) - inside) >= _FEWEST_MODELS)


def _some(runs: ShadowRuns, kept: Bits) -> ShadowRuns:
    """Return what is known of some records."""
    correct = None if runs.correct is None else runs.correct[:, kept]
    return ShadowRuns(runs.members[:, kept], runs.log_odds[:, kept], correct, runs.is_fair)
