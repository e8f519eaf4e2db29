"""What is claimed, proved and audited of the ad pipeline: flow by flow, and for a whole day."""

from collections.abc import Iterator, Sequence

import numpy as np

from noisefloor.adversary.joint import Part, joint_bound
from noisefloor.privacy import Claim, Guarantee, LowerBound
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.flows import Flow, in_all
from noisefloor_sim.pipelines.base import NamedClaim
from noisefloor_sim.scenario.model import Scenario

ALPHA = 1e-5
"""The probability that an audited bound is wrong."""

FEWEST_TRIALS, USUAL_TRIALS = 2_000, 10_000

MOST_NUMBERS = 1 << 24
"""Numbers in one kind of release of all trials, at most: wide ones are tried less often."""


def claims_of(
    scenario: Scenario, flows: Sequence[Flow], source: SeededSource
) -> tuple[NamedClaim, ...]:
    """Return the claims of each flow, of one request, and of the whole day.

    The paper counts one request a day and one bit of clicks; the ledger counts what is sent.
    """
    trials = max(USUAL_TRIALS, block_of(scenario).canaries)
    return tuple(
        NamedClaim(
            name, Claim(claimed, proved, _audited(parts, trials, source.child("audit", name)))
        )
        for name, claimed, proved, parts in _listed(flows)
    )


def _listed(flows: Sequence[Flow]) -> Iterator[tuple[str, Guarantee, Guarantee, list[Part]]]:
    for flow in flows:
        if flow.name == "clicks":
            continue  # their own pipeline makes this claim
        if flow.name != "request":
            yield flow.name, flow.claimed, flow.proved, [flow.part]
            continue
        yield flow.name, *flow.each, [flow.single]
        if flow.releases > 1:
            yield "requests-a-day", flow.claimed, flow.proved, [flow.part]
    claimed, proved = (
        in_all([getattr(flow, name) for flow in flows]) for name in ("claimed", "proved")
    )
    yield "whole-day", claimed, proved, [flow.part for flow in flows]


def _audited(parts: Sequence[Part], trials: int, source: SeededSource) -> LowerBound | None:
    if not all(part.mechanism.guarantee().is_finite for part in parts):
        return None  # without noise there is no likelihood to audit
    widest = max(np.size(part.first) for part in parts)
    enough = max(FEWEST_TRIALS, min(trials, MOST_NUMBERS // widest))
    return joint_bound(parts, enough, source, alpha=ALPHA)
