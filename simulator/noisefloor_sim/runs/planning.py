"""What a run would send and claim, from settings alone: pipelines are built and nothing is run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from noisefloor.errors import MissingData, MissingExtra
from noisefloor.randomness import new_run
from noisefloor.tasks import kinds_of_task
from noisefloor_sim.pipelines import PIPELINES, Pipeline, PlannedClaim
from noisefloor_sim.scenario import Scenario, SweepPoint


@dataclass(frozen=True, slots=True)
class PlannedPipeline:
    """What a pipeline would do at one point.

    Attributes:
        name: Of the pipeline.
        frames: The kinds of frames that devices would send.
        claims: What is known of its claims.
        unknown: Why nothing is known here; empty if something is.
    """

    name: str
    frames: tuple[str, ...]
    claims: tuple[PlannedClaim, ...]
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """What a point of a sweep would do.

    Attributes:
        point: The point.
        pipelines: What each of its pipelines would do.
    """

    point: SweepPoint
    pipelines: tuple[PlannedPipeline, ...]

    @property
    def budget(self) -> float:
        """Epsilon of a user, over all pipelines."""
        return self.point.scenario.budget

    @property
    def debited(self) -> float:
        """What a user's budget would be debited in the run, as far as it is known.

        A pipeline's claims are about different users, or one is a part of another: the largest
        debit is that of the user who takes part in most.
        """
        return math.fsum(max(_user_debits(one), default=0.0) for one in self.pipelines)

    @property
    def is_debit_known(self) -> bool:
        """Whether all that would be debited is known."""
        return all(
            _user_debits(one) or any(claim.budget is not None for claim in one.claims)
            for one in self.pipelines
        )


def _user_debits(pipeline: PlannedPipeline) -> list[float]:
    return [
        claim.debited
        for claim in pipeline.claims
        if claim.debited is not None and claim.budget is None
    ]


def plan_point(point: SweepPoint) -> PlannedPoint:
    """Return what a point would do.

    A library or a data set that is missing leaves the claims of its pipeline unknown. Settings
    that do not go together are refused, as a run would refuse them.
    """
    with new_run():
        return PlannedPoint(point, tuple(_pipelines(point.scenario)))


def _pipelines(scenario: Scenario) -> Iterator[PlannedPipeline]:
    for name, block in sorted(scenario.pipelines.items()):
        try:
            block.check_extras(name)
            pipeline = PIPELINES[name].build(scenario)
            claims = pipeline.planned_claims()
        except (MissingData, MissingExtra) as error:
            yield PlannedPipeline(name, (), (), str(error))
        else:
            yield PlannedPipeline(name, _frames(pipeline), claims)


def _frames(pipeline: Pipeline) -> tuple[str, ...]:
    task = pipeline.training_task
    rounds = () if task is None else kinds_of_task(task)
    return tuple(kind.name for kind in (*pipeline.kinds, *rounds))
