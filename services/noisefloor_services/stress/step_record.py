"""What a step came to: histograms and counts by second, which add up over processes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor_services.stress.core import AnswerClass, LoadCore
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.plan import SendPlan, Times

FROM_DUE, FROM_SEND, SEND_DELAY = "due", "sent", "delay"
TAGS = (FROM_DUE, FROM_SEND, SEND_DELAY)
_WITH_LATENCY = (AnswerClass.ACCEPTED, AnswerClass.TIMED_OUT)
"""Of these latencies are recorded. A refusal is quick and would make a service look so. A request
that got no answer in time is not left out: it counts with the time for which it was waited."""

Classes = NDArray[np.int64]


@dataclass(slots=True)
class StepRecord:
    """What one process, or all of them, saw of a step.

    Attributes:
        histograms: By tag, a histogram for each second of the step, by the time of being due.
        classes: First sends by second and class of answer.
        warm: Requests of the warm-up by class.
        repeats: Repeats by class of their answers.
        given_up: Requests whose repeats were given up.
        taken: The numbers of requests that were accepted, at the first send or at a repeat.
        sent_in_time: First sends that left before the step was over.
        cpu_s: Processor time of the clients.
        most_open: Connections, at most, summed over processes.
    """

    histograms: dict[str, list[LatencyHistogram]] = field(default_factory=dict)
    classes: Classes = field(default_factory=lambda: np.zeros((0, len(AnswerClass)), np.int64))
    warm: Counter[AnswerClass] = field(default_factory=Counter)
    repeats: Counter[AnswerClass] = field(default_factory=Counter)
    given_up: int = 0
    taken: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    sent_in_time: int = 0
    cpu_s: float = 0.0
    most_open: int = 0

    def whole(self, tag: str) -> LatencyHistogram:
        """Return the histogram of the whole step."""
        return LatencyHistogram.merged(self.histograms.get(tag, ()))

    def count(self, *classes: AnswerClass) -> int:
        """Return how many first sends had one of these outcomes; all of them if none is named."""
        return int(self.classes[:, list(classes or AnswerClass)].sum())

    def everywhere(self, *classes: AnswerClass) -> int:
        """Return how many sends had one of these outcomes, warm-up and repeats included."""
        others = sum(self.warm[one] + self.repeats[one] for one in classes)
        return self.count(*classes) + others


def record_of(core: LoadCore, plan: SendPlan, numbers: Times) -> StepRecord:
    """Make the record of one process's share.

    Args:
        core: After the step.
        plan: The whole plan.
        numbers: Which requests of it the process sent.
    """
    due_us, classes = plan.due_us[numbers], np.frombuffer(core.classes, np.uint8)
    sent_us, done_us = (np.frombuffer(one, np.int64) for one in (core.sent_us, core.done_us))
    is_measured = due_us >= plan.measured_from_us
    seconds = (due_us - plan.measured_from_us) // 1_000_000
    size = -(-(plan.end_us - plan.measured_from_us) // 1_000_000)
    table = np.zeros((size, len(AnswerClass)), np.int64)
    np.add.at(table, (seconds[is_measured], classes[is_measured]), 1)
    answered = is_measured & np.isin(classes, _WITH_LATENCY)
    spans = {
        FROM_DUE: (done_us - due_us, answered),
        FROM_SEND: (done_us - sent_us, answered),
        SEND_DELAY: (sent_us - due_us, is_measured),
    }
    return StepRecord(
        histograms={
            tag: [LatencyHistogram.of(values[chosen & (seconds == at)]) for at in range(size)]
            for tag, (values, chosen) in spans.items()
        },
        classes=table,
        warm=Counter(AnswerClass(one) for one in classes[~is_measured].tolist()),
        repeats=core.repeats,
        given_up=core.given_up,
        sent_in_time=int(np.count_nonzero(is_measured & (sent_us <= plan.end_us))),
        taken=numbers[np.frombuffer(core.taken, np.uint8) > 0],
    )


def merged(records: Iterable[StepRecord]) -> StepRecord:
    """Add the records of several processes; histograms are added bucket by bucket."""
    whole = StepRecord()
    for one in records:
        if not whole.histograms:
            whole.histograms = {
                tag: [LatencyHistogram() for _ in parts] for tag, parts in one.histograms.items()
            }
            whole.classes = np.zeros_like(one.classes)
        for tag, parts in one.histograms.items():
            for own, part in zip(whole.histograms[tag], parts, strict=True):
                own.counts += part.counts
        whole.classes += one.classes
        whole.warm += one.warm
        whole.repeats += one.repeats
        whole.given_up += one.given_up
        whole.taken = np.concatenate([whole.taken, one.taken])
        whole.sent_in_time += one.sent_in_time
        whole.cpu_s += one.cpu_s
        whole.most_open += one.most_open
    return whole
