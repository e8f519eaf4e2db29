"""Whether every frame that was taken is accounted for, by Redis' own numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from noisefloor_services.store import ACCOUNT, Command, PartitionKeys


@dataclass(frozen=True, slots=True)
class Conservation:
    """Frames by what became of them. Nothing is estimated, and nothing is counted twice.

    Attributes:
        accepted: Frames that were promised to count: entries ever added to the streams, as the
            streams themselves count them, and repeats that were recognised before.
        counted: In the sums, or among the collected rows.
        duplicates: Repeats of frames that were settled before.
        dead_letters: Frames that can never count.
        late: Accepted, and then refused because their epoch was closed. It has to be 0: the
            intake takes no frame of an epoch that is closed or being closed.
        pending: In the streams still, handed out or not.
        reports: Rows of the counted frames.
        refused_closed: Refused at the intake: the epoch was closed, or being closed.
        refused_again: The same frames, refused once more.
        refused_ahead: Refused at the intake for now: the epoch was too far ahead.
        refused_full: Refused at the intake: the epoch was full.
    """

    accepted: int = 0
    counted: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    late: int = 0
    pending: int = 0
    reports: int = 0
    refused_closed: int = 0
    refused_again: int = 0
    refused_ahead: int = 0
    refused_full: int = 0

    @property
    def missing(self) -> int:
        """Frames without an outcome; negative if some have two. It has to be 0."""
        settled = self.counted + self.duplicates + self.dead_letters + self.late
        return self.accepted - settled - self.pending

    @property
    def is_conserved(self) -> bool:
        """Whether every frame that was accepted has exactly one outcome, or waits for one."""
        return self.missing == 0

    @classmethod
    def total(cls, parts: Iterable["Conservation"]) -> "Conservation":
        """Return the sum of several partitions."""
        listed = list(parts)
        return cls(*(sum(getattr(part, one.name) for part in listed) for one in fields(cls)))


def question(keys: PartitionKeys) -> Command:
    """Return what to ask of a partition."""
    return ACCOUNT.command([keys.frames, keys.counters, keys.intake], [])


def read(reply: Sequence[int]) -> Conservation:
    """Return a partition's numbers from the reply."""
    accepted, pending, counted, duplicates, dead_letters, late, *more = reply
    return Conservation(accepted, counted, duplicates, dead_letters, late, pending, *more)
