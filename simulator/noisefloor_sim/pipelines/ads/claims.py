"""What is claimed, proved and audited of the ad pipeline: flow by flow, and for a whole day.

What one person releases in a day, flow by flow: claimed, proved, and ready to be audited.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from noisefloor.accounting import Amount, sequential_as_written
from noisefloor.ads.training import AdTraining, BitTraining, LaplaceTraining, SpectralTraining
from noisefloor.adversary.audit import RepeatedRelease, joint_bound
from noisefloor.mechanisms import Mechanism
from noisefloor.privacy import Claim, FlowEvidence, Guarantee, LowerBound, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines import api
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import (
    REQUEST,
    DeliveryPhase,
    busiest_requests,
    requests_a_day,
)
from noisefloor_sim.pipelines.ads.request_distribution import RequestDistribution
from noisefloor_sim.pipelines.ads.slots import SHOWN
from noisefloor_sim.pipelines.ads.training import FLOW as REPORT
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.scenario import Scenario

USER = Neighbours.USER


def daily_releases(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase
) -> list[api.DailyRelease]:
    """Return this pipeline's flows of the day on which a user takes part in everything.

    That is all of training, the requests of a mean user on the busiest day, rounded up, and the
    day's reports. A user who looks at more pages makes more requests where each impression is
    requested: ``busiest_user`` is how many at most.
    """
    found = []
    if training.training is not None:
        found.append(training_release(training.training))
    if delivery.reports is not None:
        report = delivery.reports.report
        each = report.claimed, report.guarantee(USER)
        part = RepeatedRelease(report, 0, scenario.ad_behaviour.ads - 1)
        found.append(api.DailyRelease("shown-ad", 1, each, *each, part))
    beside = debited_micro([*found, *other_releases(scenario)])
    found.insert(training.training is not None, _request_release(scenario, delivery, beside))
    return found


def debited_micro(flows: Sequence[api.DailyRelease]) -> int:
    """Return what a day's releases are debited; what is sent without noise is not."""
    paid = [Amount.cost(flow.each[0], flow.releases) for flow in flows if flow.each[0].is_finite]
    return sum(paid, Amount(0)).micro_epsilon


def other_releases(scenario: Scenario) -> list[api.DailyRelease]:
    """Return what the same user releases in a day through other pipelines of the scenario."""
    blocks = [block for _, block in sorted(scenario.pipelines.items())]
    return [one.daily_release(scenario) for one in blocks if isinstance(one, api.ReleasesDaily)]


def training_release(training: AdTraining) -> api.DailyRelease:
    """Return what a user who takes part in all training sends, on the two worst profiles."""
    if isinstance(training, BitTraining):
        mechanism: Mechanism = training.bit
        times = 1 if training.once else training.rounds
    elif isinstance(training, LaplaceTraining):
        mechanism, times = training.noise, training.rounds
    elif isinstance(training, SpectralTraining):
        # Lots that no data touch decide which of three alike guarantees a user takes part in.
        mechanism, times = training.directions, 1
    else:
        raise TypeError(f"{type(training).__name__} has no part to audit.")
    each = Guarantee(training.claimed.epsilon / times, USER), mechanism.guarantee(USER)
    part = RepeatedRelease(mechanism, *_worst_pair(mechanism), times)
    return api.DailyRelease(
        "training", times, each, training.claimed, training.guarantee(USER), part
    )


IN_THE_OPEN = "ratings in the open"


def prices_of(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase
) -> dict[str, api.Price]:
    """Return the guarantees of one release of each flow.

    Reports of training add up to the training's own guarantee: a user who reports in every round
    pays for each, and one who reports once, in a round drawn by lot, pays for the worst of them.
    """
    asked = delivery.delivery
    found = {REQUEST: api.Price(asked.claimed, asked.guarantee(USER))}
    if training.training is not None:
        whole = training_release(training.training)
        proved = whole.each[1] if whole.releases > 1 else whole.proved
        found[REPORT] = api.Price(whole.each[0], proved)
    elif block_of(scenario).training.method in ("open", "means"):
        open_ = Guarantee.none("the model is trained from ratings without noise", USER)
        found[IN_THE_OPEN] = api.Price(open_, open_, is_sent_by_all=True)
    if delivery.reports is not None:
        report = delivery.reports.report
        found[SHOWN] = api.Price(report.claimed, report.guarantee(USER))
    return found


def paper_claim(prices: Mapping[str, api.Price], training: TrainingPhase, days: int) -> Guarantee:
    """Return what the paper claims of a run: all training, and one request on each day."""
    claimed = [price.claimed for price in prices.values() if price.is_sent_by_all]
    if training.training is not None:
        claimed.append(training.training.claimed)
    return composed_guarantee([*claimed, *[prices[REQUEST].claimed] * days])


def _request_release(scenario: Scenario, delivery: DeliveryPhase, beside: int) -> api.DailyRelease:
    """Return the requests of a day, as many as the budget covers beside the other flows.

    One request a day claims what is configured for it. Where each impression is requested, people
    decide how many there are, and the configuration says no more of a day than the budget does;
    the paper counts one.
    """
    asked, times = delivery.delivery, requests_a_day(delivery.statistics)
    each, distribution = (asked.claimed, asked.guarantee(USER)), RequestDistribution(asked)
    claimed = each[0]
    if claims_budget(scenario) and claimed.is_finite:
        claimed = Guarantee(scenario.budget, USER)
        if delivery.cost:
            left = Amount.budget(scenario.budget, 0.0).micro_epsilon - beside
            times = max(1, min(times, left // delivery.cost))
    part = RepeatedRelease(distribution, *distribution.worst_pair(), times)
    return api.DailyRelease(
        "request", times, each, claimed, repeated_guarantee(each[1], times), part
    )


def claims_budget(scenario: Scenario) -> bool:
    """Whether the budget is all that the configuration says of a user's whole day."""
    is_daily = block_of(scenario).delivery.fresh == "day"
    return scenario.variant == "corrected" and not is_daily


def _plain(one: Guarantee) -> Guarantee:
    return replace(one, reason="") if one.is_finite else one


def _worst_pair(mechanism: object) -> tuple[object, object]:
    pairs = getattr(mechanism, "worst_pairs")(USER)  # noqa: B009 - not in the protocol
    first, second = pairs[0]
    return first, second


def repeated_guarantee(one: Guarantee, times: int) -> Guarantee:
    """Return what is known of so many releases; nothing, if nothing is of one."""
    return sequential_as_written([one] * times) if one.is_finite else one


def composed_guarantee(parts: list[Guarantee]) -> Guarantee:
    """Return what is known of releases together; nothing, if nothing is of one of them."""
    endless = [one for one in parts if not one.is_finite]
    return endless[0] if endless else sequential_as_written([_plain(one) for one in parts])


def daily_release_metrics(
    flows: Sequence[api.DailyRelease], delivery: DeliveryPhase
) -> list[api.Metric]:
    """Return the day in numbers: each flow, and the requests of the busiest user."""
    metrics = []
    for flow in flows:
        figures = {
            "releases": float(flow.releases),
            "claimed_each": flow.each[0].epsilon,
            "proved_each": flow.each[1].epsilon,
            "claimed": flow.claimed.epsilon,
            "proved": flow.proved.epsilon,
        }
        metrics += [
            api.Metric(f"day.{flow.name}.{name}", value) for name, value in figures.items()
        ]
    most = busiest_requests(delivery.statistics)
    one = delivery.delivery.guarantee(USER).epsilon
    proved = math.inf if math.isinf(one) else most * one
    return [
        *metrics,
        api.Metric("day.busiest_user.releases", float(most)),
        api.Metric("day.busiest_user.proved", proved),
    ]


ALPHA = 1e-5
"""The probability that an audited bound is wrong."""

FEWEST_TRIALS, USUAL_TRIALS = 2_000, 10_000

MOST_NUMBERS = 1 << 24
"""Numbers in one kind of release of all trials, at most: wide ones are tried less often."""


def claims_of(
    scenario: Scenario,
    flows: Sequence[api.DailyRelease],
    others: Sequence[api.DailyRelease],
    source: SeededSource,
) -> tuple[api.NamedClaim, ...]:
    """Return the claims of each flow, of one request, and of the whole day.

    The paper counts one request a day and one bit of clicks; the ledger counts what is sent.

    Args:
        scenario: At one point of a sweep.
        flows: Of this pipeline.
        others: Flows of other pipelines, which claim them; here they count in the whole day.
        source: Of the audits' random numbers.
    """
    trials = max(USUAL_TRIALS, block_of(scenario).canaries)

    def audit(name: str, parts: Sequence[RepeatedRelease]) -> LowerBound | None:
        if not scenario.mounts("ads", "audit"):
            return None
        return _audited(parts, trials, source.child("audit", name))

    return tuple(
        api.NamedClaim(name, Claim(claimed, proved, audit(name, parts)))
        for name, claimed, proved, parts in _listed(scenario, flows, others)
    )


_FLOWS = {
    "training": ("training",),
    "request": ("ad-requests",),
    "requests-a-day": ("ad-requests",),
    "shown-ad": ("shown-ads",),
}
"""The flows that each claim is about; that about the whole day is about all of them."""


def with_evidence(
    claims: Sequence[api.NamedClaim], evidence: Mapping[str, FlowEvidence]
) -> tuple[api.NamedClaim, ...]:
    """Return claims with what was seen of the flows that each is about."""
    return tuple(
        replace(one, claim=replace(one.claim, evidence=_seen(one.mechanism, evidence)))
        for one in claims
    )


def _seen(mechanism: str, evidence: Mapping[str, FlowEvidence]) -> tuple[FlowEvidence, ...]:
    about = _FLOWS.get(mechanism, tuple(evidence))
    return tuple(evidence[name] for name in about if name in evidence)


_PER = {"training": "run", "request": "request", "shown-ad": "day", "whole-day": "day"}


def planned_claims(
    scenario: Scenario, flows: Sequence[api.DailyRelease], others: Sequence[api.DailyRelease]
) -> tuple[api.PlannedClaim, ...]:
    """Return the claims that are known before the run.

    Where devices make a request for every impression, nothing is known of a whole day: people
    decide how many there are.

    Args:
        scenario: At one point of a sweep.
        flows: Of a day, before anybody made a request.
        others: Flows of other pipelines, which plan them; here they count in the whole day.
    """
    days, is_daily = scenario.days, block_of(scenario).delivery.fresh == "day"
    known = [
        api.PlannedClaim(name, _PER[name], Claim(claimed, proved))
        for name, claimed, proved, _ in _listed(scenario, flows, others)
        if is_daily or name != "whole-day"
    ]
    if not is_daily:
        return tuple(known)
    # Training is the flow of one day of the run.
    own = [flow for flow in flows for _ in range(1 if flow.name == "training" else days)]
    claimed, proved = (
        composed_guarantee([getattr(flow, name) for flow in own]) for name in ("claimed", "proved")
    )
    # Each release is rounded up by itself, and what is sent without noise is not debited.
    debited = Amount(debited_micro(own)).epsilon
    return (*known, api.PlannedClaim("whole-run", "run", Claim(claimed, proved), debited))


def _listed(
    scenario: Scenario, flows: Sequence[api.DailyRelease], others: Sequence[api.DailyRelease]
) -> Iterator[tuple[str, Guarantee, Guarantee, list[RepeatedRelease]]]:
    for flow in flows:
        if flow.name != "request":
            yield flow.name, flow.claimed, flow.proved, [flow.part]
            continue
        yield flow.name, *flow.each, [flow.single]
        if flow.releases > 1:
            yield "requests-a-day", flow.claimed, flow.proved, [flow.part]
    every = (*flows, *others)
    claimed, proved = (
        composed_guarantee([getattr(flow, name) for flow in every])
        for name in ("claimed", "proved")
    )
    if claims_budget(scenario) and claimed.is_finite:
        claimed = Guarantee(scenario.budget, USER)
        if debited_micro(every) > Amount.budget(scenario.budget, 0.0).micro_epsilon:
            return  # nobody has such a day: the budget does not cover one release of each flow
    yield "whole-day", claimed, proved, [flow.part for flow in every]


def _audited(
    parts: Sequence[RepeatedRelease], trials: int, source: SeededSource
) -> LowerBound | None:
    if not all(part.mechanism.guarantee().is_finite for part in parts):
        return None  # without noise there is no likelihood to audit
    widest = max(np.size(part.first) for part in parts)
    enough = max(FEWEST_TRIALS, min(trials, MOST_NUMBERS // widest))
    return joint_bound(parts, enough, source, alpha=ALPHA)
