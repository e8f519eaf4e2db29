"""The requests of a load, made beforehand from what the devices of the scenario sent.

Rows that the real mechanisms protected are put into frames of the size that the load asks for:
who batches rows needs no trust, since they are protected already. Every frame has a mark where its
batch id goes; the client writes another id into it at each sending.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisefloor.errors import BadScenario, Fault
from noisefloor.randomness import SeededSource
from noisefloor.roles import IMPRESSIONS, CollectionConfig
from noisefloor.wire import MOST_BYTES, Kind, decode_frame, joined, seal
from noisefloor_sim.runs import RecordedFrames
from noisefloor_sim.scenario import Load

CLASSES = ("frames", "reports", "requests")
MARK = bytes.fromhex("00112233445566778899aabbccddeeff")
MOST_FRAMES = 512
"""Distinct frames: at any rate each is sent every second or less often."""

_MOST_FILE = 1 << 26
_HEAD_BYTES = 1 << 13
"""Room for all of a frame but its rows."""

_EPOCHS = 32
"""Epochs that are open at once: frames are spread over them, since each counts so many only."""

_FRAME_TYPE, _JSON_TYPE = "application/vnd.apache.arrow.stream", "application/json"


@dataclass(frozen=True, slots=True)
class RequestBody:
    """One request to be sent.

    Attributes:
        name: Of its class.
        rows: Reports in it.
        path: Below the collection.
        media_type: Of the body.
        body: With the mark where the batch id goes.
    """

    name: str
    rows: int
    path: str
    media_type: str
    body: bytes

    def line(self, prefix: str) -> str:
        """Write it as a line of the file of requests."""
        text = base64.b64encode(self.body).decode()
        row = {"class": self.name, "rows": self.rows, "path": prefix + self.path}
        return json.dumps({**row, "type": self.media_type, "body": text})


def load_collection(recorded: RecordedFrames) -> CollectionConfig:
    """Return what the services collect under load: the kinds, and no task that trains on them."""
    collection = recorded.collection
    return CollectionConfig(collection.catalogue, collection.kinds)


def write_requests(
    path: Path, load: Load, recorded: RecordedFrames, name: str, seed: int
) -> dict[str, int]:
    """Write the file of requests; return how many there are of each class.

    Args:
        path: The file.
        load: What is sent.
        recorded: What devices sent.
        name: Of the collection, which frames have to name.
        seed: Of the order of rows.

    Raises:
        BadScenario: The load asks for requests that this world does not have.
    """
    made = list(_bodies(load, recorded, name, SeededSource(seed, "load")))
    counts = {one: sum(body.name == one for body in made) for one in CLASSES}
    for one, reason in _REASONS.items():
        if getattr(load.shares, one) > 0 and not counts[one]:
            raise BadScenario("load", [Fault(f"load.shares.{one}", reason)])
    prefix = f"/collections/{name}"
    path.write_text("".join(f"{body.line(prefix)}\n" for body in made), encoding="ascii")
    return counts


_REASONS = {
    "frames": "Expected 0: the pipelines of this scenario send no frames.",
    "reports": "Expected 0: no kind of report of this scenario has one column.",
    "requests": "Expected 0: this world has no ads.",
}


def _bodies(
    load: Load, recorded: RecordedFrames, name: str, source: SeededSource
) -> Iterator[RequestBody]:
    rows = _rows_by_kind(recorded)
    for kind_name, (topic_path, batch) in rows.items():
        kind = recorded.collection.kinds[kind_name]
        order = source.child("rows", kind_name).generator().permutation(batch.num_rows)
        shuffled = batch.take(pa.array(order))
        share = max(1, MOST_FRAMES // len(rows))
        yield from _frames(kind, topic_path, shuffled, (load.rows, share), name)
        if load.shares.reports and _is_report(kind_name, recorded.collection):
            yield from _reports(kind, shuffled)
    if load.shares.requests and recorded.collection.catalogue is not None:
        for at in range(len(recorded.collection.catalogue)):
            body = json.dumps({"epoch": at % _EPOCHS, "index": at}).encode()
            yield RequestBody("requests", 1, "/requests", _JSON_TYPE, body)


def _is_report(name: str, collection: CollectionConfig) -> bool:
    """Whether devices report it: impressions and requests are what the ad server counts."""
    return (
        name not in {IMPRESSIONS, *collection.requests}
        and len(collection.kinds[name].columns) == 1
    )


def _rows_by_kind(recorded: RecordedFrames) -> dict[str, tuple[str, pa.RecordBatch]]:
    """Return all rows of each kind that was sent, and the path that takes its frames."""
    kinds, batches = recorded.collection.kinds, dict[str, list[pa.RecordBatch]]()
    for _, data in recorded.frames:
        frame = decode_frame(data, kinds)
        batches.setdefault(frame.kind.name, []).append(frame.batch)
    requests = recorded.collection.requests
    return {
        name: ("/requests" if name in requests else "/frames", joined(kinds[name], parts))
        for name, parts in sorted(batches.items())
    }


def _frames(
    kind: Kind, path: str, batch: pa.RecordBatch, sizes: tuple[int, int], name: str
) -> Iterator[RequestBody]:
    """Cut rows into frames; a rest that is smaller than the others is sent if it is all there is.

    Args:
        kind: Of the frames.
        path: That takes them.
        batch: All rows.
        sizes: Rows of a frame, and frames at most.
        name: Of the collection.
    """
    rows = max(1, min(sizes[0], (MOST_BYTES - _HEAD_BYTES) // kind.row_bytes, batch.num_rows))
    most = min(sizes[1], max(1, _MOST_FILE // (rows * kind.row_bytes + _HEAD_BYTES)))
    for place in range(min(most, batch.num_rows // rows)):
        part = batch.slice(place * rows, rows)
        body = seal(kind, place % _EPOCHS, part, MARK, collection=name)
        yield RequestBody("frames", rows, path, _FRAME_TYPE, body)


def _reports(kind: Kind, batch: pa.RecordBatch) -> Iterator[RequestBody]:
    """Write single reports of a kind of one column as JSON."""
    rows = np.asarray(kind.rows(batch.slice(0, MOST_FRAMES)))
    if rows.dtype == np.bool_:  # bits are 0 and 1 in JSON
        rows = rows.astype(np.uint8)
    for place, row in enumerate(rows.tolist()):
        body = json.dumps({"epoch": place % _EPOCHS, "report": row}).encode()
        yield RequestBody("reports", 1, f"/reports/{kind.name}", _JSON_TYPE, body)
