"""What is declared of the noise of a release, for scoring: apart from the code that adds it.

A pipeline writes down the scales of its own releases, from what the proof speaks of (noise
multiplier, clipping bound, epsilon), and not from where a release takes them. Private SGD, which
several pipelines publish by, is written down here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from noisefloor.adversary.releases import DeclaredNoise, NoiseShape
from noisefloor.publication.private_sgd import EachAtFullBound, PerGroup, SgdPlan

FLOATS = 1e-5
"""Margins of float noise beside the plan's own: two parts in a million at most, and rounding."""

_SUM_ROUNDING = 2.0**-23
"""Of private SGD, for each record of the expected batch: more noise than the account asks for."""

STEP = "step"
"""The name that private SGD gives the vectors of all its steps."""


@dataclass(frozen=True, slots=True)
class DeclaredPart:
    """What is declared of one vector of a release, or of the vectors of all steps.

    Attributes:
        group: The name of all parts with the same noise; they are tested together.
        noise: Its distribution, in multiples of the vector's ``unit`` where it has one.
        bound: The largest norm of one record in it; None where records are counted.
        rate: The probability of each record to be sampled for it.
    """

    group: str
    noise: DeclaredNoise
    bound: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseNoise:
    """What is declared of a release.

    Attributes:
        parts: By the names that the release gives its vectors.
        vectors: How many vectors each group has, at least and at most: these are accounted for.
    """

    parts: Mapping[str, DeclaredPart]
    vectors: Mapping[str, tuple[int, int]]


def single_part(part: DeclaredPart, vectors: int) -> ReleaseNoise:
    """Declare a release all of whose vectors are alike."""
    return ReleaseNoise({part.group: part}, {part.group: (vectors, vectors)})


def longest_of(plan: SgdPlan) -> float:
    """Return the most that one record moves a sum by: written down from the bounds of groups.

    The plan has the same figure, which decides its noise; this one does not come from there.
    """
    clipping = plan.clipping
    if isinstance(clipping, PerGroup):
        return math.sqrt(math.fsum(bound**2 for _, bound in clipping.groups))
    if isinstance(clipping, EachAtFullBound):
        return clipping.bound * math.sqrt(len(clipping.groups))
    return clipping.bound


def sgd_noise(plan: SgdPlan) -> ReleaseNoise:
    """Declare a private training: noise for what one record moves, in every coordinate and step.

    Where each group is clipped at the full bound and the noise is that of one bound, which is
    what the name of that kind of clipping says, so much is declared of it.
    """
    clipping, bound = plan.clipping, longest_of(plan)
    noised = clipping.bound if isinstance(clipping, EachAtFullBound) else bound
    slack = plan.expected_batch * _SUM_ROUNDING + FLOATS
    noise = DeclaredNoise(NoiseShape.GAUSSIAN, plan.noise_multiplier * noised, slack)
    rate = plan.expected_batch / plan.examples
    return single_part(DeclaredPart(STEP, noise, bound, rate if rate < 1 else None), plan.steps)
