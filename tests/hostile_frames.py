"""Frames as an attacker writes them: good ones that were changed, and forged ones.

Whoever drives the changes hands in draws: a seeded stream, hypothesis or a fuzzer. What an
aggregator makes of the bytes is judged by a ``Judge``.
"""

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from noisefloor.randomness import Source
from noisefloor.roles import Aggregator, FrameOutcome, FrameStatus
from noisefloor.roles.frame_outcomes import FrameCounters
from noisefloor.roles.kind_registry import kinds_from_sizes
from noisefloor.roles.snapshot import AggregatorContents, encode
from noisefloor.wire import (
    Integers,
    Kind,
    Text,
    bit_vector_kind,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.frames import Frame, seal

CLICKS = bit_vector_kind("clicks", 11)
SYMBOLS = symbol_kind("symbols", 300)
GRID = grid_kind("grid", -5, 70_000)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(12)})
PAIRS = kinds_from_sizes({"rating-directions": {"size": 6}})["rating-directions"]
SLATES = kinds_from_sizes({"ad-slates": {"size": 5, "slate": 2}})["ad-slates"]
KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (CLICKS, SYMBOLS, GRID, NOTES, PAIRS, SLATES)
}
END = b"\xff\xff\xff\xff\0\0\0\0"
FIELDS = {
    *("frame", "header", "epoch", "batch id", "batch"),
    *(name for kind in KINDS.values() for name, _ in kind.columns),
}
"""Every field that a refusal may name."""

REPORTS: Mapping[str, object] = {
    "clicks": np.eye(11, dtype=np.bool_),
    "symbols": np.array([0, 299, 7]),
    "grid": np.array([-5, 70_000, 0, 1]),
    "notes": {"age": np.arange(5), "note": ["", "a", "bc", "déf", "ghij"]},
    "rating-directions": np.eye(6, dtype=np.bool_),
    "ad-slates": np.array([[0, 1], [3, 4]]),
}
GOOD = tuple(
    seal(kind, epoch, kind.encode(REPORTS[name]), bytes([epoch] * 16))
    for name, kind in KINDS.items()
    for epoch in (0, 3)
)


class Draws(Protocol):
    """Whoever decides what is changed."""

    def below(self, bound: int) -> int:
        """Return an integer below the bound."""


class SeededDraws:
    """Draws of a seeded stream, drawn in blocks."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words: Iterator[int] = iter(())

    def below(self, bound: int) -> int:
        """Return an integer below the bound; the bias of 2**-40 changes nothing here."""
        for word in self._words:
            return word % bound
        self._words = iter(self._source.words(4096).tolist())
        return self.below(bound)


_NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 65_535, 65_536, 65_537, 2**31 - 1, 2**31, 2**32 - 1)
_WIDE = (2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 8, 2**64 - 2**31)
_TEXTS = tuple(text.encode() for text in ("version", "kind", "epoch", "batch", "symbols", "bits"))
_EPOCHS = (
    b"-000000001",
    b"9999999999",
    b"0000000031",
    b"0000000032",
    b" 000000000",
    b"00000x0000",
)


def _place(data: bytearray, draws: Draws, size: int) -> int:
    """Return where n bytes begin, mostly in the batch: a changed header ends it early."""
    start = data.find(END[:4], 8) if draws.below(8) else 0
    start = max(0, start)
    return start + size * draws.below(max(1, (len(data) - start) // size))


def _byte(data: bytearray, draws: Draws) -> None:
    if data:
        data[_place(data, draws, 1)] = draws.below(256)


def _bit(data: bytearray, draws: Draws) -> None:
    if data:
        data[_place(data, draws, 1)] ^= 1 << draws.below(8)


def _number(data: bytearray, draws: Draws) -> None:
    """Write a telling number: lengths, offsets and counts lie at multiples of four."""
    place = _place(data, draws, 4)
    data[place : place + 4] = struct.pack("<I", _NUMBERS[draws.below(len(_NUMBERS))])


def _wide(data: bytearray, draws: Draws) -> None:
    numbers, place = (*_NUMBERS, *_WIDE), _place(data, draws, 8)
    data[place : place + 8] = struct.pack("<Q", numbers[draws.below(len(numbers))])


def _cut(data: bytearray, draws: Draws) -> None:
    del data[_place(data, draws, 1) :]


def _drop(data: bytearray, draws: Draws) -> None:
    at = _place(data, draws, 1)
    del data[at : at + 1 + draws.below(16)]


def _repeat(data: bytearray, draws: Draws) -> None:
    at = _place(data, draws, 1)
    data[at:at] = data[at : at + 1 + draws.below(64)]


def _append(data: bytearray, draws: Draws) -> None:
    """Add something behind: an end, a whole frame, or zeros."""
    data += (END, GOOD[draws.below(len(GOOD))], bytes(draws.below(64)))[draws.below(3)]


def _splice(data: bytearray, draws: Draws) -> None:
    """Go on as another frame does from the same place."""
    at, other = _place(data, draws, 1), GOOD[draws.below(len(GOOD))]
    data[at:] = other[at:]


def _word(data: bytearray, draws: Draws) -> None:
    """Change a word of the metadata, in place or by a longer one."""
    word, other = (_TEXTS[draws.below(len(_TEXTS))] for _ in range(2))
    data[:] = data.replace(word, other if draws.below(2) else other[: len(word)].ljust(len(word)))


def _epoch(data: bytearray, draws: Draws) -> None:
    data[:] = data.replace(b"0000000003", _EPOCHS[draws.below(len(_EPOCHS))])


CHANGES: tuple[Callable[[bytearray, Draws], None], ...] = (
    *(_byte, _bit, _bit, _number, _number, _wide, _wide),
    *(_cut, _drop, _repeat, _append, _splice, _word, _epoch),
)


def changed(draws: Draws) -> bytes:
    """Return a frame, good or forged, with an id of its own and after up to four changes."""
    frames = GOOD if draws.below(4) else FORGED
    data = bytearray(frames[draws.below(len(frames))])
    fresh = f"{draws.below(1 << 60):032x}".encode()
    for size in (b"00" * 16, b"03" * 16):
        data[:] = data.replace(size, fresh, 1)
    for _ in range(draws.below(5)):
        CHANGES[draws.below(len(CHANGES))](data, draws)
    return bytes(data)


def _stream(kind: Kind, array: pa.Array, *batches: int, codec: str | None = None) -> bytes:
    """Write a frame of a kind's only column as any writer may, with arrays of other types too."""
    metadata = {"version": "1", "kind": kind.name, "epoch": "0000000003", "batch": "0" * 32}
    field = pa.field(kind.columns[0][0], array.type, nullable=False)
    schema = pa.schema([field], metadata=metadata)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for _ in batches or (1,):
            writer.write_batch(pa.RecordBatch.from_arrays([array], schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _forged() -> Iterator[bytes]:
    """Yield frames that break one rule each, and are written well otherwise."""
    for value in (300, 65_535):
        yield _stream(SYMBOLS, pa.array([1, value], pa.uint16()))
    for number in (-6, 70_001, 2**31 - 1):
        yield _stream(GRID, pa.array([number], pa.int32()))
    for real in (float("nan"), float("inf"), -float("inf"), 1.5):
        yield _stream(GRID, pa.array([real, 1.0], pa.float64()))
    yield _stream(CLICKS, pa.array([b"\xff\xff"], pa.binary(2)))
    yield _stream(PAIRS, pa.array([b"\x40"], pa.binary(1)))
    yield _stream(SYMBOLS, pa.array([1, None, 3], pa.uint16()))
    yield _stream(SYMBOLS, pa.array(np.zeros(60_000, np.uint16)), codec="zstd")
    yield _stream(SYMBOLS, pa.array([1], pa.uint16()), 1, 1)
    yield _stream(SYMBOLS, pa.array([], pa.uint16()))
    yield _stream(SYMBOLS, pa.array(["x"]).dictionary_encode())
    note = pa.array(["far too long for a note"])
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.uint8()), note], schema=NOTES.schema)
    yield seal(NOTES, 3, batch, bytes(16))


FORGED = tuple(_forged())


class Judge:
    """Offers bytes to an aggregator, and fails unless they count exactly as written or not at all.

    A second aggregator gets what counted and nothing else: in the end both hold the same sums.

    Args:
        renewed: After n frames they are compared, and two new ones are taken.
        judged: What is judged; another one than the aggregator tries the judge.
    """

    def __init__(self, renewed: int = 100, judged: type[Aggregator] = Aggregator) -> None:
        self._renewed = renewed
        self._judged = judged
        self._offered: list[bytes] = []
        self._role = judged(KINDS.values())
        self._counted = Aggregator(KINDS.values())
        self.outcomes: Counter[FrameStatus] = Counter()
        self.reasons: Counter[str] = Counter()

    def __call__(self, data: bytes) -> FrameOutcome:
        """Offer one frame."""
        outcome = self._role.apply(data)
        if outcome.status is FrameStatus.COUNTED:
            _check_written(data, outcome.frame)
            self._counted.apply(data)
        elif outcome.status is FrameStatus.DEAD_LETTER:
            assert _REFUSAL.fullmatch(outcome.reason), outcome.reason
        self.outcomes[outcome.status] += 1
        self.reasons[outcome.reason] += 1
        self._offered.append(data)
        if len(self._offered) >= self._renewed:
            self.compare()
        return outcome

    def compare(self) -> None:
        """Fail if a frame that did not count left a trace in the sums."""
        assert _sums(self._role) == _sums(self._counted), [one.hex() for one in self._offered]
        self._offered.clear()
        self._role = self._judged(KINDS.values())
        self._counted = Aggregator(KINDS.values())


_REFUSAL = re.compile(rf"Frame: ({'|'.join(sorted(FIELDS))}) [^.]+\.")
"""A refusal: the field and the rule."""


def _sums(role: Aggregator) -> bytes:
    """Return everything that an aggregator holds but its counters and dead letters."""
    return encode(AggregatorContents(FrameCounters(), (), role._windows))


def _check_written(data: bytes, frame: Frame | None) -> None:
    """Fail unless the values alone, written anew, are the bytes that came."""
    assert frame is not None
    values = frame.kind.encode(frame.kind.decode(frame.batch))
    assert seal(frame.kind, frame.epoch, values, frame.batch_id) == data
