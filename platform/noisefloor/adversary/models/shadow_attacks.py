"""Scores of membership: how much a model's confidence looks like that of one trained on a record.

Each attack takes what shadow models said. Without targets of its own, every model is attacked in
turn with all the others as its shadows, in one pass over the sums. That is for curves; an audit
splits models into shadows and targets, since turns make the scores of two models depend on one
another's memberships.

What shadow runs say together: curves and rates over all models, and an audited epsilon.

The two are not of one kind. A curve pools every record of every model: honest as a description,
but its points are not independent trials, so no binomial limit is put on them; the standard error
reported is that over models. The audited epsilon is a theorem's: some models serve as shadows, the
others are attacked, every draw of theirs is a canary of one joint run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import REPORTED_RATES, RocCurve, one_run_bound
from noisefloor.adversary.models.shadow_runs import Bits, Floats, ShadowRuns
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.privacy import LowerBound

_LEAST_DEVIATION = 1e-6
"""A spread below this is taken for it: some records are fitted alike by all shadows."""


def loss_threshold(runs: ShadowRuns, targets: Floats | None = None) -> Floats:
    """Score memberships by the loss alone, with one threshold for all records.

    Sees:      the model's probability of the true label of each record.
    Knows:     nothing of other models.
    Guesses:   that a record with a small loss was a member.
    Reference: Yeom et al. 2018, arXiv 1709.01604.

    Args:
        runs: The shadows, and the targets too if no others are given.
        targets: Log-odds of other models on the same records.
    """
    odds = runs.log_odds if targets is None else _checked(runs, targets)
    return np.asarray(-np.logaddexp(0.0, -odds))


def lira(
    runs: ShadowRuns,
    targets: Floats | None = None,
    *,
    is_offline: bool = False,
    is_pooled: bool = False,
) -> Floats:
    """Score memberships by the likelihood ratio of each record's own two Gaussians.

    Sees:      the model's log-odds of the true label of each record.
    Knows:     the log-odds of shadow models with and without the record (offline: without).
    Guesses:   membership where the log-ratio is high; offline, where the log-odds lie high among
               those of models without the record, in standard deviations.
    Reference: Carlini et al. 2022, arXiv 2112.03570.

    Args:
        runs: The shadows, and the targets too if no others are given.
        targets: Log-odds of other models on the same records.
        is_offline: Whether no shadow trained on the record is used.
        is_pooled: Whether all records share one variance with and one without: better for few
            shadows, and needs one shadow a side where variances of their own need two.
    """
    odds = runs.log_odds if targets is None else _checked(runs, targets)
    alone = targets is None
    away = _Side(runs, ~runs.members, alone, is_pooled, "without")
    if is_offline:
        return np.asarray((odds - away.mean) / away.deviation)
    inside = _Side(runs, runs.members, alone, is_pooled, "with")
    return inside.log_density(odds) - away.log_density(odds)


def rmia(
    runs: ShadowRuns,
    targets: Floats | None = None,
    *,
    gamma: float = 2.0,
    population: NDArray[np.intp] | None = None,
    offline: float | None = None,
) -> Floats:
    """Score memberships by how many other records a record gains on.

    Sees:      the model's probability of the true label of each record.
    Knows:     the mean probability by shadow models, half with the record and half without
               (offline: without, and a rule of thumb for the rest).
    Guesses:   membership where the record's gain is gamma times that of most of the population.
    Reference: Zarifzadeh, Liu and Shokri 2024, arXiv 2312.03262.

    Args:
        runs: The shadows, and the targets too if no others are given.
        targets: Log-odds of other models on the same records.
        gamma: By how much a record has to gain more than another, at least 1.
        population: The records to compare with; all of them if not given.
        offline: The slope a of the rule P(x) = ((1 + a) P_without + 1 - a) / 2, in [0, 1]; no
            shadow trained on the record is used then.
    """
    if not check_finite(gamma, "gamma") >= 1:
        raise BadParameter("gamma", gamma, ">= 1")
    if offline is not None and not 0 <= check_finite(offline, "offline") <= 1:
        raise BadParameter("offline", offline, "in [0, 1]")
    odds = runs.log_odds if targets is None else _checked(runs, targets)
    gains = np.exp(-np.logaddexp(0.0, -odds)) / _usual(runs, targets is None, offline)
    compared = gains if population is None else gains[:, population]
    if not compared.shape[1]:
        raise BadParameter("population", "<none>", "to hold a record at least")
    scores = np.empty_like(gains)
    for model, (own, others) in enumerate(zip(gains, np.sort(compared, axis=1), strict=True)):
        scores[model] = np.searchsorted(others, own / gamma, side="right")
    return np.asarray(scores / compared.shape[1])


def _usual(runs: ShadowRuns, alone: bool, offline: float | None) -> Floats:
    """Return the probability that a model would give, not knowing whether the record was in."""
    likelihood = np.exp(runs.log_likelihood)
    away = _mean_of_others(likelihood, ~runs.members, alone, "without")
    if offline is not None:
        return ((1 + offline) * away + (1 - offline)) / 2
    return (away + _mean_of_others(likelihood, runs.members, alone, "with")) / 2


def _mean_of_others(values: Floats, chosen: Bits, alone: bool, side: str) -> Floats:
    """Return each record's mean over the chosen models, without the target where it is one."""
    count = chosen.sum(axis=0, keepdims=True) - (chosen if alone else 0)
    _check_enough(count, 1, side)
    kept = np.where(chosen, values, 0.0)
    return np.asarray((kept.sum(axis=0, keepdims=True) - (kept if alone else 0)) / count)


class _Side:
    """Mean and deviation of the log-odds by shadows with the record, or by those without it."""

    def __init__(
        self, runs: ShadowRuns, chosen: Bits, alone: bool, is_pooled: bool, side: str
    ) -> None:
        count = chosen.sum(axis=0, keepdims=True) - (chosen if alone else 0)
        _check_enough(count, 1 if is_pooled else 2, side)
        # Around each record's own mean, so that sums of squares do not cancel.
        centre = runs.log_odds.mean(axis=0, keepdims=True)
        shifted = np.where(chosen, runs.log_odds - centre, 0.0)
        total, squares = (_sum_of_others(some, alone) for some in (shifted, shifted**2))
        within = np.maximum(squares - total**2 / count, 0.0)
        freedom = (count - 1).astype(np.float64)
        if is_pooled:
            within, freedom = (some.sum(axis=1, keepdims=True) for some in (within, freedom))
            if not freedom.min() > 0:
                raise BadParameter("models", runs.models, "more, to tell a variance from")
        self.mean = centre + total / count
        self.deviation = np.maximum(np.sqrt(within / freedom), _LEAST_DEVIATION)

    def log_density(self, odds: Floats) -> Floats:
        """Return the log-density of the Gaussian, up to a constant that all sides share."""
        return np.asarray(
            -(((odds - self.mean) / self.deviation) ** 2) / 2 - np.log(self.deviation)
        )


def _sum_of_others(values: Floats, alone: bool) -> Floats:
    total = values.sum(axis=0, keepdims=True)
    return np.asarray(total - values if alone else total)


def _check_enough(count: NDArray[np.integer], least: int, side: str) -> None:
    """Refuse a record that too few shadows were trained on, or without."""
    if count.min() < least:
        rule = f">= {least} for every record: train more models or leave such records out"
        raise BadParameter(f"shadows {side} the record", int(count.min()), rule)


def _checked(runs: ShadowRuns, targets: Floats) -> Floats:
    """Return the targets' log-odds, models by the same records."""
    if np.ndim(targets) != 2 or targets.shape[1] != runs.records:
        raise BadParameter("targets", np.shape(targets), f"models by {runs.records} records")
    check_count(len(targets), "targets")
    return np.asarray(targets, dtype=np.float64)


Attack: TypeAlias = Callable[[ShadowRuns, Floats | None], Floats]

ATTACKS: dict[str, Attack] = {
    "loss": loss_threshold,
    "lira": lira,
    "lira, offline": lambda runs, targets: lira(runs, targets, is_offline=True),
    "rmia": rmia,
}


@dataclass(frozen=True, slots=True, eq=False)
class MembershipCurve:
    """How well one attack identified members, over all models and records.

    Attributes:
        roc: The curve of all scores together.
        aucs: The area of each model by itself.
    """

    roc: RocCurve
    aucs: Floats

    @property
    def auc_error(self) -> float:
        """The standard error of the mean area, models being what is independent."""
        return float(self.aucs.std(ddof=1) / math.sqrt(len(self.aucs)))

    def as_json(self) -> dict[str, object]:
        """Return the figures as one JSON object; a rate that is not resolved is null."""
        rates = {
            f"tpr_at_{rate:g}": tpr for rate, tpr in self.roc.resolved(REPORTED_RATES).items()
        }
        auc_metrics = {"auc": self.roc.auc, "auc_error": self.auc_error}
        return {**auc_metrics, "advantage": self.roc.advantage, **rates}


def membership_curve(scores: Floats, members: Bits) -> MembershipCurve:
    """Draw the curve of scores, models by records."""
    if np.shape(scores) != np.shape(members):
        raise BadParameter("scores", np.shape(scores), f"of the shape {np.shape(members)}")
    check_count(len(members), "models", least=2)
    aucs = [RocCurve.of(row[own], row[~own]).auc for row, own in zip(scores, members, strict=True)]
    return MembershipCurve(RocCurve.of(scores[members], scores[~members]), np.array(aucs))


def attack_all(runs: ShadowRuns) -> dict[str, MembershipCurve]:
    """Attack every model with all the others as shadows, in every way there is."""
    return {
        name: membership_curve(attack(runs, None), runs.members)
        for name, attack in ATTACKS.items()
    }


def audit_memberships(
    runs: ShadowRuns,
    *,
    alpha: float,
    delta: float = 0.0,
    attack: Attack = lira,
    shadows: int | None = None,
) -> LowerBound:
    """Return a lower bound on the epsilon of one training, from every draw of the targets.

    What is bounded: the training under adding or removing one record, at worst over the records
    it was run on. The shadows' draws are known beforehand, each target's are guessed from its own
    output; so all targets are one run of many canaries.

    Args:
        runs: With memberships by fair draws; anything else is refused.
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


def _shadows(runs: ShadowRuns, shadows: int | None) -> int:
    if not runs.is_fair:
        raise BadParameter("is_fair", False, "True: each membership by a fair coin of its own")
    check_count(runs.models, "models", least=2)
    half = runs.models // 2 if shadows is None else shadows
    return check_count(half, "shadows", most=runs.models - 1)
