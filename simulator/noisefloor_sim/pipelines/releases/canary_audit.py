"""Canaries: what one record can change at most, put through the noise of the plans themselves.

Played on one release, on all releases of somebody who was there from the start, on nothing (both
inputs the same: the null), and on a fault that was planted: noise for one parameter where all are
published, or a publisher that draws anew at each retry, so that one charge gives several draws.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success, sequential
from noisefloor.adversary.audit import AttackOutcome, held_out_bound
from noisefloor.adversary.models import PLANTED_SHARE, audit_gaussian, membership_curve
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.publication.methods import Canary, CanaryBounds, GaussianCanary
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases.release_plan import AnyPlan
from noisefloor_sim.pipelines.releases.roc_metrics import roc_curve_metrics
from noisefloor_sim.pipelines.scoring import attack_metrics

ALPHA = 1e-5
"""The probability that an audited bound is wrong."""

_MOST_WORK = 3_000_000
"""Random numbers or so, on each input of one game."""

_FEWEST_GAMES, _PLANTED_GAMES, _FEWEST_DRAWS, _MOST_DRAWS = 400, 1_000, 4, 64
_PARTS = 8
"""Into which games are cut to tell an interval of the area."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GameScores:
    """Log-likelihood ratios of games on two inputs."""

    first: Scores
    second: Scores

    @property
    def outcome(self) -> tuple[int, int]:
        """How many guesses by the sign were right, and of how many."""
        right = np.count_nonzero(self.first > 0) + np.count_nonzero(self.second <= 0)
        return int(right), len(self.first) + len(self.second)

    def audited(self, delta: float) -> LowerBound:
        """Return the epsilon that the games prove."""
        return held_out_bound(self.first, self.second, alpha=ALPHA, delta=delta)


@dataclass(frozen=True, slots=True, eq=False)
class CanaryAudit:
    """What the canaries of the releases of one data set gave.

    Attributes:
        plans: Of the releases, in their order.
        one: Games on the first release.
        every: Games on all releases together, by somebody who is in all of them.
        null: Games on one input twice.
        planted: Games on a fault.
        draws: How many draws were had for one charge in it.
        release: What is audited of the first release, beside a null and noise a quarter too
            small: by the trade-off curve where noise is Gaussian, else by the games on it.
    """

    plans: Sequence[AnyPlan]
    one: GameScores
    every: GameScores
    null: GameScores
    planted: GameScores
    draws: int
    release: CanaryBounds

    @classmethod
    def play(
        cls,
        plans: Sequence[AnyPlan],
        faulty: AnyPlan | None,
        games: int,
        source: SeededSource,
    ) -> "CanaryAudit | None":
        """Play all games, or none where the method has no canary.

        Args:
            plans: Of the releases.
            faulty: A plan whose noise is too small for what it claims; without one, the first
                plan is drawn from again and again.
            games: On each input, if they are not too long.
            source: Of all random numbers.
        """
        first = plans[0].canary
        if first is None:
            return None
        count = games_of(first, games)
        weeks = [
            _played(plan, count, source.child("week", number)) for number, plan in enumerate(plans)
        ]
        null = [_played(plans[0], count, source.child("null", at)).second for at in range(2)]
        tried = min(count, _PLANTED_GAMES)
        draws = 1 if faulty else _draws(plans[0].spec.cost, first.work * tried)
        planted = [
            _played(faulty or plans[0], tried, source.child("planted", at)) for at in range(draws)
        ]
        twice, delta = GameScores(*null), plans[0].proved.delta
        if isinstance(first, GaussianCanary):
            release = audit_gaussian(first, delta, source.child("curve"), most_work=_MOST_WORK)
        else:
            weak = GameScores(*first.with_noise(PLANTED_SHARE).scores(count, source.child("weak")))
            one, null_bound, planted_bound = (
                played.audited(delta) for played in (weeks[0], twice, weak)
            )
            release = CanaryBounds(one, null_bound, planted_bound, PLANTED_SHARE, count)
        return cls(plans, weeks[0], _sum(weeks), twice, _sum(planted), draws, release)

    @property
    def proved(self) -> Guarantee:
        """What is proved of all releases, by adding up."""
        return sequential([plan.proved for plan in self.plans])

    def metrics(self) -> list[Metric]:
        """Tell success, area and audited epsilon of each game."""
        proved, claimed = self.plans[0].proved, self.plans[0].spec.cost
        delta = claimed.delta
        one, null, planted = self.release.audited, self.release.null, self.planted.audited(delta)
        return [
            *_game_metrics("canary", self.one, one, proved, claimed, closed_form(self.plans[0])),
            *(self._together() if len(self.plans) > 1 else ()),
            *attack_metrics("null", AttackOutcome(*self.null.outcome, 0.5, 0.5, is_covered=False)),
            Metric("attack.null.audited", null.epsilon, n=null.trials),
            *attack_metrics(
                "planted", AttackOutcome(*self.planted.outcome, 0.5, _success(claimed))
            ),
            Metric("attack.planted.audited", planted.epsilon, n=len(self.planted.first)),
            Metric("attack.planted.draws", float(self.draws)),
            *_excess(planted, claimed),
        ]

    def _together(self) -> list[Metric]:
        """Tell what all releases give away of somebody who is in all of them."""
        claimed = sequential([plan.spec.cost for plan in self.plans])
        audited = self.every.audited(self.proved.delta)
        return _game_metrics("stayer", self.every, audited, self.proved, claimed)


def games_of(canary: Canary, requested: int) -> int:
    """Return how many games on each input are played: fewer where one is long."""
    return min(requested, max(_FEWEST_GAMES, _MOST_WORK // canary.work))


def closed_form(plan: AnyPlan) -> float | None:
    """Return how often a canary is distinguished, where all of its noise is Gaussian."""
    from noisefloor.publication.methods import GradientCanary, NormalCanary

    canary = plan.canary
    if isinstance(canary, NormalCanary):
        apart = 2.0 if plan.spec.cost.neighbours.value.endswith("substitute") else 1.0
        return _normal(apart * math.sqrt(math.fsum(1 / one**2 for one in canary.multipliers)))
    if isinstance(canary, GradientCanary) and canary.plan.sampling_rate == 1:
        first, second = canary.shifts
        scale = canary.plan.noise_scale
        return _normal((first - second) / scale * math.sqrt(canary.plan.steps))
    return None


def _normal(distance: float) -> float:
    from noisefloor.adversary.releases import gaussian_pair_success

    return gaussian_pair_success(distance)


def _played(plan: AnyPlan, games: int, source: SeededSource) -> GameScores:
    canary = plan.canary
    if canary is None:
        raise TypeError(f"{plan.NAME} has no canary.")
    return GameScores(*canary.scores(games, source))


def _sum(played: Sequence[GameScores]) -> GameScores:
    """Return games of independent draws on the same inputs: log-likelihood ratios add up."""
    return GameScores(
        np.sum([one.first for one in played], axis=0),
        np.sum([one.second for one in played], axis=0),
    )


def _draws(cost: Guarantee, work: int) -> int:
    """Return how many draws make a fault that a number of games can see.

    Gaussian noise of one release is far from its epsilon at rates that games resolve, and it adds
    up by the root of their number.
    """
    enough = _MOST_DRAWS if cost.delta else math.ceil(4 / cost.epsilon)
    most = min(_MOST_DRAWS, 4 * _MOST_WORK // max(1, work))
    return max(_FEWEST_DRAWS, min(enough, most))


def _success(guarantee: Guarantee) -> float:
    return float(binary_success(guarantee.epsilon, guarantee.delta))


def _excess(audited: LowerBound, claimed: Guarantee) -> list[Metric]:
    """Tell by how much the planted fault passes the claim, where the games could show it."""
    if audited.ceiling <= claimed.epsilon:
        return []
    over = audited.epsilon - claimed.epsilon
    return [Metric("attack.planted.excess", over, n=audited.trials)]


def _game_metrics(
    name: str,
    played: GameScores,
    audited: LowerBound,
    proved: Guarantee,
    claimed: Guarantee,
    closed: float | None = None,
) -> list[Metric]:
    outcome = AttackOutcome(*played.outcome, 0.5, _success(proved), closed, proved.is_finite)
    parts = len(played.first) // _PARTS * _PARTS
    cut = [some[:parts].reshape(_PARTS, -1) for some in (played.first, played.second)]
    scores = np.concatenate(cut, axis=1)
    members = np.zeros(scores.shape, dtype=np.bool_)
    members[:, : cut[0].shape[1]] = True
    n = len(played.first)
    return [
        *attack_metrics(name, outcome),
        *roc_curve_metrics(name, membership_curve(scores, members), proved, claimed),
        Metric(f"attack.{name}.audited", audited.epsilon, n=audited.trials),
        Metric(f"attack.{name}.claimed_bound", _success(claimed), n=n),
    ]
