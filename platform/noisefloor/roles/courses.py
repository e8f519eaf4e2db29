"""A course: rounds of collecting and learning, as bytes that whoever hosts it need not understand.

Before each round devices are told something (the content); they answer with reports of the
round's kind; from what the closed round released comes the next content, and the last one is what
was learnt. A course is a frozen value without state: the same content and the same release give
the same next content, so a step that was cut off is simply taken again.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.wire.columns import Tally
from noisefloor.wire.kinds import Kind


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """What a closed round released.

    Attributes:
        count: Reports behind it.
        tally: Integer sums, of a kind that is summed.
        rows: The rows, sorted by content, of a kind that is collected.
    """

    count: int
    tally: Tally | None = None
    rows: pa.RecordBatch | None = None


class Course(Protocol):
    """What is learnt in rounds."""

    @property
    def rounds(self) -> int:
        """How often devices are told something and answer."""
        ...

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round; rounds of one kind are its epochs."""
        ...

    def first(self) -> bytes:
        """Return what devices are told before the first round."""
        ...

    def round_of(self, content: bytes) -> int:
        """Return the round that a content is for; as many as there are rounds after the last."""
        ...

    def next(self, number: int, content: bytes, released: Released) -> bytes:
        """Return the next content; a round without reports leaves what is known as it is."""
        ...

    @property
    def query_kind(self) -> Kind | None:
        """The kind of frame of protected queries, if what was learnt answers such."""
        ...

    def answers(self, content: bytes, queries: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return a decision for each protected query, by what was learnt."""
        ...


def kinds_of_course(course: Course) -> tuple[Kind, ...]:
    """Return the kinds of frame of all rounds, each once."""
    listed = {kind.name: kind for kind in map(course.kind, range(course.rounds))}
    return tuple(listed.values())
