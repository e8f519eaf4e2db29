"""A stress run: every step after a warm-up, in changed orders, then the search for the knee.

Between two steps nothing is sent until everything that was accepted has been counted, so that no
step starts with what the one before it left behind.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor_services.stress.client_processes import ClientProcesses, StepOrder
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.job import StepPlan, StressJob
from noisefloor_services.stress.knee import Knee, find_knee
from noisefloor_services.stress.objective import StepVerdict, judge
from noisefloor_services.stress.plan import RequestMix, check_plannable, make_plan
from noisefloor_services.stress.sampler import Sample, Sampler
from noisefloor_services.stress.step_record import StepRecord
from noisefloor_services.stress.target import check_ready
from noisefloor_services.stress.templates import RequestTemplate, counted, read_templates
from noisefloor_services.stress.usage import CLIENT, Bottleneck, StepUse, bottleneck, use_between

BEYOND = (1.5, 3.0)
"""Multiples of the knee's lower end at which goodput is measured once the knee is known."""

_SETTLE_S = 30.0
_PAUSE_S = 0.1

_NOT_NOW = (AnswerClass.REFUSED_WITH_RETRY, AnswerClass.REFUSED_WITHOUT_RETRY)
_UNKNOWN = (AnswerClass.TIMED_OUT, AnswerClass.LOST)
"""Whether such a request was taken is not known to the client."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """One run of one step.

    Attributes:
        step: What was planned.
        number: Of the run, from 0.
        repeat: Of the step, from 0.
        is_search: Whether the search asked for it.
        planned: Requests in the plan, those of the warm-up included.
        record: What the clients saw.
        verdict: Whether it met the objective.
        use: What everybody used while it was sent.
        cost: What everybody used until everything was counted.
        limit: What was at its limit.
        rows: Reports that have to count, those of the warm-up included.
        frames: Requests that have to count, likewise.
        begun_s: When its plan began, since the start of the run.
        drained_s: How long it took until everything was counted.
    """

    step: StepPlan
    number: int
    repeat: int
    is_search: bool
    planned: int
    record: StepRecord
    verdict: StepVerdict
    use: StepUse
    cost: StepUse
    limit: Bottleneck
    rows: int
    frames: int
    begun_s: float
    drained_s: float


@dataclass(slots=True)
class StressOutcome:
    """What a run came to, also if it was broken off.

    Attributes:
        runs: Of the steps, in the order in which they were run.
        knee: If it was looked for and the search ended.
        samples: Of the whole run.
        begun_s: When it began, by ``time.monotonic``.
        begun_at_s: The same, in seconds since 1970.
    """

    runs: list[StepRun] = field(default_factory=list)
    knee: Knee | None = None
    samples: list[Sample] = field(default_factory=list)
    begun_s: float = field(default_factory=time.monotonic)
    begun_at_s: float = field(default_factory=time.time)


class StressSession:
    """Runs the steps of a job.

    Args:
        job: What is to be done.
        outcome: Where it is noted, step by step, so that it is there if the run is broken off.
        tell: Called after each step.
    """

    def __init__(
        self, job: StressJob, outcome: StressOutcome, tell: Callable[[StepRun], None]
    ) -> None:
        self._job = job
        self._outcome = outcome
        self._tell = tell
        self._kinds = tuple(job.shares)
        self._templates = read_templates(job.requests, self._kinds)
        self._mix = RequestMix(
            counted(self._templates, self._kinds), tuple(job.shares.values()), job.duplicates
        )
        self._cores = os.cpu_count() or 1

    def run(self) -> None:
        """Run every step, then the search."""
        job = self._job
        for port in job.target.ports:
            check_ready(port, "ad server")
        with ClientProcesses(job.processes, job.requests, self._kinds) as clients:
            named = {f"{CLIENT}-{at + 1}": pid for at, pid in enumerate(clients.pids)}
            sampler = Sampler({**job.pids, **named}, job.counting.lag)
            self._outcome.samples = sampler.samples
            with sampler:
                self._steps(clients, sampler)
                if job.search is not None:
                    self._search(clients, sampler)

    def _steps(self, clients: ClientProcesses, sampler: Sampler) -> None:
        steps, source = self._job.steps, SeededSource(self._job.seed, "stress-order")
        for repeat in range(self._job.repeats):
            order = source.child(repeat).generator().permutation(len(steps)).tolist()
            for place in order if repeat else range(len(steps)):
                self._one(clients, sampler, steps[place], repeat, is_search=False)

    def _search(self, clients: ClientProcesses, sampler: Sampler) -> None:
        job = self._job
        if job.search is None:
            return

        def step(rate: float, repeat: int) -> bool:
            planned = job.at_rate(rate)
            return self._one(clients, sampler, planned, repeat, is_search=True).verdict.is_met

        knee = find_knee(job.search, step, SeededSource(job.seed, "stress-search"))
        self._outcome.knee = knee
        for factor in BEYOND if knee.is_found else ():
            with suppress(BadParameter):  # more than a plan can hold
                beyond = job.at_rate(float(f"{factor * knee.low:.4g}"))
                check_plannable(beyond.phases)
                self._one(clients, sampler, beyond, 0, is_search=True)

    def _one(
        self,
        clients: ClientProcesses,
        sampler: Sampler,
        step: StepPlan,
        repeat: int,
        *,
        is_search: bool,
    ) -> StepRun:
        """Run one step once, wait until everything is counted, and note what it came to."""
        job, number = self._job, len(self._outcome.runs)
        order = StepOrder(step.phases, self._mix, job.seed, (number,), job.target)
        first: list[Sample] = []
        begun_s = time.monotonic() - self._outcome.begun_s
        record = clients.send(order, lambda: first.append(sampler.take()))
        last = sampler.take()
        drained_s = self.settle()
        settled = sampler.take()
        use, cost = (_use(sampler, first[0], end, self._cores) for end in (last, settled))
        verdict = judge(record, job.objective, use.lag_grew)
        planned, rows, frames = _to_count(order, record, self._templates)
        run = StepRun(
            *(step, number, repeat, is_search, planned, record, verdict, use, cost),
            bottleneck(
                use,
                cores=self._cores,
                is_trusted=verdict.is_trusted,
                has_refused=record.count(*_NOT_NOW) > job.objective.refused * record.count(),
            ),
            *(rows, frames, begun_s, drained_s),
        )
        self._outcome.runs.append(run)
        self._tell(run)
        return run

    def settle(self) -> float:
        """Wait until nothing waits to be counted; return how long that took."""
        begun_s = time.monotonic()
        while time.monotonic() < begun_s + _SETTLE_S:
            lag = self._job.counting.lag()
            if lag is not None and not lag.pending:
                break
            time.sleep(_PAUSE_S)
        return time.monotonic() - begun_s


def _use(sampler: Sampler, first: Sample, last: Sample, cores: int) -> StepUse:
    samples = [one for one in sampler.samples if first.at_s <= one.at_s <= last.at_s]
    return use_between(samples, cores)


def _to_count(
    order: StepOrder, record: StepRecord, templates: tuple[RequestTemplate, ...]
) -> tuple[int, int, int]:
    """Return the requests of the plan, and the reports and requests in it that have to count."""
    plan = make_plan(order.phases, order.mix, order.seed, *order.step)
    has_id = np.array([bool(one.behind) for one in templates])
    rows = np.array([one.rows for one in templates], np.int64)
    numbers = plan.distinct(record.taken, has_id)
    return len(plan), int(rows[plan.templates[numbers]].sum()), len(numbers)


def unknown_outcomes(outcome: StressOutcome) -> int:
    """Return how many requests were sent of which the client does not know whether they count."""
    return sum(run.record.everywhere(*_UNKNOWN) for run in outcome.runs)
