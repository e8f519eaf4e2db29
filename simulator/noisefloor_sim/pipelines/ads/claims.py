"""What is claimed, proved and audited of the ad pipeline: flow by flow, and for a whole day.

What one person releases in a day, flow by flow: claimed and proved. What is audited comes from the
witnesses of each flow; of a whole day nothing is, its evidence is that of all flows.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from noisefloor.accounting import Amount, sequential_as_written
from noisefloor.ads.clicks import PANEL_CLICKS, SHOWN_AD_SETS, SHOWN_ADS
from noisefloor.ads.delivery import AD_REQUESTS
from noisefloor.ads.training import AdTraining, BitTraining, LaplaceTraining, SpectralTraining
from noisefloor.mechanisms import Mechanism
from noisefloor.privacy import Claim, FlowEvidence, Guarantee, LowerBound, Neighbours
from noisefloor_sim.pipelines import api
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase, busiest_requests, requests_a_day
from noisefloor_sim.pipelines.ads.flows import (
    PANEL_REPORT,
    REQUEST,
    SHOWN,
    TRAINING,
    TRAINING_REPORT,
)
from noisefloor_sim.pipelines.ads.panel import Panel
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.scenario import Scenario

USER = Neighbours.USER


def daily_releases(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase, panel: Panel | None
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
        found.append(api.DailyRelease("shown-ad", 1, each, *each))
    if panel is not None:
        each = panel.mechanism.claimed, panel.mechanism.guarantee(USER)
        found.append(api.DailyRelease("panel-click", 1, each, *each))
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
    """Return what a user who takes part in all training sends."""
    if isinstance(training, BitTraining):
        mechanism: Mechanism = training.bit
        times = 1 if training.once else training.rounds
    elif isinstance(training, LaplaceTraining):
        mechanism, times = training.noise, training.rounds
    elif isinstance(training, SpectralTraining):
        # Lots that no data touch decide which of three alike guarantees a user takes part in.
        mechanism, times = training.directions, 1
    else:
        raise TypeError(f"{type(training).__name__} has no reports that are known.")
    each = Guarantee(training.claimed.epsilon / times, USER), mechanism.guarantee(USER)
    return api.DailyRelease("training", times, each, training.claimed, training.guarantee(USER))


IN_THE_OPEN = "ratings in the open"


def prices_of(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase, panel: Panel | None
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
        found[TRAINING_REPORT] = api.Price(whole.each[0], proved)
    elif block_of(scenario).training.method in ("open", "means"):
        open_ = Guarantee.none("the model is trained from ratings without noise", USER)
        found[IN_THE_OPEN] = api.Price(open_, open_, is_sent_by_all=True)
    if delivery.reports is not None:
        report = delivery.reports.report
        found[SHOWN] = api.Price(report.claimed, report.guarantee(USER))
    if panel is not None:
        click = panel.mechanism
        found[PANEL_REPORT] = api.Price(click.claimed, click.guarantee(USER))
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
    each = asked.claimed, asked.guarantee(USER)
    claimed = each[0]
    if claims_budget(scenario) and claimed.is_finite:
        claimed = Guarantee(scenario.budget, USER)
        if delivery.cost:
            left = Amount.budget(scenario.budget, 0.0).micro_epsilon - beside
            times = max(1, min(times, left // delivery.cost))
    return api.DailyRelease("request", times, each, claimed, repeated_guarantee(each[1], times))


def claims_budget(scenario: Scenario) -> bool:
    """Whether the budget is all that the configuration says of a user's whole day."""
    is_daily = block_of(scenario).delivery.fresh == "day"
    return scenario.variant == "corrected" and not is_daily


def _plain(one: Guarantee) -> Guarantee:
    return replace(one, reason="") if one.is_finite else one


def repeated_guarantee(one: Guarantee, times: int) -> Guarantee:
    """Return what is known of several releases; nothing, if nothing is known of one."""
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


def claims_of(
    scenario: Scenario,
    flows: Sequence[api.DailyRelease],
    others: Sequence[api.DailyRelease],
    bounds: Mapping[str, Mapping[str, LowerBound | None]],
) -> tuple[api.NamedClaim, ...]:
    """Return the claims of each flow, of one request, and of the whole day.

    The paper counts one request a day and one bit of clicks; the ledger counts what is sent.

    Args:
        scenario: At one point of a sweep.
        flows: Of this pipeline.
        others: Flows of other pipelines, which claim them; here they count in the whole day.
        bounds: What witnesses prove, by claim: audited, null and planted.
    """
    found = []
    for name, claimed, proved in _listed(scenario, flows, others):
        audited, null, planted = (
            bounds.get(name, {}).get(kind) for kind in ("audited", "null", "planted")
        )
        claim = Claim(claimed, proved, audited, null=null, planted=planted)
        found.append(api.NamedClaim(name, claim))
    return tuple(found)


def witness_bounds(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase, panel: Panel | None
) -> dict[str, Mapping[str, LowerBound | None]]:
    """Return what witnesses prove of each claim, where the audit is selected."""
    if not scenario.mounts("ads", "audit"):
        return {}
    found = {"request": delivery.flow.bounds()}
    if training.flow is not None:
        found["training"] = training.flow.bounds()
    if delivery.reports is not None:
        found["shown-ad"] = delivery.reports.flow.bounds()
    if panel is not None:
        found["panel-click"] = panel.flow.bounds()
    return dict(found)


_FLOWS = {
    "training": (TRAINING,),
    "request": (AD_REQUESTS,),
    "requests-a-day": (AD_REQUESTS,),
    "shown-ad": (SHOWN_ADS, SHOWN_AD_SETS),
    "panel-click": (PANEL_CLICKS,),
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


_PER = {
    "training": "run",
    "request": "request",
    "shown-ad": "day",
    "panel-click": "day",
    "whole-day": "day",
}


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
        for name, claimed, proved in _listed(scenario, flows, others)
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
) -> Iterator[tuple[str, Guarantee, Guarantee]]:
    for flow in flows:
        if flow.name != "request":
            yield flow.name, flow.claimed, flow.proved
            continue
        yield flow.name, *flow.each
        if flow.releases > 1:
            yield "requests-a-day", flow.claimed, flow.proved
    every = (*flows, *others)
    claimed, proved = (
        composed_guarantee([getattr(flow, name) for flow in every])
        for name in ("claimed", "proved")
    )
    if claims_budget(scenario) and claimed.is_finite:
        claimed = Guarantee(scenario.budget, USER)
        if debited_micro(every) > Amount.budget(scenario.budget, 0.0).micro_epsilon:
            return  # nobody has such a day: the budget does not cover one release of each flow
    yield "whole-day", claimed, proved
