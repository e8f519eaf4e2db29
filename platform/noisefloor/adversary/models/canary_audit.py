"""Audits of planned releases: a canary is put through the plan's own noise, without any records.

What comes out is a lower bound on the epsilon of this very plan, for its card. It is made of draws
that follow from the publication, so that everybody who has plan and file can play it again.
"""

import hashlib

from noisefloor.adversary.audit import held_out_bound
from noisefloor.privacy import LowerBound
from noisefloor.publication.methods import Canary, CanaryBounds
from noisefloor.randomness import SeededSource

ALPHA = 1e-6
"""The probability that a bound is wrong."""

PLANTED_SHARE = 0.75
"""Of the plan's noise, in the fault that an audit has to find."""

FEWEST_GAMES = 500
MOST_GAMES = 100_000
MOST_WORK = 10_000_000
"""On each input, in random numbers or so: some seconds."""


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

    The null compares one half of the games on the second input with the other. The fault is noise
    a quarter too small: games that miss it cannot contradict a proof, whatever they say.

    Args:
        canary: What is distinguished.
        delta: Of the guarantee that is audited.
        seed: Names the draws: the hash of what was published. Each is played once in a run.
        games: On each input; as many as take some seconds if left out.
    """
    count, source = games or games_for(canary), _source(seed)
    inside, outside = canary.scores(count, source)
    half = len(outside) // 2
    planted = canary.with_noise(PLANTED_SHARE).scores(count, source.child("planted"))
    return CanaryBounds(
        held_out_bound(inside, outside, alpha=ALPHA, delta=delta),
        held_out_bound(outside[:half], outside[half:], alpha=ALPHA, delta=delta),
        held_out_bound(*planted, alpha=ALPHA, delta=delta),
        PLANTED_SHARE,
    )


def _source(seed: str) -> SeededSource:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    return SeededSource(number, "plan-audit", seed)
