"""The section of a scenario that describes the network between devices and services."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from noisefloor_sim.scenario.section import FROZEN, Probability, broken

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
            raise broken(f"Expected > start_h ({self.start_h:g}), got {self.end_h:g}.", "end_h")
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
