"""The settings of the ad pipeline in a scenario: training, delivery, auction.

Errors in the words of a scenario: which of its keys does not fit the others.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from noisefloor.errors import BadParameter
from noisefloor_sim.pipelines.ads.result_names import CLAIM_NAMES, METRIC_NAMES
from noisefloor_sim.scenario import (
    FROZEN,
    Attack,
    Attacks,
    PipelineBlock,
    Probability,
    Scenario,
    rule_error,
)

SHARED_KEYS = {"ads": "behaviour.ads", "size": "behaviour.ads"}
"""What the platform calls a key that lies outside the pipeline's settings."""


@contextmanager
def scenario_key_errors(section: str, keys: Mapping[str, str]) -> Iterator[None]:
    """Let errors of the platform name keys of the scenario.

    Args:
        section: The section that the parameters stand in, such as ``pipelines.ads.training``.
        keys: Parameters whose key has another name there.
    """
    try:
        yield
    except BadParameter as error:
        name = SHARED_KEYS.get(error.name) or f"{section}.{keys.get(error.name, error.name)}"
        raise BadParameter(name, error.value, f"{error.rule} (in {section})") from None


TrainingMethod = Literal[
    "spectral", "spectral-lite", "bits", "laplace", "means", "untrained", "open"
]
ChoiceName = Literal[
    "noisy-max",
    "exponential",
    "permute-and-flip",
    "argmax",
    "top-set",
    "slate",
    "random",
    "random-slate",
    "exact",
]


class TrainingBlock(BaseModel):
    """How the ads' model is learned from devices that keep their ratings."""

    model_config = FROZEN

    method: TrainingMethod = Field(
        default="spectral",
        description="Each user reports once, and the server takes an eigen-decomposition "
        "(spectral, or one bit each: spectral-lite); one bit of a gradient a round (bits); noise "
        "on whole gradients (laplace); or, for comparison, ratings in the open (open), means "
        "per ad (means), nothing at all (untrained).",
    )
    epsilon: float = Field(
        default=0.0,
        ge=0,
        le=40,
        description="Claimed for a user who takes part in all rounds; 0: the pipeline's epsilon.",
    )
    dimension: int = Field(default=3, ge=1, le=64, description="Latent factors of the model.")
    rounds: int = Field(
        default=10, ge=1, le=200, description="Rounds of 'bits' and 'laplace'; others have theirs."
    )
    clip: float = Field(
        default=0.03,
        gt=0,
        le=10,
        description="Bound of a gradient's coordinate: public, and 1 in the paper.",
    )
    block_clip: bool = Field(
        default=True,
        description="Whether corrected 'laplace' clips a user's whole gradient in L1, or each "
        "coordinate.",
    )
    rate: float = Field(
        default=0.0, ge=0, le=1e6, description="Learning rate of 'bits' and 'laplace'; 0: by rule."
    )
    local: Literal["ridge", "step"] = Field(
        default="ridge",
        description="How a device finds the taste that it reports with: the best fit, or one "
        "gradient step from its last taste, as the paper does. To choose ads it takes the best "
        "fit.",
    )
    taste_rate: float = Field(
        default=0.1, gt=0, le=10, description="Length of a device's step, with local: step."
    )
    bounded: bool = Field(
        default=True,
        description="Whether 'laplace' keeps tastes and factors in unit balls. The paper does "
        "not: as printed and without bounds, nothing is proved.",
    )
    once: bool = Field(
        default=False, description="Whether each user of 'bits' reports in one round only."
    )
    fallback: bool = Field(
        default=True,
        description="Whether the corrected variant learns protected means per ad, at the same "
        "epsilon, where the predicted noise of the method exceeds its predicted signal. The "
        "paper's variant never does.",
    )
    ridge: float = Field(
        default=0.1, gt=0, le=1e3, description="Weight of the ridge with which tastes are fitted."
    )
    round_h: float = Field(default=1.0, gt=0, le=240, description="Hours that a round is open.")
    drop_out: Probability = Field(
        default=0.05, description="Probability that a device is not there in a round."
    )
    stragglers: Probability = Field(
        default=0.05, description="Share of devices that answer late in a round."
    )
    straggler_h: float = Field(
        default=0.5,
        gt=0,
        le=240,
        description="Mean delay of a straggler; beyond a round: refused.",
    )
    held_out: float = Field(
        default=0.2, gt=0, lt=1, description="Share of ratings kept back, to score predictions."
    )


class DeliveryBlock(BaseModel):
    """How a device asks for ads."""

    model_config = FROZEN

    choice: ChoiceName = Field(
        default="top-set",
        description="The mechanism; the paper's variant has its own noisy max and no choice.",
    )
    epsilon: float = Field(
        default=0.0,
        ge=0,
        le=40,
        description="Claimed for one request; 0: the pipeline's epsilon.",
    )
    score_range: float = Field(
        default=1.0,
        gt=0,
        le=10,
        description="Range R of scores; ratings in [0, 1] are spread to it.",
    )
    top: int = Field(default=3, ge=1, le=1_000, description="Ads in the set of 'top-set'.")
    slate: int = Field(default=5, ge=1, le=1_000, description="Ads in a slate.")
    fresh: Literal["day", "impression"] = Field(
        default="day",
        description="Ask once a day and show what came again, or ask for every impression.",
    )
    exhausted: Literal["popular", "repeat"] = Field(
        default="repeat",
        description="Without budget a device shows popular ads, or what it was given last.",
    )
    shown_epsilon: float = Field(
        default=0.0,
        ge=0,
        le=40,
        description="Claimed for the daily report of the ad shown from a slate; 0: the "
        "pipeline's epsilon.",
    )


class AuctionBlock(BaseModel):
    """The market in which the impressions are sold."""

    model_config = FROZEN

    run: bool = Field(default=False, description="Whether impressions are sold by auction.")
    bidders: int = Field(default=6, ge=2, le=100, description="Advertisers that bid.")
    price: Literal["first", "second"] = Field(default="second", description="What winners pay.")
    floor_micros: int = Field(
        default=2_000, ge=0, le=10**9, description="Least price of an impression, in micros."
    )
    value_micros: int = Field(
        default=1_000_000, ge=1, le=10**9, description="Mean value of a click to an advertiser."
    )
    budget_share: float = Field(
        default=0.6,
        gt=0,
        le=100,
        description="Daily budgets, over what the market would spend without them.",
    )
    users: int = Field(
        default=10_000,
        ge=16,
        le=1_000_000,
        description="Users of the market: impressions of every second one are sold, the others "
        "are the panel whose protected reports bidders learn from.",
    )
    report_epsilon: float = Field(
        default=0.0,
        ge=0,
        le=40,
        description="Claimed for a panel user's daily report of one click; 0: the pipeline's "
        "epsilon.",
    )


ATTACKS: Attacks = {
    "favourite": Attack("the favourite ad, from one request"),
    "favourite-all-days": Attack("the favourite ad, from all fresh requests linked"),
    "favourite-trained": Attack("the favourite ad, from one request scored by the run's model"),
    "favourite-trained-all-days": Attack(
        "the favourite ad, from all fresh requests scored by the run's model, linked"
    ),
    "favourite-reused": Attack(
        "the favourite ad, from all impressions of a day that share a request"
    ),
    "topic": Attack("the favourite topic, from one request"),
    "topic-all-days": Attack("the favourite topic, from all fresh requests linked"),
    "linking": Attack("the other requests of the same person, among twenty"),
    "rated": Attack("whether an ad is rated, from all training reports"),
    "rating": Attack("a rating of 0 or 1, from all training reports"),
    "membership": Attack("whether a person took part in training, among 64"),
    "activity": Attack("who is busy, from how often a device asks, and on which days"),
    "null": Attack("the favourite ad, from a request drawn blindly"),
    "planted": Attack("the favourite ad, from a request in the open"),
    "audit": Attack(
        "the worst pair of inputs of each flow, to audit the claims",
        is_audit=True,
    ),
}
"""What the adversary guesses, by the name of the attack."""


class AdsBlock(PipelineBlock):
    """Advertising without identifiers: training, delivery and, beside it, an auction."""

    metric_names: ClassVar[tuple[str, ...]] = METRIC_NAMES
    claim_names: ClassVar[tuple[str, ...]] = CLAIM_NAMES
    needs_ads: ClassVar[bool] = True
    attacks: ClassVar[Attacks] = ATTACKS

    epsilon: float = Field(
        default=2.0,
        gt=0,
        le=40,
        description="Claimed for all training of a user, and for each request and report, unless "
        "these have an epsilon of their own.",
    )
    training: TrainingBlock = Field(
        default=TrainingBlock(), description="How the ads' model is learned."
    )
    delivery: DeliveryBlock = Field(
        default=DeliveryBlock(), description="How devices ask for ads."
    )
    auction: AuctionBlock = Field(default=AuctionBlock(), description="How impressions are sold.")
    canaries: int = Field(
        default=4_000,
        ge=1_000,
        le=1_000_000,
        description="Devices with known profiles that the adversary is tested on, for each guess.",
    )

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        if self.training.once and self.training.method != "bits":
            raise rule_error("Expected once only with the method bits.", "training")
        if not self.training.bounded and self.training.method != "laplace":
            raise rule_error(
                "Expected bounded: false only with the method laplace: others clip.", "training"
            )
        is_slate = bool(self.hidden_ad_key)
        if self.auction.run and (is_slate or self.delivery.fresh != "day"):
            raise rule_error(
                "Expected a delivery of one ad, asked for once a day: that is what bidders see.",
                "auction",
            )
        return self

    @property
    def hidden_ad_key(self) -> str:
        """The choice of a slate: the device picks what is shown from it, and tells nobody."""
        choice = self.delivery.choice
        is_slate = choice in ("slate", "random-slate")
        return f"pipelines.ads.delivery.choice {choice!r}" if is_slate else ""

    @property
    def training_epsilon(self) -> float:
        """What is claimed for a user who takes part in all training."""
        return self.training.epsilon or self.epsilon

    @property
    def request_epsilon(self) -> float:
        """What is claimed for one request."""
        return self.delivery.epsilon or self.epsilon

    @property
    def shown_epsilon(self) -> float:
        """What is claimed for one report of a shown ad."""
        return self.delivery.shown_epsilon or self.epsilon

    @property
    def report_epsilon(self) -> float:
        """What is claimed for one report of the panel."""
        return self.auction.report_epsilon or self.epsilon


def block_of(scenario: Scenario) -> AdsBlock:
    """Return the settings of the ad pipeline in a scenario."""
    block = scenario.pipelines["ads"]
    if not isinstance(block, AdsBlock):
        raise TypeError("The scenario was read with other pipelines than these.")
    return block
