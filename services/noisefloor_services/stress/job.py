"""What a stress run is asked to do, as one JSON document on its standard input.

The document may hold a token, so it is in no argument, variable or file. Whoever writes it has
checked it against the rules for users; here wrong documents are refused in one line.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisefloor.errors import BadParameter
from noisefloor_services.stress.client import LoadTarget
from noisefloor_services.stress.knee import KneeSearch
from noisefloor_services.stress.objective import Objective
from noisefloor_services.stress.plan import Phase, check_plannable
from noisefloor_services.stress.target import CountingSide

_MORE = 1.2
"""Requests that are planned beyond those that a percentile needs: not every one is accepted."""

Json = dict[str, Any]  # what json reads


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step of the plan, with its warm-up.

    Attributes:
        name: Of the step.
        rate: Of requests a second, on average over what is measured.
        phases: The warm-up first.
    """

    name: str
    rate: float
    phases: tuple[Phase, ...]

    @property
    def expected(self) -> float:
        """Requests that are expected in what is measured."""
        return sum(phase.expected for phase in self.phases if phase.is_measured)


@dataclass(frozen=True, slots=True)
class StressJob:
    """A whole stress run.

    Attributes:
        seed: Of everything random.
        out: Where figures and histograms are written.
        requests: File of the requests.
        shares: The share of each class of requests, by its name.
        duplicates: The share of requests that repeat an earlier one.
        processes: That send.
        warm_s: Before each step.
        step_s: Of a step of the search.
        repeats: Runs of each step of the plan.
        steps: Of the plan.
        search: For the knee; None for none.
        objective: That steps have to meet.
        target: Where each process sends.
        counting: Who counts.
        pids: Of the processes of the services, by name.
    """

    seed: int
    out: Path
    requests: Path
    shares: Mapping[str, float]
    duplicates: float
    processes: int
    warm_s: float
    step_s: float
    repeats: int
    steps: tuple[StepPlan, ...]
    search: KneeSearch | None
    objective: Objective
    target: LoadTarget
    counting: CountingSide
    pids: Mapping[str, int]

    def at_rate(self, rate: float) -> StepPlan:
        """Return a step of the search; at a low rate it is as long as its percentile needs."""
        seconds = max(self.step_s, _MORE * self.objective.least_requests / rate)
        return StepPlan(f"{rate:g}/s", rate, (*self.warm_up(rate), Phase(rate, rate, seconds)))

    def warm_up(self, rate: float) -> tuple[Phase, ...]:
        """Return the warm-up before a step that begins at a rate."""
        return (Phase(rate, rate, self.warm_s, is_measured=False),) if self.warm_s else ()


def read_job(text: str) -> StressJob:
    """Read a job.

    Raises:
        BadParameter: It breaks a rule.
    """
    try:
        return _job(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, BadParameter):
            raise
        raise BadParameter("job", "<document>", f"a stress job ({type(error).__name__})") from None


def _job(given: Json) -> StressJob:
    search = given["search"]
    target, counting = given["target"], given["counting"]
    job = StressJob(
        **{name: given[name] for name in ("seed", "shares", "duplicates", "processes", "pids")},
        **{name: given[name] for name in ("warm_s", "step_s", "repeats")},
        out=Path(given["out"]),
        requests=Path(given["requests"]),
        steps=tuple(_step(one, given["warm_s"]) for one in given["steps"]),
        search=None if search is None else KneeSearch(**search),
        objective=Objective(**given["objective"]),
        target=LoadTarget(**{**target, "ports": tuple(target["ports"])}),
        counting=CountingSide(**counting),
    )
    _check(job)
    return job


def _step(given: Json, warm_s: float) -> StepPlan:
    measured = tuple(Phase(**phase) for phase in given["phases"])
    first = measured[0].rate
    warm = (Phase(first, first, warm_s, is_measured=False),) if warm_s and first else ()
    seconds = sum(phase.seconds for phase in measured)
    rate = sum(phase.expected for phase in measured) / seconds
    return StepPlan(given["name"], rate, (*warm, *measured))


def _check(job: StressJob) -> None:
    if not job.steps and job.search is None:
        raise BadParameter("steps", 0, "at least one, or a search")
    for step in job.steps:
        check_plannable(step.phases)
        job.objective.check_resolved(step.expected, "requests")
    if job.search is not None:
        check_plannable(job.at_rate(job.search.most).phases)
        job.objective.check_resolved(job.search.start * job.step_s, "requests")
