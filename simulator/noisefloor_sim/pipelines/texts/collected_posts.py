"""Posts on their way: what devices send, and what the provider has collected of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.publication.text import posted_records, posted_texts_kind, posts_of
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords
from noisefloor.wire import Kind
from noisefloor_sim.inspection import DeviceFrame, PlainFlow, device_frames
from noisefloor_sim.pipelines.api import SimulationContext
from noisefloor_sim.pipelines.texts.posts import UserPosts
from noisefloor_sim.world import Cohort, in_contact

FLOW = "posted text"
"""What devices send, as it is inspected where it arrives."""

Flags = NDArray[np.bool_]

_NOT_YET = -1


@dataclass(slots=True)
class PostSending:
    """Sends each post once, at the first contact of its user from its day on.

    Attributes:
        posts: Of all users.
        kind: Of the frames.
        source: Of order and ids of frames.
        day: On which each post was sent, or would have been if it had been drawn as posted;
            below 0 for posts that are still to come.
    """

    posts: UserPosts
    kind: Kind
    source: SeededSource
    day: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.day = np.full(self.posts.count, _NOT_YET, dtype=np.int64)

    def send(self, cohort: Cohort, day: int) -> Iterator[DeviceFrame]:
        """Yield the frames of a cohort's day."""
        posts = self.posts
        ends = np.searchsorted(posts.users, [cohort.first, cohort.first + len(cohort)])
        own = np.arange(*ends)
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        is_there = np.asarray(contact.any(axis=1))[posts.users[own] - cohort.first]
        is_due = ~posts.is_test[own] & (posts.days[own] <= day) & (self.day[own] == _NOT_YET)
        rows = own[is_there & is_due]
        self.day[rows] = day
        rows = rows[posts.is_written[rows]]
        if not rows.size:
            return
        (texts,) = posts.records[rows].texts.values()
        labels = posts.records.labels[rows]
        # Of the posts themselves, and not of what devices make of them.
        truth = {"text": texts, "label": labels}
        reports, frames = posts_of(texts, labels), self.source.child(cohort.number, day)
        unpaid = np.zeros(len(rows), dtype=np.bool_)
        yield from device_frames(
            FLOW, cohort.number, self.kind, day, reports, frames, truth=truth, paid=unpaid
        )


@dataclass(slots=True)
class CollectedPosts:
    """What the provider has collected, day by day.

    Attributes:
        posts: Of all users: only scoring reads them, to say which of them were collected.
        kind: Of the frames.
        batches: Rows of closed days.
        records: All of them as records; None if there is none.
        has: Which posts of all users are among them.
    """

    posts: UserPosts
    kind: Kind
    batches: list[pa.RecordBatch] = field(default_factory=list)
    records: TextRecords | None = None
    has: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.has = np.zeros(self.posts.count, dtype=np.bool_)

    def take(self, context: SimulationContext, day: int) -> None:
        """Take what was collected by the end of a day, whose epoch is closed.

        What was taken is dropped where it was collected: posts are raw, and kept in one place.
        """
        for epoch in range(len(self.batches), day + 1):
            self.batches.append(context.collected(self.kind.name, epoch))
            context.retire(self.kind.name, epoch)
        self.records = posted_records(self.kind, self.batches, self.posts.records.schema)
        self.has = self._places()

    def faults(self) -> tuple[str, ...]:
        """Say whether more was collected than each post once: an author is counted by posts."""
        found = 0 if self.records is None else self.records.count
        more = found - int(np.count_nonzero(self.has))
        if not more:
            return ()
        return (f"{more} rows were collected that are no post, or one that was collected before",)

    def _places(self) -> Flags:
        """Find the collected texts among those of the users, for scoring."""
        found = np.zeros(self.posts.count, dtype=np.bool_)
        if self.records is None:
            return found
        (name,) = self.records.schema.texts
        own = self.posts.records
        waiting: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row in np.flatnonzero(self.posts.is_written)[::-1].tolist():
            waiting[own.texts[name][row], int(own.labels[row])].append(row)
        for text, label in zip(
            self.records.texts[name], self.records.labels.tolist(), strict=True
        ):
            rows = waiting.get((text, label))
            if rows:
                found[rows.pop()] = True
        return found


def posting_kind(posts: UserPosts, text_bytes: int) -> Kind:
    """Return the kind of frame that posts travel in."""
    return posted_texts_kind(posts.records.schema.classes.size, text_bytes)


def posting_flow(kind: Kind, days: int) -> PlainFlow:
    """Declare the flow: texts as they are, since noise comes after the publisher."""
    # Written out, not read from the kind: a column more would otherwise be declared as well.
    columns = {"text": "string", "label": "uint8"}
    return PlainFlow(FLOW, kind, range(days), columns)
