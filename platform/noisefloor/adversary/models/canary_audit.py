"""Audits of planned releases: a canary is put through the plan's own noise, without any records.

What comes out is a lower bound on the epsilon of this very plan, for its card. It is made of draws
that follow from the publication, so that everybody who has plan and file can play it again.
"""

import hashlib

from noisefloor.adversary.audit import held_out_bound
from noisefloor.privacy import LowerBound
from noisefloor.publication.methods import Canary
from noisefloor.randomness import SeededSource

ALPHA = 1e-6
"""The probability that a bound is wrong."""

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
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    inside, outside = canary.scores(
        games or games_for(canary), SeededSource(number, "plan-audit", seed)
    )
    return held_out_bound(inside, outside, alpha=ALPHA, delta=delta)
