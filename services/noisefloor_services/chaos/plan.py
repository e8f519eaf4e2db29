"""A chaos run against the streams: its plan, its frames with their expected totals, its outcome.

The expected totals are computed from the bare numbers, not from the frames.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor import wire
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor_services.store import Durability
from noisefloor_services.streams import Conservation

ProgressCallback = Callable[[float], None]
"""Called with the share of a part that is done."""


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """How much goes in, and how much goes wrong.

    Attributes:
        reports: In all frames together.
        reports_a_frame: The last frame may have fewer.
        partitions: Of the streams.
        workers: Processes that count, replaced when they are killed.
        worker_kills: SIGKILLs of workers.
        zombies: Workers that are paused until their entries were claimed, and then resumed.
        server_kills: SIGKILLs of the Redis server; durability ``disk`` has to survive them.
        duplicate_share: Frames that are sent twice, poison included.
        poison: Frames that can never count.
        stragglers: Fresh frames of an epoch that is closed already.
        seed: Of reports, order and faults; when a fault strikes is up to the machine.
        durability: Of the server.
        is_naive: Count with a consumer that acknowledges atomically and looks at nothing: the
            comparison has to fail.
    """

    reports: int = 1_000_000
    reports_a_frame: int = 100
    partitions: int = 2
    workers: int = 3
    worker_kills: int = 50
    zombies: int = 20
    server_kills: int = 4
    duplicate_share: float = 0.05
    poison: int = 100
    stragglers: int = 10
    seed: int = 1
    durability: Durability = Durability.DISK
    is_naive: bool = False

    def __post_init__(self) -> None:
        check_count(self.reports_a_frame, "reports_a_frame", most=10_000)
        check_count(self.reports, "reports", least=100 * self.reports_a_frame)
        check_count(self.workers, "workers", least=2, most=64)
        for name in ("worker_kills", "zombies", "server_kills", "poison", "stragglers"):
            check_count(getattr(self, name), name, least=0, most=10_000)
        if not 0 <= check_finite(self.duplicate_share, "duplicate_share") <= 1:
            raise BadParameter("duplicate_share", self.duplicate_share, "in [0, 1]")


@dataclass(frozen=True, slots=True)
class ChaosOutcome:
    """What a run of a plan came to.

    Attributes:
        faults: Each difference to the truth, in words; none in a good run.
        conservation: Frames by what became of them, at the end.
        frames: That have to count.
        reports: In them.
        worker_kills: That were done.
        zombies: Workers that were paused and resumed.
        server_kills: That were done.
        pending_frames: Pending at workers when those were killed or stopped, in all.
        cells: Integer sums that were compared, one by one.
        longest_pause_s: The longest time without a frame that was settled while some waited;
            restarts of the server are in it.
        elapsed_s: Of it all, the start of the server included.
    """

    faults: tuple[str, ...]
    conservation: Conservation
    frames: int
    reports: int
    worker_kills: int
    zombies: int
    server_kills: int
    pending_frames: int
    cells: int
    longest_pause_s: float
    elapsed_s: float

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults


CLICKS = wire.bit_vector_kind("clicks", 37)
SCORES = wire.grid_kind("scores", -(1 << 31), 1 << 31)
RATINGS = wire.record_kind(
    "ratings", {"item": wire.Integers(0, 999), "stars": wire.Integers(1, 5)}
)
KINDS = (CLICKS, SCORES, RATINGS)
EPOCHS = 3

_STRANGE = wire.symbol_kind("strange", 3)
_CYCLE = (CLICKS, CLICKS, SCORES, CLICKS, SCORES, RATINGS)

Rows = NDArray[np.int64]


@dataclass(slots=True)
class ExpectedTotals:
    """What has to come out, by kind and epoch."""

    sums: dict[tuple[str, int], Rows] = field(default_factory=dict)
    rows: dict[tuple[str, int], list[Rows]] = field(default_factory=dict)
    frames: int = 0
    reports: int = 0

    def add(self, kind: wire.Kind, epoch: int, values: Rows) -> None:
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

    def _values(self, kind: wire.Kind, size: int) -> Rows:
        if kind == CLICKS:
            return self._generator.integers(0, 2, (size, CLICKS.cells))
        if kind == SCORES:
            return self._generator.integers(-(1 << 31), 1 << 31, (size, 1))
        stars = self._generator.integers(1, 6, size)
        return np.column_stack([self._generator.integers(0, 1000, size), stars])

    def _frame(self, kind: wire.Kind, epoch: int, values: Rows) -> bytes:
        reports: object = values if kind == CLICKS else values[:, 0]
        if kind == RATINGS:
            reports = {"item": values[:, 0], "stars": values[:, 1]}
        return wire.seal(kind, epoch, kind.encode(reports), self._generator.bytes(wire.ID_BYTES))

    def _poison(self, number: int) -> bytes:
        """Return one of three sorts: noise, an unknown kind, rows that break a rule."""
        if number % 3 == 0:
            return self._generator.bytes(200)
        if number % 3 == 1:
            return self._frame_of_a_strange_kind()
        rows = pa.array([b"\xff" * CLICKS.row_bytes], pa.binary(CLICKS.row_bytes))
        batch = pa.RecordBatch.from_arrays([rows], schema=CLICKS.schema)
        return wire.seal(CLICKS, 0, batch, self._generator.bytes(wire.ID_BYTES))

    def _frame_of_a_strange_kind(self) -> bytes:
        rows = _STRANGE.encode(np.array([1]))
        return wire.seal(_STRANGE, 0, rows, self._generator.bytes(wire.ID_BYTES))


def _sizes(plan: ChaosPlan) -> list[int]:
    full, rest = divmod(plan.reports, plan.reports_a_frame)
    return [plan.reports_a_frame] * full + [rest] * bool(rest)


def in_micro_batches(frames: list[bytes], size: int) -> Iterator[list[bytes]]:
    """Cut frames as a producer sends them."""
    for start in range(0, len(frames), size):
        yield frames[start : start + size]
