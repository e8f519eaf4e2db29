"""What a step has to meet, and whether it was measured well enough to say so."""

from dataclasses import dataclass

from noisefloor.errors import BadParameter
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.step_record import FROM_DUE, SEND_DELAY, StepRecord

DELAY_US = 1_000
DELAY_SHARE = 0.05
"""A step is trusted if p99 of the send delay is within the larger of 1 ms and so much of p99."""

_FAILED = (
    AnswerClass.REFUSED_WITH_RETRY,
    AnswerClass.REFUSED_WITHOUT_RETRY,
    AnswerClass.REFUSED_FOR_GOOD,
    AnswerClass.TIMED_OUT,
    AnswerClass.LOST,
)
_TAIL = 10
"""Values beyond a percentile that a step needs: fewer, and it is the largest of a handful."""

LAG_SHARE, LEAST_LAG = 0.05, 64
"""A consumer keeps up if no more frames wait at the end of a step than so many, or so much of its
requests: a worker takes up to 64 at once."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What a service has to do at a rate.

    Attributes:
        percentile: Of the latencies from due time.
        latency_ms: Within which it has to be.
        refused: Share of first sends that may be refused, time out or be lost, at most.
        lag_grows: Whether more frames may wait at the end of a step than at its start.
    """

    percentile: float = 99.0
    latency_ms: float = 50.0
    refused: float = 0.001
    lag_grows: bool = False

    @property
    def least_requests(self) -> int:
        """Requests that a step needs so that the percentile has ten values beyond it."""
        return round(_TAIL / (1 - self.percentile / 100))

    def check_resolved(self, requests: float, key: str) -> None:
        """Raise BadParameter if these requests are too few to resolve the percentile.

        Args:
            requests: Of one run of a step.
            key: That decides it.
        """
        if requests < self.least_requests:
            rule = (
                f"enough for {self.least_requests:,} requests a step: a p{self.percentile:g} of "
                "fewer is the largest of a handful"
            )
            raise BadParameter(key, round(requests), rule)


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """Whether a step met the objective.

    Attributes:
        is_met: Whether it did.
        is_trusted: Whether the client kept to its plan.
        broken: Which rules were broken, in words.
    """

    is_met: bool
    is_trusted: bool
    broken: tuple[str, ...]


def is_trusted(record: StepRecord) -> bool:
    """Whether the client kept to its plan in a step."""
    allowed_us = max(DELAY_US, DELAY_SHARE * record.whole(FROM_DUE).percentile_us(99))
    return record.whole(SEND_DELAY).percentile_us(99) <= allowed_us


def failed_share(record: StepRecord) -> float:
    """Return the share of first sends that were refused, timed out or were lost."""
    return record.count(*_FAILED) / max(1, record.count())


def judge(record: StepRecord, objective: Objective, lag_grew: int) -> StepVerdict:
    """Compare a step with the objective.

    Args:
        record: Of the step.
        objective: What it has to meet.
        lag_grew: Frames that wait at its end beyond those at its start.
    """
    found_ms = record.whole(FROM_DUE).percentile_us(objective.percentile) / 1000
    share, broken = failed_share(record), []
    if found_ms > objective.latency_ms:
        limit = f"{objective.latency_ms:g} ms"
        broken.append(f"p{objective.percentile:g} is {found_ms:.3g} ms, above {limit}")
    if share > objective.refused:
        broken.append(f"{share:.2%} were refused or lost, above {objective.refused:.2%}")
    if not objective.lag_grows and lag_grew > max(LEAST_LAG, LAG_SHARE * record.count()):
        broken.append(f"{lag_grew:,} frames more wait at the end than at the start")
    return StepVerdict(not broken, is_trusted(record), tuple(broken))
