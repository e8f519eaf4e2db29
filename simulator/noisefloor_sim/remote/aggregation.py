"""The aggregator behind a socket: frames go to the ad server, sums come from the aggregator."""

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.errors import ServicesAway
from noisefloor.roles.ad_server import IMPRESSIONS
from noisefloor.roles.collection import Collection
from noisefloor.roles.epochs import EpochSummary
from noisefloor.roles.outcomes import Counters
from noisefloor.wire.columns import Tally
from noisefloor.wire.kinds import Kind
from noisefloor_sim.remote.addresses import Addresses
from noisefloor_sim.remote.caller import PATIENCE_S, Caller

FRAME_TYPE = "application/vnd.apache.arrow.stream"
_FRAME = {"Content-Type": FRAME_TYPE}
_REFUSED = (409, 410)
"""The epoch is too far ahead, or closed or full: the services count such frames."""


class RemoteAggregation:
    """Counts in a collection of running services.

    Args:
        addresses: Of the services.
        name: Of the collection, which is registered there.
    """

    def __init__(self, addresses: Addresses, name: str) -> None:
        prefix = f"/collections/{name}"
        self._devices = Caller(addresses.ad_server, prefix)
        self._operator = Caller(addresses.aggregator, prefix)
        self._read = {"Authorization": f"Bearer {addresses.token}"}
        self._admin = {"Authorization": f"Bearer {addresses.admin_token or addresses.token}"}

    @property
    def counters(self) -> Counters:
        """Frames by outcome, of everything that the collection took."""
        told = self._settle()
        # What the intake refused is an outcome in the role, which has no intake before it.
        late, again = told["refused_closed"], told["refused_again"]
        dead = told["refused_ahead"] + told["refused_full"]
        return Counters(
            accepted=told["accepted"] + late + again + dead,
            counted=told["counted"],
            duplicates=told["duplicates"] + again,
            late=told["late"] + late,
            dead_letters=told["dead_letters"] + dead,
        )

    def apply(self, data: bytes) -> None:
        """Send one frame, and return once it is promised to be kept, or refused for its epoch."""
        self._devices.call("POST", "/frames", data, _FRAME, known=_REFUSED)

    def close(self, kind: str, epoch: int) -> None:
        """Close an epoch: what was taken before counts. It is repeated until that is counted."""
        self._operator.call("POST", f"/epochs/{kind}/{epoch}/close", b"", self._admin)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        told = self._get(f"/statistics/{kind}/{epoch}")
        return np.asarray(told["cells"], dtype=np.int64), int(told["rows"])

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        answer = self._operator.call("GET", f"/statistics/{kind}/{epoch}", None, self._read)
        with pa.ipc.open_stream(answer.body) as reader:
            return reader.read_next_batch()

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers."""
        told = self._get(f"/epochs/{kind}/{epoch}")
        names = ("is_closed", "frames", "rows", "late_frames", "late_rows")
        return EpochSummary(**{name: told[name] for name in names})

    def model(self) -> bytes | None:
        """Return what devices are told now, if there is one yet."""
        answer = self._devices.call("GET", "/model", known=(404,))
        return answer.body if answer.status == 200 else None

    def answers(self, data: bytes) -> NDArray[np.bool_]:
        """Return a decision for each protected query of a frame."""
        answer = self._devices.call("POST", "/predictions", data, _FRAME)
        return np.asarray(json.loads(answer.body), dtype=np.bool_)

    def give_back(self) -> None:
        """Give the connections back."""
        self._devices.close()
        self._operator.close()

    def _get(self, path: str) -> dict[str, Any]:  # Any: JSON
        told: dict[str, Any] = json.loads(self._operator.call("GET", path, None, self._read).body)
        return told

    def _settle(self) -> dict[str, Any]:  # Any: JSON
        """Wait until nothing is pending, and return what became of every frame."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, 0.002
        while True:
            told = self._get("/conservation")
            if not told["pending"]:
                return told
            if time.monotonic() > deadline:
                raise ServicesAway(
                    f"The aggregator does not count: {told['pending']} frames wait."
                )
            time.sleep(pause_s)
            pause_s = min(0.1, 1.5 * pause_s)


class RemoteImpressions:
    """Impressions are one kind of the collection.

    Args:
        aggregation: Who counts.
        collection: What is collected.
    """

    def __init__(self, aggregation: RemoteAggregation, collection: Collection) -> None:
        self._aggregation = aggregation
        self.kind: Kind = collection.kinds[IMPRESSIONS]
        self.counters = Counters()  # those of the collection hold these frames

    def apply(self, data: bytes) -> None:
        """Send one frame of impressions."""
        self._aggregation.apply(data)

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions."""
        self._aggregation.close(IMPRESSIONS, epoch)

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch."""
        return self._aggregation.release(IMPRESSIONS, epoch)[0]
