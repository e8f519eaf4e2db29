"""A task: rounds of collecting and learning, as bytes that a host need not parse.

Before each round devices receive a broadcast (the content); they answer with reports of the
round's kind; from what the closed round released comes the next content, and the last one is what
the fitted model. A task is a frozen value without state: the same content and the same release
give the same next content, so a step that was cut off is simply taken again.

Protected queries: a frame of them, and a decision for each by the fitted model.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from noisefloor.errors import BadFrame, BadParameter, NotFitted
from noisefloor.tables import Labels
from noisefloor.wire import Kind, Tally, decode_frame


@dataclass(frozen=True, slots=True, eq=False)
class RoundRelease:
    """What a closed round released.

    Attributes:
        count: Reports behind it.
        tally: Integer sums, of a kind that is summed.
        rows: The rows, sorted by content, of a kind that is collected.
    """

    count: int
    tally: Tally | None = None
    rows: pa.RecordBatch | None = None


class TrainingTask(Protocol):
    """Training in rounds."""

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        ...

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round; rounds of one kind are its epochs."""
        ...

    def first(self) -> bytes:
        """Return the broadcast of the first round."""
        ...

    def round_of(self, content: bytes) -> int:
        """Return the round that a content is for; as many as there are rounds after the last."""
        ...

    def next(self, number: int, content: bytes, released: RoundRelease) -> bytes:
        """Return the next content; a round without reports leaves what is known as it is."""
        ...

    @property
    def query_kind(self) -> Kind | None:
        """The kind of frame of protected queries, if the fitted model answers any."""
        ...

    def answers(self, content: bytes, queries: pa.RecordBatch) -> Labels:
        """Return a decision for each protected query, by the fitted model."""
        ...


def kinds_of_task(task: TrainingTask) -> tuple[Kind, ...]:
    """Return the kinds of frame of all rounds, each once."""
    listed = {kind.name: kind for kind in map(task.kind, range(task.rounds))}
    return tuple(listed.values())


MOST_QUERIES = 4096
"""Of one frame; more queries take several frames."""


def answer_queries(task: TrainingTask, content: bytes, data: bytes) -> Labels:
    """Return a decision for each query of a frame, in the order of its rows.

    A query is protected before it is sent, as a report is; nothing is kept of it. A frame of
    another kind raises BadFrame; before the last round is closed, any raises NotLearnt.
    """
    kind = task.query_kind
    if kind is None:
        raise BadParameter("course", type(task).__name__, "one that answers queries")
    if task.round_of(content) < task.rounds:
        raise NotFitted("The last round is not closed yet: there is nothing to answer by.")
    queries = decode_frame(data, {kind.name: kind}).batch
    if queries.num_rows > MOST_QUERIES:
        raise BadFrame("batch", f"has more than {MOST_QUERIES} rows")
    return task.answers(content, queries)
