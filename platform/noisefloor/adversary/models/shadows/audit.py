"""What shadow runs say together: curves and rates over all models, and an audited epsilon.

The two are not of one kind. A curve pools every record of every model: honest as a description,
but its points are not independent trials, so no binomial limit is put on them; the standard error
told is that over models. The audited epsilon is a theorem's: some models serve as shadows, the
others are attacked, every coin of theirs is a canary of one joint run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from noisefloor.adversary.held_out import held_out_bound
from noisefloor.adversary.models.shadows.attacks import lira, loss_threshold, rmia
from noisefloor.adversary.models.shadows.runs import Bits, Floats, ShadowRuns
from noisefloor.adversary.one_run import one_run_bound
from noisefloor.adversary.roc import RATES, Roc
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound

Attack: TypeAlias = Callable[[ShadowRuns, Floats | None], Floats]

ATTACKS: dict[str, Attack] = {
    "loss": loss_threshold,
    "lira": lira,
    "lira, offline": lambda runs, targets: lira(runs, targets, is_offline=True),
    "rmia": rmia,
}


@dataclass(frozen=True, slots=True, eq=False)
class Attacked:
    """How well one attack told members, over all models and records.

    Attributes:
        roc: The curve of all scores together.
        aucs: The area of each model by itself.
    """

    roc: Roc
    aucs: Floats

    @property
    def auc_error(self) -> float:
        """The standard error of the mean area, models being what is independent."""
        return float(self.aucs.std(ddof=1) / math.sqrt(len(self.aucs)))

    def as_json(self) -> dict[str, object]:
        """Return the figures as one JSON object; a rate that is not resolved is null."""
        rates = {f"tpr_at_{rate:g}": tpr for rate, tpr in self.roc.resolved(RATES).items()}
        areas = {"auc": self.roc.auc, "auc_error": self.auc_error}
        return {**areas, "advantage": self.roc.advantage, **rates}


def attacked(scores: Floats, members: Bits) -> Attacked:
    """Draw the curve of scores, models by records."""
    if np.shape(scores) != np.shape(members):
        raise BadParameter("scores", np.shape(scores), f"of the shape {np.shape(members)}")
    check_count(len(members), "models", least=2)
    aucs = [Roc.of(row[own], row[~own]).auc for row, own in zip(scores, members, strict=True)]
    return Attacked(Roc.of(scores[members], scores[~members]), np.array(aucs))


def attack_all(runs: ShadowRuns) -> dict[str, Attacked]:
    """Attack every model with all the others as shadows, in every way there is."""
    return {name: attacked(attack(runs, None), runs.members) for name, attack in ATTACKS.items()}


def audit_coins(
    runs: ShadowRuns,
    *,
    alpha: float,
    delta: float = 0.0,
    attack: Attack = lira,
    shadows: int | None = None,
) -> LowerBound:
    """Return a lower bound on the epsilon of one training, from every coin of the targets.

    What is bounded: the training under adding or removing one record, at worst over the records
    it was run on. The shadows' coins are known beforehand, each target's are guessed from its own
    output; so all targets are one run of many canaries.

    Args:
        runs: With memberships by fair coins; anything else is refused.
        alpha: The probability that the bound is wrong.
        delta: Audits (epsilon, delta) at this delta. The price is 2 delta for each canary, over
            all targets: where that is near 1, nothing can be proved.
        attack: Scores the targets from the shadows.
        shadows: How many models serve as shadows; half of them if not given.
    """
    first = _shadows(runs, shadows)
    targets = runs[first:]
    scores = attack(runs[:first], targets.log_odds)
    members = targets.members
    return one_run_bound(scores.ravel(), members.ravel(), alpha=alpha, delta=delta)


def audit_record(
    runs: ShadowRuns,
    record: int,
    *,
    alpha: float,
    delta: float = 0.0,
    attack: Attack = lira,
    shadows: int | None = None,
) -> LowerBound:
    """Return a lower bound on epsilon from one record alone: each target is one game.

    Targets are independent runs, in which a fair coin decided about the record; that the other
    records differ from run to run can only hide it. The record has to be chosen beforehand.
    """
    check_count(record, "record", least=0, most=runs.records - 1)
    first = _shadows(runs, shadows)
    targets = runs[first:]
    scores = attack(runs[:first], targets.log_odds)[:, record]
    own = targets.members[:, record]
    return held_out_bound(scores[own], scores[~own], alpha=alpha, delta=delta)


def _shadows(runs: ShadowRuns, shadows: int | None) -> int:
    if not runs.is_fair:
        raise BadParameter("is_fair", False, "True: each membership by a fair coin of its own")
    check_count(runs.models, "models", least=2)
    half = runs.models // 2 if shadows is None else shadows
    return check_count(half, "shadows", most=runs.models - 1)
