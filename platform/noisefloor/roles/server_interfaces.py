"""The interfaces of the servers: a role in this process, or a service behind a socket."""

from typing import Protocol

import pyarrow as pa

from noisefloor.accounting import Ledger
from noisefloor.roles.artefact import Artefact
from noisefloor.roles.epochs import EpochSummary
from noisefloor.roles.frame_outcomes import FrameCounters
from noisefloor.roles.model_publisher import ReleaseRequest
from noisefloor.tables import DataRecords, Labels
from noisefloor.wire import Kind, Tally


class EpochReleases(Protocol):
    """Releases what closed epochs hold."""

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        ...

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        ...


class Aggregation(EpochReleases, Protocol):
    """Counts frames exactly once, by kind and epoch."""

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome, once everything that was sent is settled."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame as it came."""
        ...

    def close(self, kind: str, epoch: int) -> None:
        """Freeze an epoch, once or again, after everything that came before."""
        ...

    def retire(self, kind: str, epoch: int) -> None:
        """Drop what is kept of a closed epoch; its frames stay refused for ever."""
        ...

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers."""
        ...


class ImpressionServer(EpochReleases, Protocol):
    """Counts which ads were shown, and which were requested."""

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries impressions."""
        ...

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame of impressions."""
        ...

    def apply_requests(self, data: bytes) -> object:
        """Take one frame of requests; the answer changes nothing that a device shows."""
        ...

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions and requests."""
        ...

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch."""
        ...

    def requests(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the counts of a kind of requests in a closed epoch, and how many there were."""
        ...


class TrainingServer(EpochReleases, Protocol):
    """Broadcasts a model, counts a round's reports, and trains on them."""

    @property
    def content(self) -> bytes:
        """The broadcast of the current round; after the last round, the fitted model."""
        ...

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame of reports."""
        ...

    def close(self, number: int) -> None:
        """Close the current round and train on it."""
        ...

    def answers(self, data: bytes) -> Labels:
        """Return a decision of the fitted model for each protected query of a frame."""
        ...

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers."""
        ...


class PublicationServer(Protocol):
    """Publishes from one data set that may grow, against the data set's own budget."""

    @property
    def data_set(self) -> str:
        """The name of the data set, which requests have to give."""
        ...

    def update(self, records: DataRecords) -> None:
        """Replace the records; what was spent stays spent."""
        ...

    def publish(self, request: ReleaseRequest) -> Artefact:
        """Charge, release and store once; raise BudgetExceeded if too little is left."""
        ...

    def account(self) -> Ledger:
        """Return a ledger in memory with the data set's budget and entries."""
        ...
