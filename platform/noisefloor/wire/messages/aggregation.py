"""What the aggregator answers."""

from pydantic import BaseModel


class EpochStatistics(BaseModel):
    """The sums of a closed epoch, and how many reports are behind them."""

    kind: str
    epoch: int
    rows: int
    cells: list[int]


class EpochStatus(BaseModel):
    """One epoch in numbers."""

    epoch: int
    is_closed: bool
    frames: int
    rows: int
    late_frames: int
    late_rows: int


class KindState(BaseModel):
    """One kind of report and the epochs that something is kept of."""

    kind: str
    reduction: str
    cells: int
    columns: list[str]
    epochs: list[EpochStatus]


class ConservationReport(BaseModel):
    """Frames by what became of them; `missing` has to be 0, and no alarm should be raised."""

    accepted: int
    counted: int
    duplicates: int
    dead_letters: int
    late: int
    pending: int
    reports: int
    refused_closed: int
    refused_again: int
    refused_ahead: int
    refused_full: int
    missing: int
    is_conserved: bool
    alarms: list[str]


class CollectionState(BaseModel):
    """The state of the collection."""

    durability: str
    promise: str
    unkept: list[str]
    lacks: list[str]
    partitions: int
    waiting: int
    kinds: list[KindState]
