"""The aggregator: exact integer sums and collected rows, from frames that may come twice.

A pure state machine: bytes in, outcome out; no clock, no socket. It knows the two reductions and
no pipeline. A frame counts once by its batch id, so order and repetition do not matter: the
state is a function of the set of frames and of which were there when an epoch was closed. (Batch
ids are random: two honest frames never share one. A frame that re-uses an id is a repeat.)

Services refuse a frame of a closed, full or far epoch before they accept it, by the same rules; a
frame that comes to this state machine nevertheless has the outcome that it has here.

What is released, and of how many reports at least, is said in ``batches``.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from noisefloor.checks import check_count
from noisefloor.errors import BadFrame, BadParameter, EpochOpen
from noisefloor.roles import snapshot as snapshots
from noisefloor.roles.batches import BatchTerms, rows_answer, sums_answer
from noisefloor.roles.epochs import AggregationLimits, EpochState, EpochSummary, EpochWindow
from noisefloor.roles.frame_outcomes import DeadLetter, FrameCounters, FrameOutcome, FrameStatus
from noisefloor.wire import FIRST, MOST_EPOCH, Frame, Kind, Reduction, Tally, decode_frame


class Aggregator:
    """Sums and collections of several kinds, by epoch.

    Args:
        kinds: What is accepted; a frame of another kind is a dead letter.
        first_epoch: The oldest epoch that is open at the start.
        limits: Bounds of what is kept.
        terms: On which batches are released; by default every one is, and states nothing.
        collections: The names of which a frame may have one; by default it has none.
    """

    __slots__ = (
        "_collections",
        "_counters",
        "_kinds",
        "_letters",
        "_limits",
        "_terms",
        "_windows",
    )

    def __init__(
        self,
        kinds: Iterable[Kind],
        first_epoch: int = 0,
        *,
        limits: AggregationLimits | None = None,
        terms: BatchTerms | None = None,
        collections: Sequence[str] = FIRST,
    ) -> None:
        check_count(first_epoch, "first_epoch", least=0, most=MOST_EPOCH)
        listed = list(kinds)
        self._limits = limits or AggregationLimits()
        self._terms = terms or BatchTerms()
        self._collections = tuple(collections)
        self._kinds = {kind.name: kind for kind in listed}
        if not listed or len(self._kinds) < len(listed):
            raise BadParameter("kinds", sorted(self._kinds), "at least one, each named once")
        width = self._limits.open_epochs
        self._windows = {kind.name: EpochWindow(kind, first_epoch, width) for kind in listed}
        self._letters: dict[str, DeadLetter] = {}
        self._counters = FrameCounters()

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        return self._counters

    @property
    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The dead letters that are kept, sorted by key."""
        return tuple(self._letters[key] for key in sorted(self._letters))

    def apply(self, data: bytes, kinds: Mapping[str, Kind] | None = None) -> FrameOutcome:
        """Take one frame as it came, and say what became of it.

        Args:
            data: The frame.
            kinds: Those that are accepted here, some of its own; by default all of them.
        """
        outcome = self._judge(data, self._kinds if kinds is None else kinds)
        self._counters = self._counters.plus(outcome.status)
        return outcome

    def close(self, kind: str, epoch: int) -> None:
        """Freeze an epoch, once or again: frames that come later are refused and counted."""
        window = self._window(kind)
        check_count(epoch, "epoch", least=0, most=window.floor + window.width - 1)
        if not window.is_closed(epoch):
            window.close(epoch)

    def answer(self, kind: str, epoch: int) -> bytes:
        """Return what is released of a closed epoch, with its parameters: ever the same bytes."""
        known = self._window(kind).kind
        state = self._closed_state(kind, epoch, known.reduction)
        parameters = self._terms.parameters(known, state.rows)
        if known.reduction is Reduction.COLLECT:
            return rows_answer(state.collected(), parameters)
        return sums_answer(kind, epoch, state.tally, parameters)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        state = self._closed_state(kind, epoch, Reduction.SUM)
        return state.tally.copy(), state.rows

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        return self._closed_state(kind, epoch, Reduction.COLLECT).collected()

    def retire(self, kind: str, epoch: int) -> None:
        """Drop sums, rows and seen ids of a closed epoch; its frames stay refused for ever."""
        window = self._window(kind)
        if not window.is_closed(epoch):
            raise EpochOpen(f"Epoch {epoch} of {kind} is open: close it before it is retired.")
        window.states.pop(epoch, None)

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers."""
        return self._window(kind).summary(epoch)

    def epochs(self, kind: str) -> tuple[int, ...]:
        """Return the epochs of a kind that something is kept of."""
        return tuple(sorted(self._window(kind).states))

    def snapshot(self) -> bytes:
        """Return everything as bytes: the same bytes for the same state, whatever its history."""
        contents = snapshots.AggregatorContents(
            self._counters, self.dead_letters, self._windows, self._terms
        )
        return snapshots.encode(contents)

    @classmethod
    def restore(
        cls,
        data: bytes,
        kinds: Iterable[Kind],
        *,
        limits: AggregationLimits | None = None,
        minimum: int = 1,
        collections: Sequence[str] = FIRST,
    ) -> "Aggregator":
        """Return the aggregator that a snapshot was taken of, or raise BadSnapshot.

        Args:
            data: The snapshot.
            kinds: What is accepted.
            limits: Bounds of what is kept.
            minimum: Reports that a batch has to have, if that is more than it was so far.
            collections: The names of which a frame may have one.
        """
        made = cls(kinds, limits=limits, collections=collections)
        contents = snapshots.decode(data, made._kinds, made._limits.open_epochs)
        made._terms = replace(contents.terms, minimum=max(minimum, contents.terms.minimum))
        made._counters = contents.counters
        made._letters = {letter.key: letter for letter in contents.dead_letters}
        made._windows = contents.windows
        return made

    def _judge(self, data: bytes, kinds: Mapping[str, Kind]) -> FrameOutcome:
        try:
            frame = decode_frame(
                data,
                kinds,
                most_bytes=self._limits.frame_bytes,
                collections=self._collections,
            )
        except BadFrame as error:
            return self._bury(data, error.batch_id, str(error))
        window = self._windows[frame.kind.name]
        if window.is_ahead(frame.epoch):
            return self._bury(data, frame.batch_id, "Frame: epoch is too far ahead.")
        if window.is_closed(frame.epoch):
            return self._refuse(frame, window.states.get(frame.epoch))
        state = window.state(frame.epoch)
        if state.has(frame.batch_id):
            return FrameOutcome(FrameStatus.DUPLICATE, "was counted before", frame)
        if not state.has_room_for(frame, self._limits):
            return self._bury(data, frame.batch_id, "Frame: epoch is full.")
        state.count(frame)
        return FrameOutcome(FrameStatus.COUNTED, frame=frame)

    def _refuse(self, frame: Frame, state: EpochState | None) -> FrameOutcome:
        """Refuse a frame of a closed epoch; duplicates are detected while ids are retained."""
        if state is not None:
            if state.has(frame.batch_id):
                return FrameOutcome(FrameStatus.DUPLICATE, "was dealt with before", frame)
            state.refuse_late(frame, self._limits)
        return FrameOutcome(FrameStatus.LATE, "epoch is closed", frame)

    def _bury(self, data: bytes, batch_id: bytes | None, reason: str) -> FrameOutcome:
        """Put a frame with the dead letters, once, within bounds."""
        key = f"id:{batch_id.hex()}" if batch_id else f"digest:{_digest(data)}"
        letter = DeadLetter(key, reason, len(data))
        if key in self._letters:
            # One id, two faults: which of them is kept must not depend on the order.
            self._letters[key] = min(letter, self._letters[key])
            return FrameOutcome(FrameStatus.DUPLICATE, "is a dead letter already")
        if len(self._letters) < self._limits.dead_letters:
            self._letters[key] = letter
        return FrameOutcome(FrameStatus.DEAD_LETTER, reason)

    def _window(self, kind: str) -> EpochWindow:
        if kind not in self._windows:
            raise BadParameter("kind", kind, f"one of {', '.join(sorted(self._windows))}")
        return self._windows[kind]

    def _closed_state(self, kind: str, epoch: int, reduction: Reduction) -> EpochState:
        window = self._window(kind)
        if window.kind.reduction is not reduction:
            raise BadParameter("kind", kind, f"one whose reduction is {reduction.value}")
        if not window.is_closed(epoch):
            raise EpochOpen(f"Epoch {epoch} of {kind} is open: close it before it is released.")
        if epoch not in window.states:
            raise BadParameter("epoch", epoch, "one that is kept (it was retired, or never open)")
        self._terms.check_rows(kind, epoch, window.states[epoch].rows)
        return window.states[epoch]


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
