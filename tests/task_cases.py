"""Two courses for tests: one over a kind that is summed, one over a kind that is collected.

A step waits while the file ``held`` exists, and fails while the file ``broken`` does.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.errors import BadFrame
from noisefloor.tasks.task_registry import Description, TaskFamily
from noisefloor.tasks.training_task import RoundRelease, TrainingTask
from noisefloor.wire.columns import Integers
from noisefloor.wire.frames import seal
from noisefloor.wire.kinds import Kind, grid_kind, record_kind

VALUES = grid_kind("values", -1000, 1000)
CROWD = record_kind("crowd", {"value": Integers(0, 100), "label": Integers(0, 1)})
QUERIES = record_kind("queries", {"value": Integers(0, 100)})


def written(number: int, **known: object) -> bytes:
    """Write a content."""
    return json.dumps({"round": number, **known}, sort_keys=True).encode()


def read(content: bytes) -> dict[str, Any]:  # Any: JSON
    """Read a content."""
    try:
        describe: dict[str, Any] = json.loads(content)
        return describe
    except ValueError:
        raise BadFrame("content", "is not JSON") from None


@dataclass(frozen=True, slots=True)
class Totals:
    """Adds up what is reported, for three rounds."""

    gate: str = ""
    broken: str = ""
    rounds: int = 3

    @property
    def query_kind(self) -> Kind | None:
        """Nobody asks."""
        return None

    def kind(self, number: int) -> Kind:
        """Every round is of one kind."""
        return VALUES

    def first(self) -> bytes:
        """Begin with nothing."""
        return written(0, total=0)

    def round_of(self, content: bytes) -> int:
        """Read the round."""
        return int(read(content)["round"])

    def next(self, number: int, content: bytes, released: RoundRelease) -> bytes:
        """Add the round's sum."""
        wait_or_fail(self.gate, self.broken)
        assert released.tally is not None and released.rows is None
        return written(number + 1, total=read(content)["total"] + int(released.tally[0]))

    def answers(self, content: bytes, queries: pa.RecordBatch) -> NDArray[np.bool_]:
        """Never called."""
        raise AssertionError


@dataclass(frozen=True, slots=True)
class Threshold:
    """Learns from rows from where on the label is 1; the content tells which rows it saw."""

    gate: str = ""
    broken: str = ""
    rounds: int = 2

    @property
    def query_kind(self) -> Kind | None:
        """Values without a label."""
        return QUERIES

    def kind(self, number: int) -> Kind:
        """Every round is of one kind."""
        return CROWD

    def first(self) -> bytes:
        """Begin with nothing."""
        return written(0, threshold=0, seen="")

    def round_of(self, content: bytes) -> int:
        """Read the round."""
        return int(read(content)["round"])

    def next(self, number: int, content: bytes, released: RoundRelease) -> bytes:
        """Take the least value of a row whose label is 1."""
        wait_or_fail(self.gate, self.broken)
        assert released.rows is not None and released.tally is None
        assert released.count == released.rows.num_rows
        rows = CROWD.decode(released.rows)
        ones = rows["value"][rows["label"] == 1]
        known = read(content)
        threshold = int(ones.min()) if len(ones) else known["threshold"]
        seen = hashlib.sha256(released.rows.serialize().to_pybytes()).hexdigest()
        return written(number + 1, threshold=threshold, seen=seen)

    def answers(self, content: bytes, queries: pa.RecordBatch) -> NDArray[np.bool_]:
        """Compare with the threshold."""
        wait_or_fail(self.gate, self.broken)
        values = QUERIES.decode(queries)["value"]
        return np.asarray(values >= read(content)["threshold"], dtype=np.bool_)


def wait_or_fail(gate: str, broken: str) -> None:
    """Wait while one file exists, for a minute at most; fail if another does."""
    for _ in range(6000):
        if not (gate and Path(gate).exists()):
            break
        time.sleep(0.01)
    if broken and Path(broken).exists():
        raise RuntimeError("broken")


def _family(name: str, made: type[Any]) -> TaskFamily:  # Any: one of the courses above
    def describe(task: TrainingTask) -> dict[str, Any]:  # Any: JSON
        return {"method": name, **asdict(task)}  # type: ignore[call-overload]

    def of(description: Description) -> TrainingTask:
        task: TrainingTask = made(
            **{key: description[key] for key in description if key != "method"}
        )
        return task

    return TaskFamily((name,), made, of, describe)


FAMILIES = (_family("totals", Totals), _family("threshold", Threshold))


def values(number: int, place: int, *reports: int) -> bytes:
    """Write a frame of values."""
    return seal(VALUES, number, VALUES.encode(np.array(reports)), place.to_bytes(16, "big"))


def crowd(number: int, place: int, *reports: tuple[int, int]) -> bytes:
    """Write a frame of rows."""
    value, label = np.array(reports).T
    rows = CROWD.encode({"value": value, "label": label})
    return seal(CROWD, number, rows, place.to_bytes(16, "big"))


def queries(*values: int) -> bytes:
    """Write a frame of queries."""
    return seal(QUERIES, 0, QUERIES.encode({"value": np.array(values)}), bytes(16))
