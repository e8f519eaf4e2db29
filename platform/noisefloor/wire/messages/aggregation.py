"""What the aggregator answers."""

from pydantic import BaseModel


class BatchParameters(BaseModel):
    """The parameters under which a batch is released; null where the collection states nothing.

    Attributes:
        format: Of the answer.
        rows: Reports in the batch.
        threshold: Reports that a batch has to have; 1 is no minimum.
        sensitivity: The most that one report changes the cells, summed over all of them.
        mechanism: By which a device protects one report.
        epsilon: Of one report; "inf" where it is not protected.
        delta: Likewise.
        neighbours: What the guarantee is about.
        reason: Why nothing is guaranteed, or why nothing is known.
    """

    format: int
    rows: int
    threshold: int
    sensitivity: int
    mechanism: str | None
    epsilon: float | str | None
    delta: float | None
    neighbours: str | None
    reason: str


class EpochStatistics(BaseModel):
    """The sums of a closed epoch, how many reports are behind them, and on which terms."""

    kind: str
    epoch: int
    rows: int
    cells: list[int]
    parameters: BatchParameters


class EpochStatus(BaseModel):
    """One epoch in numbers.

    Where there is a minimum, the numbers of an epoch that cannot be read are whole multiples of
    it, rounded down.
    """

    epoch: int
    is_closed: bool
    is_readable: bool
    minimum: int
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
