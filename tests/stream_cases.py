"""Frames for tests of the streams, and a store of its own for every example."""

import asyncio
from collections.abc import Sequence
from itertools import count

import numpy as np
import pyarrow as pa

from noisefloor.roles import AggregationLimits, Aggregator, EpochSummary
from noisefloor.wire import (
    Integers,
    Kind,
    Text,
    bit_vector_kind,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.frames import decode_frame, seal
from noisefloor_services.store.errors import FrameRefused, StreamFull
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import Producer

CLICKS = bit_vector_kind("clicks", 5)
GRID = grid_kind("grid", -(1 << 31), 1 << 31)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(8)})
KINDS = (CLICKS, GRID, NOTES)
NAMED = {kind.name: kind for kind in KINDS}
STRANGE = symbol_kind("strange", 3)

_names = count()


class HandClock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def frame(kind: Kind, epoch: int, number: int) -> bytes:
    """Write a frame of a few rows that follow from its number."""
    numbers = np.arange(number % 3 + 1) + number
    if kind == CLICKS:
        rows: object = (numbers[:, None] >> np.arange(5)) & 1
    elif kind == GRID:
        rows = (numbers * 715_827_883) % (1 << 32) - (1 << 31)
    else:
        rows = {"age": numbers % 120, "note": [f"n{one}" for one in numbers]}
    return seal(kind, epoch, kind.encode(rows), number.to_bytes(16, "big"))


def broken(number: int, rows: int = 1) -> bytes:
    """Write a frame whose batch id can be read and whose rows break a rule."""
    array = pa.array([b"\xff"] * rows, pa.binary(1))
    padded = pa.RecordBatch.from_arrays([array], schema=CLICKS.schema)
    return seal(CLICKS, 0, padded, number.to_bytes(16, "big"))


GOOD = [frame(kind, epoch, number) for kind in KINDS for epoch in range(3) for number in range(4)]
AHEAD = frame(CLICKS, 32, 7)
OTHER = seal(STRANGE, 0, STRANGE.encode(np.array([1])), bytes(16))
BAD = [b"", b"nonsense", broken(1), broken(1, rows=2), broken(2), OTHER, AHEAD]


def new_store(
    server: Server, partitions: int = 1, *, limits: AggregationLimits | None = None
) -> EpochStore:
    """Prepare a store whose keys nobody else uses."""
    store = EpochStore(server, Layout(f"test{next(_names)}", partitions), KINDS, limits=limits)
    store.prepare()
    return store


def sent(store: EpochStore, frames: Sequence[bytes]) -> EpochStore:
    """Append frames to a store."""
    Producer(store.server, store.layout, store.kinds).append(frames)
    return store


def worked(
    store: EpochStore, frames: Sequence[bytes], *, batch: int = 64, abandoned_s: float = 0.001
) -> EpochStore:
    """Append frames and count them; by default the worker even takes over from itself."""
    Worker(sent(store, frames), batch=batch, abandoned_s=abandoned_s).drain(patience_s=20)
    return store


async def taken_in(ingest: Ingest, data: bytes) -> str:
    """Send one frame through admission, and return how it was answered."""
    try:
        await ingest.append(data, decode_frame(data, NAMED))
    except FrameRefused as refused:
        return refused.reason.value
    except StreamFull:
        return "wait"
    return "taken"


def answered(
    url: str, store: EpochStore, frames: Sequence[bytes], limits: AggregationLimits | None = None
) -> list[str]:
    """Send frames through admission, in one micro-batch, and return the answers."""

    async def scenario() -> list[str]:
        ingest = Ingest(url, store.layout, limits=limits)
        await ingest.start()
        try:
            return await asyncio.gather(*(taken_in(ingest, data) for data in frames))
        finally:
            await ingest.stop()

    return asyncio.run(scenario())


def differences(store: EpochStore, role: Aggregator) -> list[str]:
    """Return in what a store differs from the role that saw the same frames.

    The role has no admission before it: what admission refuses for a closed epoch is late there.
    """
    counters, account = role.counters, store.conservation()
    late, again = account.refused_closed, account.refused_again
    pairs: dict[str, tuple[object, object]] = {
        "letters": (store.dead_letters(), role.dead_letters),
        "accepted": (account.accepted + late + again, counters.accepted),
        "counted": (account.counted, counters.counted),
        "duplicates": (account.duplicates + again, counters.duplicates),
        "late": (account.late + late, counters.late),
        "dead": (account.dead_letters, counters.dead_letters),
        "missing": (account.missing, 0),
    }
    for kind in KINDS:
        # The role also lists an open epoch of which nothing was taken, for lack of room.
        listed = [one for one in role.epochs(kind.name) if not _is_blank(role, kind, one)]
        pairs[f"{kind.name} epochs"] = (list(store.epochs(kind.name)), listed)
        for epoch in role.epochs(kind.name):
            here = f"{kind.name} {epoch}"
            summary = role.summary(kind.name, epoch)
            pairs[f"{here} summary"] = (store.summary(kind.name, epoch), summary)
            if summary.is_closed:
                pairs[here] = (released(store, kind, epoch), released(role, kind, epoch))
    return [f"{name}: {is_} != {has}" for name, (is_, has) in pairs.items() if is_ != has]


def _is_blank(role: Aggregator, kind: Kind, epoch: int) -> bool:
    return role.summary(kind.name, epoch) == EpochSummary(False, 0, 0, 0, 0)


def released(holder: EpochStore | Aggregator, kind: Kind, epoch: int) -> object:
    """Return what a closed epoch comes to, as plain values."""
    if kind == NOTES:
        return holder.release_rows(kind.name, epoch).to_pydict()
    cells, rows = holder.release(kind.name, epoch)
    return cells.tolist(), rows
