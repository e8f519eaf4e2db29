"""Audits of planned releases: a canary is put through the plan's own noise, without any records.

What comes out is a lower bound on the epsilon of this very plan, for its card. It is made of draws
that follow from the publication, so that everybody who has plan and file can play it again.
"""

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from noisefloor.accounting import epsilon_at_least
from noisefloor.adversary.audit import GroupCurve, held_out_bound
from noisefloor.checks import Floats
from noisefloor.privacy import LowerBound, Neighbours
from noisefloor.publication.methods import Canary, CanaryBounds, CurveTest, GaussianCanary
from noisefloor.randomness import SeededSource

ALPHA = 1e-6
"""The probability that a bound is wrong."""

PLANTED_SHARE = 0.75
"""Of the plan's noise, in the fault that an audit has to find."""

FEWEST_GAMES = 500
MOST_GAMES = 100_000
MOST_WORK = 10_000_000
"""On each input, in random numbers or so: some seconds."""


MOST_GROUP_WORK = 5_000_000
"""The same for groups of canaries: a fraction of a second."""

_FINE, _COARSE = 0.02, 0.08
"""By how much an epsilon may be low: of the plan itself, and of all that is beside it."""


def games_for(canary: Canary) -> int:
    """Return how many games on each input are played with a canary."""
    return min(max(MOST_WORK // canary.work, FEWEST_GAMES), MOST_GAMES)


def audit_canary(
    canary: Canary, delta: float, seed: str, *, games: int | None = None
) -> LowerBound:
    """Return the epsilon that a canary reached; half of the games choose the threshold.

    Args:
        canary: What is distinguished.
        delta: Of the guarantee that is audited.
        seed: Names the draws: the hash of what was published. Each is played once in a run.
        games: On each input; as many as take some seconds if left out.
    """
    scores = canary.scores(games or games_for(canary), _source(seed))
    return held_out_bound(*scores, alpha=ALPHA, delta=delta)


def audit_plan(
    canary: Canary, delta: float, seed: str, *, games: int | None = None
) -> CanaryBounds:
    """Return what a canary reached, with a null and a planted fault of the same games.

    Gaussian noise is tested against its own trade-off curve, other noise against epsilon. The null
    compares one half of the games on the second input with the other. The fault is noise a quarter
    too small: games that miss it cannot contradict a proof, whatever they say.

    Args:
        canary: What is distinguished.
        delta: Of the guarantee that is audited.
        seed: Names the draws: the hash of what was published. Each is played once in a run.
        games: On each input; as many as take some seconds if left out.
    """
    source = _source(seed)
    if isinstance(canary, GaussianCanary):
        return audit_gaussian(canary, delta, source, games=games)
    count = games or games_for(canary)
    inside, outside = canary.scores(count, source)
    half = len(outside) // 2
    planted = canary.with_noise(PLANTED_SHARE).scores(count, source.child("planted"))
    return CanaryBounds(
        held_out_bound(inside, outside, alpha=ALPHA, delta=delta),
        held_out_bound(outside[:half], outside[half:], alpha=ALPHA, delta=delta),
        held_out_bound(*planted, alpha=ALPHA, delta=delta),
        PLANTED_SHARE,
        count,
    )


def audit_gaussian(
    canary: GaussianCanary,
    delta: float,
    source: SeededSource,
    *,
    games: int | None = None,
    most_work: int = MOST_GROUP_WORK,
) -> CanaryBounds:
    """Return what groups of canaries showed of Gaussian noise, by its trade-off curve.

    A bound is the epsilon of all steps together if each has as much noise as was not refuted:
    sampling rate and number of steps are the declared ones.

    Args:
        canary: What is distinguished.
        delta: Of the guarantee that is audited.
        source: Of all draws.
        games: On each input; as many as ``most_work`` allows if left out.
        most_work: On each input, in random numbers or so.
    """
    audit = _GroupAudit.of(canary, delta, games, most_work)
    inside, outside = canary.group_sums(audit.curve.records, audit.games, source)
    half = len(outside) // 2
    weak = canary.with_noise(PLANTED_SHARE)
    assert isinstance(weak, GaussianCanary)  # noqa: S101  narrows a type
    planted = weak.group_sums(audit.curve.records, audit.games, source.child("planted"))
    tested = audit.tested(inside, outside)
    return CanaryBounds(
        audit.bound(tested, _FINE),
        audit.bound(audit.tested(outside[:half], outside[half:])),
        audit.bound(audit.tested(*planted)),
        PLANTED_SHARE,
        audit.games,
        tested,
    )


@dataclass(frozen=True, slots=True)
class _GroupAudit:
    """Games of a group of canaries, and the threshold that decides them: from the plan alone."""

    canary: GaussianCanary
    delta: float
    curve: GroupCurve
    threshold: float
    games: int

    @classmethod
    def of(
        cls, canary: GaussianCanary, delta: float, games: int | None, most_work: int
    ) -> "_GroupAudit":
        event, is_substitute = canary.event, canary.neighbours is Neighbours.RECORD_SUBSTITUTE
        curve = GroupCurve.of(
            event.sampling_rate, event.noise_multiplier, is_substitute=is_substitute
        )
        work = canary.group_work(curve.records)
        count = games or min(max(most_work // work, FEWEST_GAMES), MOST_GAMES)
        return cls(canary, delta, curve, curve.threshold(PLANTED_SHARE), count)

    def tested(self, inside: Floats, outside: Floats) -> CurveTest:
        """Compare games on two inputs with the curve of the declared noise."""
        sizes = len(inside), len(outside)
        hits, false = (int(np.count_nonzero(some >= self.threshold)) for some in (inside, outside))
        rates = hits / sizes[0], false / sizes[1]
        allowed = self.curve.largest_true_rates(rates[1], np.ones(1)).item()
        share = self.curve.refuted_share(hits, false, sizes, ALPHA)
        return CurveTest(self.curve.records, min(sizes), *rates, allowed, share)

    def bound(self, tested: CurveTest, slack: float = _COARSE) -> LowerBound:
        """Return the epsilon of all steps under as much noise as was not refuted."""
        games = tested.games
        most = self.curve.refuted_share(games, 0, (games, games), ALPHA)
        reached, ceiling = self._epsilon(tested.noise_at_most, slack), self._epsilon(most, _COARSE)
        return LowerBound(reached, 1 - ALPHA, games, max(reached, ceiling))

    def _epsilon(self, share: float, slack: float) -> float:
        if math.isinf(share):
            return 0.0
        event = self.canary.event
        weaker = replace(event, noise_multiplier=share * event.noise_multiplier)
        return epsilon_at_least(weaker, self.delta, self.canary.neighbours, slack=slack)


def _source(seed: str) -> SeededSource:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    return SeededSource(number, "plan-audit", seed)
