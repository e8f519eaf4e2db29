"""The block ``load`` of a scenario: what ``noisefloor stress`` sends, how, and what has to hold.

What can be said of a load before anything is started is said here: whether a plan can hold it, and
whether a run of it can resolve its objective.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from noisefloor_sim.scenario.blocks import FROZEN, Probability, rule_error
from noisefloor_sim.scenario.gates import MetricGate, parse_gate, words_of

MOST_PLANNED = 1 << 20
"""Requests of a step: what a plan can hold, and an open epoch of the services counts."""

MOST_CONNECTIONS = 28_000
"""Of 65,536 ports, so many are free for clients on Linux as it comes."""

MOST_RATE = 1e6
_TAIL = 10
"""Values beyond a percentile that a step needs."""

STEP_FIGURES = (
    *("offered", "achieved", "accepted", "goodput", "failed_share", "trusted"),
    "recovered_within_s",
    *("p50_ms", "p90_ms", "p99_ms", "p99-9_ms", "p99_from_send_ms", "send_delay_p99_ms"),
)
"""What a gate may ask of a step, as ``step-1.p99_ms``."""

RUN_FIGURES = (
    *("knee.low", "knee.high", "knee.lower_bound"),
    *("run.conserved", "run.trusted_share", "run.rate_at_objective"),
)
"""What a gate may ask of a run."""


class LoadShares(BaseModel):
    """The share of each class among the requests."""

    model_config = FROZEN

    frames: Probability = Field(
        default=1.0, description="Frames of the scenario's own pipelines, as devices made them."
    )
    reports: Probability = Field(default=0.0, description="Single reports as JSON.")
    requests: Probability = Field(default=0.0, description="Requests for one ad, as JSON.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = self.frames + self.reports + self.requests
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise rule_error(f"Expected shares that add up to 1, got {total:g}.")
        return self


class LoadStep(BaseModel):
    """One step: a constant rate, a ramp to another one, or a rate with a spike in its middle."""

    model_config = FROZEN

    rate: float = Field(gt=0, le=MOST_RATE, description="Requests a second.")
    seconds: float = Field(gt=0, le=3_600, description="How long the step lasts.")
    to_rate: float | None = Field(
        default=None, gt=0, le=MOST_RATE, description="Rate at the end, for a ramp."
    )
    spike_rate: float | None = Field(
        default=None, gt=0, le=MOST_RATE, description="Rate of a spike in the middle."
    )
    spike_s: float = Field(default=1.0, gt=0, le=3_600, description="How long the spike lasts.")

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        if self.to_rate is not None and self.spike_rate is not None:
            raise rule_error("Expected a ramp or a spike, got both.", "spike_rate")
        if self.spike_rate is not None and self.spike_s >= self.seconds:
            raise rule_error(
                f"Expected < seconds ({self.seconds:g}), got {self.spike_s:g}.", "spike_s"
            )
        return self

    @property
    def phases(self) -> tuple[tuple[float, float, float], ...]:
        """Rate at the start, at the end, and seconds of each part."""
        if self.spike_rate is None:
            return ((self.rate, self.to_rate or self.rate, self.seconds),)
        calm_s = (self.seconds - self.spike_s) / 2
        spike = (self.spike_rate, self.spike_rate, self.spike_s)
        return ((self.rate, self.rate, calm_s), spike, (self.rate, self.rate, calm_s))

    @property
    def expected(self) -> float:
        """Requests that are expected in it."""
        return sum((first + last) / 2 * seconds for first, last, seconds in self.phases)


class KneeRange(BaseModel):
    """The search for the rate at which the objective breaks."""

    model_config = FROZEN

    start: float = Field(gt=0, le=MOST_RATE, description="The first rate, in requests a second.")
    most: float = Field(
        default=100_000.0, gt=0, le=MOST_RATE, description="The highest rate that is tried."
    )
    step_s: float = Field(default=5.0, gt=0, le=600, description="Seconds of each step.")

    @model_validator(mode="after")
    def _begins_below_its_end(self) -> Self:
        if self.start > self.most:
            raise rule_error(f"Expected <= most ({self.most:g}), got {self.start:g}.", "start")
        return self


class LoadObjective(BaseModel):
    """What a step has to meet: its latency, its refusals, and whether the services keep up."""

    model_config = FROZEN

    percentile: float = Field(
        default=99.0, ge=50, le=99.99, description="Of the latencies from due time."
    )
    latency_ms: float = Field(
        default=50.0, gt=0, le=60_000, description="Within which it has to be, in milliseconds."
    )
    refused: Probability = Field(
        default=0.001, description="Share that may be refused, time out or be lost, at most."
    )
    lag_grows: bool = Field(
        default=False, description="Whether more may wait to be counted at a step's end."
    )

    @property
    def least_requests(self) -> int:
        """Requests that a step needs so that the percentile has ten values beyond it."""
        return round(_TAIL / (1 - self.percentile / 100))


class OwnServices(BaseModel):
    """The services that are started for the load, where none are named."""

    model_config = FROZEN

    durability: Literal["disk", "memory"] = Field(
        default="disk", description="What an acknowledgement promises."
    )
    partitions: int = Field(default=1, ge=1, le=64, description="Of the streams.")


def _checked_gate(text: str) -> str:
    """Return a gate's text with single spaces, if it is one on a figure."""
    try:
        gate = parse_gate(text)
    except ValueError as error:
        raise rule_error(str(error)) from None
    if not isinstance(gate, MetricGate) or gate.filters:
        raise rule_error("Expected a gate on one figure, such as 'knee.low >= 100'.")
    return " ".join(words_of(text))


LoadGate = Annotated[str, AfterValidator(_checked_gate)]


class Load(BaseModel):
    """What is sent to the services, how, and what has to hold; a run ignores it."""

    model_config = FROZEN

    shares: LoadShares = Field(default=LoadShares(), description="What is sent.")
    duplicates: float = Field(
        default=0.0, ge=0, lt=1, description="Share of requests that repeat the bytes of another."
    )
    rows: int = Field(
        default=1_000, ge=1, le=10_000, description="Reports in a frame, where there are enough."
    )
    processes: int = Field(default=1, ge=1, le=64, description="Client processes that send.")
    connections: int = Field(
        default=512, ge=1, le=MOST_CONNECTIONS, description="Of each process, at most."
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=60, description="Seconds after which no answer is waited for."
    )
    warm_s: float = Field(
        default=1.0, ge=0, le=60, description="Seconds before each step that are not measured."
    )
    repeats: int = Field(
        default=3, ge=1, le=99, description="Runs of each step, in changed orders; odd."
    )
    steps: tuple[LoadStep, ...] = Field(
        default=(), max_length=100, description="Steps of the plan."
    )
    search: KneeRange | None = Field(
        default=None, description="Looks for the rate at which the objective breaks."
    )
    objective: LoadObjective = Field(
        default=LoadObjective(), description="What a step has to meet."
    )
    services: OwnServices = Field(
        default=OwnServices(), description="What is started where no services are named."
    )
    gates: tuple[LoadGate, ...] = Field(
        default=(), max_length=100, description="Conditions that decide the exit code of stress."
    )

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        if not self.steps and self.search is None:
            raise rule_error(
                "Expected steps, a search, or both: without them nothing is sent.", "steps"
            )
        if self.repeats % 2 == 0:
            rule = f"Expected an odd number, so that most runs decide, got {self.repeats}."
            raise rule_error(rule, "repeats")
        if self.processes * self.connections > MOST_CONNECTIONS:
            rule = f"Expected at most {MOST_CONNECTIONS:,} connections of all processes"
            raise rule_error(f"{rule}: more than there are ports for.", "connections")
        for key, measured, warm in self._sizes():
            self._check_size(key, measured, warm)
        return self

    @model_validator(mode="after")
    def _gates_are_on_figures_that_there_are(self) -> Self:
        for text in self.gates:
            name = text.split(" ", 1)[0]
            if name not in self.figures:
                near = f"one of {', '.join(RUN_FIGURES)}, or step-N and a figure of a step"
                raise rule_error(f"Expected a gate on {near}, got '{name}'.", "gates")
        return self

    @property
    def figures(self) -> frozenset[str]:
        """The names of the figures that a gate may be on."""
        steps = (
            f"step-{at}.{name}" for at in range(1, len(self.steps) + 1) for name in STEP_FIGURES
        )
        return frozenset((*RUN_FIGURES, *steps))

    def _sizes(self) -> Iterator[tuple[str, float, float]]:
        """Yield the requests of steps and of their warm-ups, with the key that decides them."""
        for step in self.steps:
            yield "steps", step.expected, step.rate * self.warm_s
        if self.search is not None:
            for rate in (self.search.start, self.search.most):
                yield "search", rate * self.search.step_s, rate * self.warm_s

    def _check_size(self, key: str, measured: float, warm: float) -> None:
        planned = measured + warm
        # A Poisson process exceeds this less than once in 1e15 times.
        if planned + 8 * math.sqrt(planned) + 32 > MOST_PLANNED:
            rule = f"Expected at most {MOST_PLANNED:,} requests in a step, got {planned:,.0f}"
            raise rule_error(f"{rule}: no plan can hold them. Lower the rate or the time.", key)
        least = self.objective.least_requests
        if measured < least:
            rule = (
                f"Expected at least {least:,} requests a step for p{self.objective.percentile:g}"
            )
            raise rule_error(f"{rule}, got {measured:,.0f}: no run can resolve it.", key)
