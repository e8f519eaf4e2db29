"""What one person releases in a day, flow by flow: claimed, proved, and ready to be audited."""

import math
from dataclasses import dataclass, replace

import numpy as np

from noisefloor.accounting.composition import sequential
from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.laplace_training import LaplaceTraining
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.adversary.joint import Part
from noisefloor.mechanisms.base import Mechanism
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase
from noisefloor_sim.pipelines.ads.delivery_books import busiest_requests, requests_a_day
from noisefloor_sim.pipelines.ads.request_law import RequestLaw
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.pipelines.clicks.block import ClickBlock, memoised_of, report_of
from noisefloor_sim.scenario.model import Scenario

USER = Neighbours.USER


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow of a user's day.

    Attributes:
        name: Of the flow.
        releases: How often the user releases something fresh.
        each: What is claimed of one release, and what is proved.
        claimed: What is claimed of all of them; the paper counts one request.
        proved: What is proved of all of them.
        part: All of them, for an auditor.
    """

    name: str
    releases: int
    each: tuple[Guarantee, Guarantee]
    claimed: Guarantee
    proved: Guarantee
    part: Part

    @property
    def single(self) -> Part:
        """One release, for an auditor."""
        return replace(self.part, times=1)


def flows_of_a_day(
    scenario: Scenario, training: TrainingPhase, delivery: DeliveryPhase
) -> list[Flow]:
    """Return the flows of the day on which a user takes part in everything.

    That is all of training, the requests of a mean user on the busiest day, rounded up, and the
    day's reports. Whoever looks at more pages makes more requests where each impression is asked
    for: ``busiest_user`` tells how many at most.
    """
    found = [_request_flow(scenario, delivery)]
    if training.training is not None:
        found.insert(0, training_flow(training.training))
    if delivery.reports is not None:
        report = delivery.reports.report
        each = report.claimed, report.guarantee(USER)
        part = Part(report, 0, scenario.behaviour.ads - 1)
        found.append(Flow("shown-ad", 1, each, *each, part))
    clicks = _click_flow(scenario)
    return found if clicks is None else [*found, clicks]


def training_flow(training: Training) -> Flow:
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
    part = Part(mechanism, *_worst_pair(mechanism), times)
    return Flow("training", times, each, training.claimed, training.guarantee(USER), part)


def _request_flow(scenario: Scenario, delivery: DeliveryPhase) -> Flow:
    asked, times = delivery.delivery, requests_a_day(delivery.books)
    each, law = (asked.claimed, asked.guarantee(USER)), RequestLaw(asked)
    part = Part(law, *law.worst_pair(), times)
    claimed = each[0] if scenario.variant == "paper" else repeated(each[0], times)
    return Flow("request", times, each, claimed, repeated(each[1], times), part)


def _click_flow(scenario: Scenario) -> Flow | None:
    """Return the daily report of clicks; permanent answers are counted whole on their day."""
    if not isinstance(scenario.pipelines.get("clicks"), ClickBlock):
        return None
    memoised = memoised_of(scenario)
    if memoised is not None:
        none = np.zeros(memoised.ads, dtype=np.bool_)
        each = memoised.claimed, memoised.guarantee(USER)
        return Flow("clicks", 1, each, *each, Part(replace(memoised, days=1), ~none, none))
    report = report_of(scenario)
    each = _plain(report.claimed), _plain(report.guarantee(USER))
    return Flow("clicks", 1, each, *each, Part(report, *_worst_pair(report)))


def _plain(one: Guarantee) -> Guarantee:
    return replace(one, reason="") if one.is_finite else one


def _worst_pair(mechanism: object) -> tuple[object, object]:
    pairs = getattr(mechanism, "worst_pairs")(USER)  # noqa: B009 - not in the protocol
    first, second = pairs[0]
    return first, second


def repeated(one: Guarantee, times: int) -> Guarantee:
    """Return what is known of so many releases; nothing, if nothing is of one."""
    return sequential([one] * times) if one.is_finite else one


def in_all(parts: list[Guarantee]) -> Guarantee:
    """Return what is known of releases together; nothing, if nothing is of one of them."""
    endless = [one for one in parts if not one.is_finite]
    return endless[0] if endless else sequential([_plain(one) for one in parts])


def flow_metrics(flows: list[Flow], delivery: DeliveryPhase) -> list[Metric]:
    """Tell the day in numbers: each flow, and the requests of the busiest user."""
    metrics = []
    for flow in flows:
        figures = {
            "releases": float(flow.releases),
            "claimed_each": flow.each[0].epsilon,
            "proved_each": flow.each[1].epsilon,
            "claimed": flow.claimed.epsilon,
            "proved": flow.proved.epsilon,
        }
        metrics += [Metric(f"day.{flow.name}.{name}", value) for name, value in figures.items()]
    most = busiest_requests(delivery.books)
    one = delivery.delivery.guarantee(USER).epsilon
    proved = math.inf if math.isinf(one) else most * one
    return [
        *metrics,
        Metric("day.busiest_user.releases", float(most)),
        Metric("day.busiest_user.proved", proved),
    ]
