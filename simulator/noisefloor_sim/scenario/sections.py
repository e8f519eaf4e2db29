"""The sections of a scenario that describe people: population, devices, behaviour.

The section of a scenario that describes the network between devices and services.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from noisefloor_sim.scenario.blocks import FROZEN, Probability, rule_error

DAY_S = 86_400
LONGEST_H = 366 * 24


class Latency(BaseModel):
    """Log-normal time on the way."""

    model_config = FROZEN

    median_s: float = Field(default=0.2, gt=0, le=DAY_S, description="Median latency, in seconds.")
    spread: float = Field(
        default=0.5,
        ge=0,
        le=5,
        description="Standard deviation of the logarithm; 0: always the median.",
    )


class Outage(BaseModel):
    """A window in which nothing arrives; hours since the start of the run."""

    model_config = FROZEN

    start_h: float = Field(ge=0, le=LONGEST_H, description="When it begins, in hours.")
    end_h: float = Field(gt=0, le=LONGEST_H, description="When it ends, in hours.")

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if self.end_h <= self.start_h:
            raise rule_error(
                f"Expected > start_h ({self.start_h:g}), got {self.end_h:g}.", "end_h"
            )
        return self


class Network(BaseModel):
    """What can happen to a frame on its way."""

    model_config = FROZEN

    latency: Latency = Field(default=Latency(), description="Time on the way.")
    loss: float = Field(
        default=0.0, ge=0, lt=1, description="Probability that one sending is lost."
    )
    duplicate: Probability = Field(
        default=0.0, description="Probability that a frame arrives twice."
    )
    reorder: Probability = Field(
        default=0.0,
        description="Probability that a frame is held back and overtaken by later ones.",
    )
    retries: int = Field(
        default=5, ge=0, le=100, description="How often a frame that was lost is sent again."
    )
    retry_after_s: float = Field(
        default=60.0, gt=0, le=DAY_S, description="Seconds before a lost frame is sent again."
    )
    outages: tuple[Outage, ...] = Field(
        default=(), max_length=1_000, description="Windows in which nothing arrives."
    )
    capacity_frames_per_s: float = Field(
        default=1_000.0,
        gt=0,
        le=1e9,
        description="Frames that the service takes a second; others queue.",
    )


class Threat(BaseModel):
    """What the adversary sees besides the frames and what is published, and what it forges."""

    model_config = FROZEN

    linked: bool = Field(
        default=True,
        description="Whether the server can tell which frames came over one connection.",
    )
    fakes: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="Share of fake devices among all that report, in training and in click "
        "statistics.",
    )
    pushed_ad: int = Field(
        default=0, ge=0, lt=10_000, description="The ad that fake devices push, by its place."
    )
    forgery: Literal["maximal", "evasive", "input"] = Field(
        default="maximal",
        description="Fakes send the report that gains most, one that gains most among those that "
        "look like honest ones, or lie about what they hold and report as they should.",
    )


MOST_USERS = 100_000_000

Hour = Annotated[float, Field(ge=0, lt=24)]


class Witnesses(BaseModel):
    """Users whose secret is decided by a random bit, which the audit has to guess."""

    model_config = FROZEN

    share: float = Field(
        default=0.03,
        ge=0,
        le=0.5,
        description="Of users who exchange their values in pairs, or do not, by a random bit: no "
        "sum changes. 0: none, and claims are not audited.",
    )


class Engagement(BaseModel):
    """How much users look at pages: a heavy-tailed number of views a day."""

    model_config = FROZEN

    mean_views_per_day: float = Field(
        default=12.0, gt=0, le=1_000, description="Page views a day of the mean user."
    )
    tail_exponent: float = Field(
        default=2.5,
        gt=1,
        le=20,
        description="Pareto exponent of the views; the smaller, the heavier the tail. "
        "At 1 and below there is no mean.",
    )


class Population(BaseModel):
    """How many users there are and what they are like."""

    model_config = FROZEN

    users: int = Field(
        default=10_000,
        ge=1,
        le=MOST_USERS,
        description="Users in the world; a hundred million is the most that a run takes.",
    )
    cohort: int = Field(
        default=1_024,
        ge=16,
        le=65_536,
        description="Users per cohort, the unit of randomness and of memory; "
        "changing it changes all random draws.",
    )
    topics: int = Field(
        default=12, ge=1, le=1_000, description="Topics that interests are mixed of."
    )
    interests_concentration: float = Field(
        default=0.3,
        gt=0,
        le=1_000,
        description="Dirichlet concentration of a user's interests; small: few topics each.",
    )
    engagement: Engagement = Field(
        default=Engagement(), description="How much users look at pages."
    )
    churn_per_day: float = Field(
        default=0.01,
        ge=0,
        lt=1,
        description="Probability that a user leaves for good on a given day.",
    )


class Tastes(BaseModel):
    """What users truly like: it makes their ratings, and the lift of their clicks.

    ``topics`` follows from a user's interests; ``low-rank`` is 0.5 + the ad's appeal + taste times
    factors, with a known truth; ``movielens-100k`` draws each user's ratings from the 943 people
    of that data set, with replacement, for its most rated films.
    """

    model_config = FROZEN

    source: Literal["topics", "low-rank", "movielens-100k"] = Field(
        default="topics", description="Where tastes come from."
    )
    dimension: int = Field(
        default=3, ge=1, le=100, description="Latent factors of the 'low-rank' truth."
    )
    spread: float = Field(
        default=0.2, ge=0, le=10, description="Deviation of taste times factors in 'low-rank'."
    )
    appeal: float = Field(
        default=0.1, ge=0, le=10, description="Deviation of the ads' own appeal in 'low-rank'."
    )
    noise: float = Field(
        default=0.1, ge=0, le=10, description="Deviation of a rating from the taste in 'low-rank'."
    )
    rated_skew: float = Field(
        default=0.0,
        ge=0,
        le=5,
        description="Power by which being rated falls with an ad's rank in 'low-rank'; 0: even.",
    )
    rated_for_liking: float = Field(
        default=0.0,
        ge=0,
        le=20,
        description="How much likelier liked ads are rated in 'low-rank'; 0: missing at random.",
    )


class Shares(BaseModel):
    """Which kinds of devices users own, each kind by itself.

    A user for whom none is drawn owns the likeliest kind: everybody has at least one device.
    """

    model_config = FROZEN

    phone: Probability = Field(default=0.95, description="Share of users who own a phone.")
    laptop: Probability = Field(default=0.6, description="Share of users who own a laptop.")
    wearable: Probability = Field(default=0.2, description="Share of users who own a wearable.")

    @model_validator(mode="after")
    def _someone_owns_something(self) -> Self:
        if not (self.phone or self.laptop or self.wearable):
            raise rule_error("Expected a share above 0: every user has at least one device.")
        return self


class Offline(BaseModel):
    """Spells without a connection, of exponential length."""

    model_config = FROZEN

    start_per_day: Probability = Field(
        default=0.05, description="Probability that a spell begins for a device on a given day."
    )
    mean_h: float = Field(
        default=8.0, gt=0, le=8_784, description="Mean length of a spell, in hours."
    )


class Devices(BaseModel):
    """What users own and how well it is connected."""

    model_config = FROZEN

    shares: Shares = Field(default=Shares(), description="Which kinds of devices users own.")
    sync_per_day: Probability = Field(
        default=0.9,
        description="Probability that a device that is online syncs with its siblings a day.",
    )
    offline: Offline = Field(default=Offline(), description="Spells without a connection.")


class Behaviour(BaseModel):
    """What users are shown and what they click."""

    model_config = FROZEN

    ads: int = Field(default=20, ge=2, le=10_000, description="Ads in the catalogue.")
    slots_per_view: int = Field(default=2, ge=1, le=100, description="Ads shown on one page view.")
    popularity: float = Field(
        default=0.5,
        ge=0,
        le=5,
        description="Power by which an ad's share of impressions falls with its rank; 0: even.",
    )
    peak_hours: tuple[Hour, ...] = Field(
        default=(8.0, 13.0, 20.0),
        min_length=1,
        max_length=24,
        description="Hours of the day, from 0 to 24, around which activity is highest.",
    )
    weekend_factor: float = Field(
        default=1.2,
        ge=0,
        le=100,
        description="Activity on a day of the weekend over that of a weekday.",
    )
    click_base_rate: Probability = Field(
        default=0.02, description="Probability of a click in the first slot without any interest."
    )
    click_rates: Literal["even", "open-bandit"] = Field(
        default="even",
        description="Base rate of each ad: the same for all, or as far from it as the items of "
        "Open Bandit are from their mean.",
    )
    interest_lift: float = Field(
        default=4.0,
        ge=0,
        le=1_000,
        description="How many times likelier a click is at full interest.",
    )
    page_affinity: float = Field(
        default=1.0,
        ge=0,
        le=20,
        description="How strongly pages follow likings: the chance of a page is as this power of "
        "how much the user cares for its topic; 0: pages of all topics alike.",
    )
    rated_share: Probability = Field(
        default=0.3, description="Share of ads that a user's device holds a rating of."
    )
    position_decay: float = Field(
        default=0.7, gt=0, le=1, description="Factor on the click rate for each slot further down."
    )

    @model_validator(mode="after")
    def _slots_can_be_filled(self) -> Self:
        if self.slots_per_view > self.ads:
            raise rule_error(
                f"Expected at most as many slots as ads ({self.ads}), got {self.slots_per_view}.",
                "slots_per_view",
            )
        return self
