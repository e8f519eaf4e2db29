"""What a pipeline is to the simulator: the one interface that engine, runner and report know."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from noisefloor.privacy import Claim
from noisefloor.roles.aggregator import Aggregator
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import Day
from noisefloor_sim.population import Cohort
from noisefloor_sim.report.spec import Section
from noisefloor_sim.scenario.blocks import PipelineBlock
from noisefloor_sim.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured number, with its confidence interval where it has one.

    Attributes:
        name: Without the pipeline's name, which the runner puts before it.
        value: The number.
        low: Lower end of the 95 % interval; NaN if there is none.
        high: Upper end.
        n: What it was measured on: users, reports, guesses.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """A claim and the mechanism it is about."""

    mechanism: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Findings:
    """What one pipeline found at one point of a sweep."""

    metrics: tuple[Metric, ...]
    claims: tuple[NamedClaim, ...]


@dataclass(frozen=True, slots=True)
class PointFindings:
    """The findings of a pipeline at one point, for its report section."""

    settings: tuple[tuple[str, object], ...]
    scenario: Scenario
    findings: Findings

    def metric(self, name: str) -> Metric | None:
        """Return a metric by name, if it was measured here."""
        return next((found for found in self.findings.metrics if found.name == name), None)


class Pipeline(Protocol):
    """A pipeline at work in one world."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of frames that it sends."""
        ...

    def wake(self, cohort: Cohort, day: int, lived: Day) -> Iterator[bytes]:
        """Let a cohort's devices report at the end of a day: frames that go to the server."""
        ...

    def finish(self, aggregator: Aggregator) -> Findings:
        """Read what the server released, let the adversary guess, and score."""
        ...

    def explain(self, user: int) -> list[str]:
        """Say in lines what spent a user's budget, replayed from the cohort's streams."""
        ...


@dataclass(frozen=True, slots=True)
class PipelineType:
    """Everything a pipeline adds, in one place.

    Attributes:
        name: As in a scenario's ``pipelines``.
        block: The model of its settings there.
        build: Makes the pipeline for a scenario.
        section: Describes its part of the report from the findings at all points.
    """

    name: str
    block: type[PipelineBlock]
    build: Callable[[Scenario], Pipeline]
    section: Callable[[Sequence[PointFindings]], Section]
