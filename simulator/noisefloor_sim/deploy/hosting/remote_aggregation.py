"""The aggregator behind a socket: frames go to the ad server, sums come from the aggregator."""

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa

from noisefloor.errors import ServicesUnavailable
from noisefloor.roles import (
    IMPRESSIONS,
    CollectionConfig,
    EpochSummary,
    FrameCounters,
    FrameOutcome,
    FrameStatus,
)
from noisefloor.tables import Labels
from noisefloor.wire import Kind, Tally
from noisefloor_sim.deploy.service_client import PATIENCE_S, ServiceAddresses, ServiceClient

FRAME_TYPE = "application/vnd.apache.arrow.stream"
_FRAME = {"Content-Type": FRAME_TYPE}
_REFUSED = {409: FrameStatus.DEAD_LETTER, 410: FrameStatus.LATE}
"""The epoch is too far ahead, or closed or full: the services count such frames."""


class RemoteAggregation:
    """Counts in a collection of running services.

    Args:
        addresses: Of the services.
        name: Of the collection, which is registered there.
    """

    def __init__(self, addresses: ServiceAddresses, name: str) -> None:
        prefix = f"/collections/{name}"
        self._devices = ServiceClient(addresses.ad_server, prefix)
        self._operator = ServiceClient(addresses.aggregator, prefix)
        self._read = {"Authorization": f"Bearer {addresses.token}"}
        self._admin = {"Authorization": f"Bearer {addresses.admin_token or addresses.token}"}

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome, of everything that the collection took."""
        reply = self._settle()
        # What the intake refused is an outcome in the role, which has no intake before it.
        late, again = reply["refused_closed"], reply["refused_again"]
        dead = reply["refused_ahead"] + reply["refused_full"]
        return FrameCounters(
            accepted=reply["accepted"] + late + again + dead,
            counted=reply["counted"],
            duplicates=reply["duplicates"] + again,
            late=reply["late"] + late,
            dead_letters=reply["dead_letters"] + dead,
        )

    def apply(self, data: bytes) -> FrameOutcome:
        """Send one frame, and say whether it is promised to be kept or refused for its epoch."""
        return self._sent("/frames", data)

    def apply_requests(self, data: bytes) -> FrameOutcome:
        """Send one frame of requests, and return as ``apply`` does."""
        return self._sent("/requests", data)

    def _sent(self, path: str, data: bytes) -> FrameOutcome:
        answer = self._devices.call("POST", path, data, _FRAME, known=tuple(_REFUSED))
        return FrameOutcome(_REFUSED.get(answer.status, FrameStatus.COUNTED))

    def close(self, kind: str, epoch: int) -> None:
        """Close an epoch: what was taken before counts. It is repeated until that is counted."""
        self._operator.call("POST", f"/epochs/{kind}/{epoch}/close", b"", self._admin)

    def retire(self, kind: str, epoch: int) -> None:
        """Drop what is kept of a closed epoch; its frames stay refused for ever."""
        self._operator.call("POST", f"/epochs/{kind}/{epoch}/retire", b"", self._admin)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        reply = self._get(f"/statistics/{kind}/{epoch}")
        return np.asarray(reply["cells"], dtype=np.int64), int(reply["rows"])

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        answer = self._operator.call("GET", f"/statistics/{kind}/{epoch}", None, self._read)
        with pa.ipc.open_stream(answer.body) as reader:
            return reader.read_next_batch()

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers."""
        reply = self._get(f"/epochs/{kind}/{epoch}")
        names = ("is_closed", "frames", "rows", "late_frames", "late_rows")
        return EpochSummary(**{name: reply[name] for name in names})

    def model(self) -> bytes | None:
        """Return the current broadcast, if there is one yet."""
        answer = self._devices.call("GET", "/model", known=(404,))
        return answer.body if answer.status == 200 else None

    def answers(self, data: bytes) -> Labels:
        """Return a decision for each protected query of a frame."""
        answer = self._devices.call("POST", "/predictions", data, _FRAME)
        return np.asarray(json.loads(answer.body), dtype=np.uint8)

    def disconnect(self) -> None:
        """Give the connections back."""
        self._devices.close()
        self._operator.close()

    def _get(self, path: str) -> dict[str, Any]:  # Any: JSON
        reply: dict[str, Any] = json.loads(self._operator.call("GET", path, None, self._read).body)
        return reply

    def _settle(self) -> dict[str, Any]:  # Any: JSON
        """Wait until nothing is pending, and return what became of every frame."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, 0.002
        while True:
            reply = self._get("/conservation")
            if not reply["pending"]:
                return reply
            if time.monotonic() > deadline:
                raise ServicesUnavailable(
                    f"The aggregator does not count: {reply['pending']} frames wait."
                )
            time.sleep(pause_s)
            pause_s = min(0.1, 1.5 * pause_s)


class RemoteImpressions:
    """Impressions and requests are kinds of the collection.

    Args:
        aggregation: Who counts.
        collection: What is collected.
    """

    def __init__(self, aggregation: RemoteAggregation, collection: CollectionConfig) -> None:
        self._aggregation = aggregation
        self.kind: Kind = collection.kinds[IMPRESSIONS]
        self._requests = tuple(collection.requests)
        self.counters = FrameCounters()  # those of the collection hold these frames

    def apply(self, data: bytes) -> FrameOutcome:
        """Send one frame of impressions."""
        return self._aggregation.apply(data)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        return self._aggregation.release(kind, epoch)

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        return self._aggregation.release_rows(kind, epoch)

    def apply_requests(self, data: bytes) -> FrameOutcome:
        """Send one frame of requests."""
        return self._aggregation.apply_requests(data)

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions and requests."""
        for kind in (IMPRESSIONS, *self._requests):
            self._aggregation.close(kind, epoch)

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch."""
        return self._aggregation.release(IMPRESSIONS, epoch)[0]

    def requests(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the counts of a kind of requests in a closed epoch, and how many there were."""
        return self._aggregation.release(kind, epoch)
