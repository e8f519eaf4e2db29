"""What is claimed, proved and audited of the ad pipeline: flow by flow, and for a whole day."""

import math
from collections.abc import Sequence

from noisefloor.accounting.composition import sequential
from noisefloor.adversary.joint import Part, joint_bound
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.parts import (
    click_part,
    request_part,
    requests_a_day,
    training_part,
)
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import NamedClaim
from noisefloor_sim.scenario.model import Scenario

ALPHA = 1e-5
"""The probability that an audited bound is wrong."""


Flow = tuple[str, Guarantee, Guarantee, Sequence[Part]]
"""A name, what is claimed, what is proved, and what an auditor may look at."""


def claims_of(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase, source: SeededSource
) -> tuple[NamedClaim, ...]:
    """Return the claims of training, of one request, of a day's requests, and of all together.

    The paper counts one request a day and one bit of clicks; the ledger counts what is sent.
    """
    coins = source.child("audit")
    trials = max(10_000, block_of(scenario).canaries)
    listed: list[Flow] = []
    if training.training is not None:
        trained = training.training
        part = [training_part(trained)]
        listed.append(("training", trained.claimed, trained.guarantee(Neighbours.USER), part))
    listed += _requests(scenario, delivery)
    listed += _whole_day(scenario, listed, delivery)
    return tuple(
        NamedClaim(name, Claim(claimed, proved, _audited(name, parts, trials, coins)))
        for name, claimed, proved, parts in listed
    )


def _requests(scenario: Scenario, delivery: DeliveryPhase) -> list[Flow]:
    """Return the claim of one request and, where there are more, of a day's."""
    asked, times = delivery.delivery, requests_a_day(delivery.books)
    one = asked.claimed, asked.guarantee(Neighbours.USER)
    listed: list[Flow] = [("request", *one, [request_part(asked, 1)])]
    if times > 1:
        is_paper = scenario.variant == "paper"
        claimed = one[0] if is_paper else _times(one[0], times)
        listed.append(
            ("requests-a-day", claimed, _times(one[1], times), [request_part(asked, times)])
        )
    return listed


def _whole_day(
    scenario: Scenario,
    listed: list[Flow],
    delivery: DeliveryPhase,
) -> list[Flow]:
    """Return the claim of a user's day of training, requests and reports."""
    flows = [flow for flow in listed if flow[0] == "training"] + listed[-1:]
    claimed, proved = [flow[1] for flow in flows], [flow[2] for flow in flows]
    parts = [part for flow in flows for part in flow[3]]
    if delivery.report is not None:
        claimed.append(delivery.report.claimed)
        proved.append(delivery.report.guarantee(Neighbours.USER))
        parts.append(Part(delivery.report, 0, scenario.behaviour.ads - 1))
    clicks = click_part(scenario)
    if clicks is not None:
        parts.append(clicks[0])
        claimed.append(clicks[1])
        proved.append(clicks[2])
    return [("whole-day", _sum(claimed), _sum(proved), parts)]


def _sum(parts: Sequence[Guarantee]) -> Guarantee:
    plain = [Guarantee(one.epsilon, one.neighbours) for one in parts if one.is_finite]
    endless = [one for one in parts if not one.is_finite]
    return endless[0] if endless else sequential(plain)


def _times(one: Guarantee, times: int) -> Guarantee:
    return sequential([one] * times) if one.is_finite else one


def _audited(
    name: str, parts: Sequence[Part], trials: int, source: SeededSource
) -> LowerBound | None:
    if any(math.isinf(part.mechanism.guarantee().epsilon) for part in parts):
        return None  # without noise there is no likelihood to audit
    return joint_bound(parts, trials, source.child(name), alpha=ALPHA)
