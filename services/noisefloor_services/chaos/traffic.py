"""The frames of a chaos run, and the truth about them, which is computed from the bare numbers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor.wire import (
    ID_BYTES,
    Integers,
    Kind,
    bit_vector_kind,
    grid_kind,
    record_kind,
    seal,
    symbol_kind,
)
from noisefloor_services.chaos.plan import ChaosPlan

CLICKS = bit_vector_kind("clicks", 37)
SCORES = grid_kind("scores", -(1 << 31), 1 << 31)
RATINGS = record_kind("ratings", {"item": Integers(0, 999), "stars": Integers(1, 5)})
KINDS = (CLICKS, SCORES, RATINGS)
EPOCHS = 3

_STRANGE = symbol_kind("strange", 3)
_CYCLE = (CLICKS, CLICKS, SCORES, CLICKS, SCORES, RATINGS)

Rows = NDArray[np.int64]


@dataclass(slots=True)
class ExpectedTotals:
    """What has to come out, by kind and epoch."""

    sums: dict[tuple[str, int], Rows] = field(default_factory=dict)
    rows: dict[tuple[str, int], list[Rows]] = field(default_factory=dict)
    frames: int = 0
    reports: int = 0

    def add(self, kind: Kind, epoch: int, values: Rows) -> None:
        """Count a frame's values."""
        place = (kind.name, epoch)
        if kind == RATINGS:
            self.rows.setdefault(place, []).append(values)
        else:
            self.sums[place] = values.sum(axis=0) + self.sums.get(place, 0)
        self.frames += 1
        self.reports += len(values)


class StreamTraffic:
    """Frames by epoch with the truth about them, poison, and stragglers."""

    def __init__(self, plan: ChaosPlan) -> None:
        self._generator = SeededSource(plan.seed, "chaos").generator()
        self.truth = ExpectedTotals()
        self.by_epoch: list[list[bytes]] = [[] for _ in range(EPOCHS)]
        sizes = _sizes(plan)
        for number, size in enumerate(sizes):
            epoch, kind = number * EPOCHS // len(sizes), _CYCLE[number % len(_CYCLE)]
            values = self._values(kind, size)
            self.by_epoch[epoch].append(self._frame(kind, epoch, values))
            self.truth.add(kind, epoch, values)
        self.poison = [self._poison(number) for number in range(plan.poison)]
        self.stragglers = [
            self._frame(CLICKS, 0, self._values(CLICKS, 3)) for _ in range(plan.stragglers)
        ]

    def shuffled(self, frames: list[bytes], repeated: float) -> list[bytes]:
        """Return frames in random order, a share of them twice."""
        again = [frames[int(at)] for at in self._picked(len(frames), repeated)]
        everything = frames + again
        return [everything[int(at)] for at in self._generator.permutation(len(everything))]

    def _picked(self, count: int, share: float) -> NDArray[np.int64]:
        picked: NDArray[np.int64] = self._generator.choice(count, round(share * count), False)
        return picked

    def _values(self, kind: Kind, size: int) -> Rows:
        if kind == CLICKS:
            return self._generator.integers(0, 2, (size, CLICKS.cells))
        if kind == SCORES:
            return self._generator.integers(-(1 << 31), 1 << 31, (size, 1))
        stars = self._generator.integers(1, 6, size)
        return np.column_stack([self._generator.integers(0, 1000, size), stars])

    def _frame(self, kind: Kind, epoch: int, values: Rows) -> bytes:
        reports: object = values if kind == CLICKS else values[:, 0]
        if kind == RATINGS:
            reports = {"item": values[:, 0], "stars": values[:, 1]}
        return seal(kind, epoch, kind.encode(reports), self._generator.bytes(ID_BYTES))

    def _poison(self, number: int) -> bytes:
        """Return one of three sorts: noise, a kind that nobody knows, rows that break a rule."""
        if number % 3 == 0:
            return self._generator.bytes(200)
        if number % 3 == 1:
            return self._frame_of_a_strange_kind()
        rows = pa.array([b"\xff" * CLICKS.row_bytes], pa.binary(CLICKS.row_bytes))
        batch = pa.RecordBatch.from_arrays([rows], schema=CLICKS.schema)
        return seal(CLICKS, 0, batch, self._generator.bytes(ID_BYTES))

    def _frame_of_a_strange_kind(self) -> bytes:
        rows = _STRANGE.encode(np.array([1]))
        return seal(_STRANGE, 0, rows, self._generator.bytes(ID_BYTES))


def _sizes(plan: ChaosPlan) -> list[int]:
    full, rest = divmod(plan.reports, plan.reports_a_frame)
    return [plan.reports_a_frame] * full + [rest] * bool(rest)


def in_micro_batches(frames: list[bytes], size: int) -> Iterator[list[bytes]]:
    """Cut frames as a producer sends them."""
    for start in range(0, len(frames), size):
        yield frames[start : start + size]
