"""The learner: tells devices something, counts a round's protected reports, and learns from them.

Frames are counted as the aggregator counts them: once by batch id, refused after the close. The
round is the frame's epoch, and only the current round is open. A frame whose kind is not the
round's is counted and never read. Broadcasts and fitted models are bytes that only the task reads.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import replace

import numpy as np
import pyarrow as pa

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadFrame, BadSnapshot, BatchTooSmall
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.batches import BatchTerms
from noisefloor.roles.epochs import AggregationLimits, EpochSummary
from noisefloor.roles.frame_outcomes import FrameCounters, FrameOutcome
from noisefloor.roles.server_interfaces import EpochReleases
from noisefloor.tables import Labels
from noisefloor.tasks import RoundRelease, TrainingTask, answer_queries, kinds_of_task
from noisefloor.wire import Kind, Reduction, Tally, joined

VERSION = 2


class TrainingCoordinator:
    """One task, from the first broadcast to the fitted model.

    Args:
        task: What is collected in rounds, and how the model is fitted.
        limits: Bounds of what is kept; how many epochs may be open is not asked: one.
        terms: On which rounds are released, and trained on.
    """

    __slots__ = ("_aggregator", "_content", "_kinds", "_number", "_task")

    def __init__(
        self,
        task: TrainingTask,
        *,
        limits: AggregationLimits | None = None,
        terms: BatchTerms | None = None,
    ) -> None:
        self._task = task
        self._kinds = kinds_of_task(task)
        self._aggregator = Aggregator(self.kinds, limits=_one_open(limits), terms=terms)
        self._number = 0
        self._content = task.first()

    @property
    def number(self) -> int:
        """The round that is open; as many as there are rounds when all are closed."""
        return self._number

    @property
    def is_done(self) -> bool:
        """Whether every round is closed."""
        return self._number >= self._task.rounds

    @property
    def content(self) -> bytes:
        """The broadcast of the current round; after the last round, the fitted model."""
        return self._content

    @property
    def etag(self) -> str:
        """The hash of the content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self._content, digest_size=16).hexdigest()}"'

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of frame of all rounds, each once."""
        return self._kinds

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        return self._aggregator.counters

    def apply(self, data: bytes) -> FrameOutcome:
        """Count the reports of one frame."""
        return self._aggregator.apply(data)

    def close(self, number: int) -> None:
        """Close the current round and learn from it; closing an earlier one again does nothing.

        A round without reports, or with fewer than the minimum, leaves what is known as it is.
        """
        last = min(self._number, self._task.rounds - 1)
        check_count(number, "number", least=0, most=last)
        if number < self._number:
            return
        own = self._task.kind(number)
        for kind in self.kinds:
            self._aggregator.close(kind.name, number)
            if kind.name != own.name:
                self._aggregator.retire(kind.name, number)
        given = release_round(self._aggregator, own, number)
        self._content = self._task.next(number, self._content, given)
        self._number = number + 1

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed round and the number of rows behind them."""
        return self._aggregator.release(kind, epoch)

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed round collected, sorted by content."""
        return self._aggregator.release_rows(kind, epoch)

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers: reports that count, and those that came too late."""
        check_count(number, "number", least=0, most=self._task.rounds - 1)
        return self._aggregator.summary(self._task.kind(number).name, number)

    def answers(self, data: bytes) -> Labels:
        """Return a decision for each protected query of a frame, by the fitted model."""
        return answer_queries(self._task, self._content, data)

    def snapshot(self) -> bytes:
        """Return everything but the task as bytes: the same bytes for the same state."""
        return _written(self._content, self._aggregator.snapshot())

    @classmethod
    def restore(
        cls, data: bytes, task: TrainingTask, *, limits: AggregationLimits | None = None
    ) -> "TrainingCoordinator":
        """Return the learner that a snapshot was taken of, or raise BadSnapshot."""
        made = cls(task, limits=limits)
        made._content, counted = _read(data)
        try:
            made._number = task.round_of(made._content)
        except BadFrame:
            raise BadSnapshot("Snapshot: is of another task.") from None
        made._aggregator = Aggregator.restore(counted, made.kinds, limits=_one_open(limits))
        if _written(made._content, counted) != data:
            raise BadSnapshot("Learner snapshot: body is not in canonical form.")
        return made


def release_round(counted: EpochReleases, kind: Kind, number: int) -> RoundRelease:
    """Return what a closed round of a kind released; below the minimum, what one without reports.

    A model that learnt from fewer reports than may be released would release them.
    """
    is_collected = kind.reduction is Reduction.COLLECT
    try:
        if is_collected:
            rows = counted.release_rows(kind.name, number)
            return RoundRelease(rows.num_rows, rows=rows)
        tally, count = counted.release(kind.name, number)
        return RoundRelease(count, tally=tally)
    except BatchTooSmall:
        if is_collected:
            return RoundRelease(0, rows=joined(kind, []))
        return RoundRelease(0, tally=np.zeros(kind.cells, dtype=np.int64))


def _one_open(limits: AggregationLimits | None) -> AggregationLimits:
    return replace(limits or AggregationLimits(), open_epochs=1)


def _written(content: bytes, counted: bytes) -> bytes:
    body = {
        "version": VERSION,
        "content": b64encode(content).decode("ascii"),
        "aggregator": b64encode(counted).decode("ascii"),
    }
    checksum = hashlib.sha256(canonical_json(body)).hexdigest()
    return canonical_json({"body": body, "checksum": checksum})


def _read(data: bytes) -> tuple[bytes, bytes]:
    """Return content and the aggregator's snapshot, once version and checksum fit."""
    try:
        outer = json.loads(data.decode("ascii"))
        body, checksum = outer["body"], outer["checksum"]
        if (
            body["version"] != VERSION
            or checksum != hashlib.sha256(canonical_json(body)).hexdigest()
        ):
            raise BadSnapshot(f"Learner snapshot: not of version {VERSION}, or damaged.")
        content = b64decode(body["content"], validate=True)
        return content, b64decode(body["aggregator"], validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadSnapshot("Learner snapshot: is not one.") from None
