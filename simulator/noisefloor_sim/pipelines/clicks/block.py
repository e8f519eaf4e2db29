"""The settings of click statistics in a scenario."""

from typing import ClassVar, Literal

from pydantic import Field

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import (
    ClickEncoding,
    ClickReport,
    DeliveredClick,
    DroppedClicks,
    MemoisedClicks,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor_sim.pipelines.api import DailyRelease, ServesAds
from noisefloor_sim.pipelines.clicks.result_names import CLAIM_NAMES, METRIC_NAMES
from noisefloor_sim.scenario import Attack, Attacks, PipelineBlock, Scenario
from noisefloor_sim.world import Exhausted

CorrectedForm = Literal["split", "capped", "one-click", "pad-and-sample", "memoised", "delivered"]


ATTACKS: Attacks = {
    "single-bit": Attack("one click or none, one report"),
    "profiles": Attack("the two profiles farthest apart, one report"),
    "all-days": Attack("one click or none, all fresh reports linked"),
    "vector": Attack("a whole vector of fair random bits, one report"),
    "row-order": Attack("one click or none, linked by the place of a row"),
    "delivered": Attack("whether a delivered ad was clicked, one report"),
    "audit": Attack("the worst two profiles, to audit the claims", is_audit=True),
}
"""What the adversary guesses, by the name of the attack."""


class ClickBlock(PipelineBlock):
    """One report of clicks per user and day."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    needs_ads: ClassVar[bool] = True
    attacks: ClassVar[Attacks] = ATTACKS

    epsilon: float = Field(
        default=1.0,
        gt=0,
        le=40,
        description="Claimed for a user's whole report, each day; for 'memoised', for all days.",
    )
    form: CorrectedForm = Field(
        default="one-click",
        description="How the corrected variant guards the vector, or 'delivered': the ad in the "
        "open, a response on its click; the paper's has no choice.",
    )
    most_clicks: int = Field(
        default=1,
        ge=1,
        le=1_000,
        description="Clicks that 'capped' keeps, or that 'pad-and-sample' pads to.",
    )
    counting_share: float = Field(
        default=0.0,
        ge=0,
        le=0.9,
        description="Share of users who, drawn anew each day, tell how many of their clicks the "
        "form would drop instead of which ads they clicked, at the same epsilon; the server then "
        "corrects for them. Only forms with a limit drop any.",
    )
    first_share: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="Share of epsilon that the first report of 'memoised' may reveal.",
    )
    exhausted: Literal["refuse", "memory"] = Field(
        default="refuse",
        description="Without budget a device stays silent, or sends its last report again.",
    )
    canaries_keep_order: bool = Field(
        default=False,
        description="A planted leak: canaries' rows come in the same order each day. Frames of "
        "users are always permuted.",
    )
    canaries: int = Field(
        default=4_000,
        ge=1_000,
        le=10_000_000,
        description="Devices with known clicks that the adversary is tested on, for each guess.",
    )

    def daily_release(self, scenario: Scenario) -> DailyRelease:
        """Return the daily report; permanent answers are counted whole on their day."""
        memoised = memoised_of(scenario)
        if memoised is not None:
            each = memoised.claimed, memoised.guarantee(Neighbours.USER)
            return DailyRelease("clicks", 1, each, *each)
        report = report_of(scenario)
        each = report.claimed, report.guarantee(Neighbours.USER)
        return DailyRelease("clicks", 1, each, *each)


def mounts(scenario: Scenario, game: str) -> bool:
    """Whether the scenario selects an attack on click statistics."""
    return scenario.mounts("clicks", game)


def block_of(scenario: Scenario) -> ClickBlock:
    """Return the settings of click statistics in a scenario."""
    block = scenario.pipelines["clicks"]
    if not isinstance(block, ClickBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block


def memoised_of(scenario: Scenario) -> MemoisedClicks | None:
    """Return the memoised mechanism if devices use it at this point."""
    block = block_of(scenario)
    if scenario.variant == "paper" or block.form != "memoised":
        return None
    first = block.first_share * block.epsilon
    return MemoisedClicks(scenario.ad_behaviour.ads, block.epsilon, first, scenario.days)


def delivered_of(scenario: Scenario) -> DeliveredClick | None:
    """Return the response on the delivered ad's click if devices use it at this point.

    Raises:
        BadParameter: The ads come in slates, and what is shown from a slate is a secret.
    """
    block = block_of(scenario)
    if scenario.variant == "paper" or block.form != "delivered":
        return None
    for other in scenario.pipelines.values():
        if isinstance(other, ServesAds) and other.hidden_ad_key:
            raise BadParameter(
                "pipelines.clicks.form",
                block.form,
                "only where a request names the ad that is shown: the report tells that ad, and "
                f"with {other.hidden_ad_key} it is a secret",
            )
    return DeliveredClick(scenario.ad_behaviour.ads, block.epsilon)


def vector_report_of(scenario: Scenario) -> ClickReport:
    """Return the mechanism of daily reports on the whole vector."""
    block, ads = block_of(scenario), scenario.ad_behaviour.ads
    if scenario.variant == "paper":
        return ClickReport(ads, block.epsilon, ClickEncoding.PER_BIT)
    form = ClickEncoding(block.form)
    capped = form in (ClickEncoding.CAPPED, ClickEncoding.PAD_AND_SAMPLE)
    return ClickReport(ads, block.epsilon, form, min(block.most_clicks, ads) if capped else 1)


def dropped_of(scenario: Scenario) -> DroppedClicks | None:
    """Return what protects reports of dropped clicks, if there are any at this point."""
    block = block_of(scenario)
    if memoised_of(scenario) or delivered_of(scenario) or not block.counting_share:
        return None
    limit = vector_report_of(scenario).limit
    return None if limit is None else DroppedClicks(limit, block.epsilon)


def report_of(scenario: Scenario) -> ClickReport | DeliveredClick:
    """Return the mechanism of daily reports that devices use at this point."""
    return delivered_of(scenario) or vector_report_of(scenario)


def fresh_days(scenario: Scenario) -> int:
    """Return on how many days the budget of a user with one device covers a fresh report."""
    budget = Amount.budget(scenario.budget, 0.0).micro_epsilon
    cost = Amount.cost((memoised_of(scenario) or report_of(scenario)).claimed).micro_epsilon
    return min(scenario.days, budget // cost)


def policy_of(scenario: Scenario) -> Exhausted:
    """Return what a device does without budget."""
    return Exhausted(block_of(scenario).exhausted)
