"""What becomes of frames, one by one and in numbers."""

from dataclasses import dataclass, replace
from enum import Enum

from noisefloor.wire import Frame


class FrameStatus(Enum):
    """What became of a frame; the value names the counter."""

    COUNTED = "counted"
    DUPLICATE = "duplicates"
    LATE = "late"
    DEAD_LETTER = "dead_letters"


@dataclass(frozen=True, slots=True)
class FrameOutcome:
    """What became of a frame, why, and the frame itself where it could be read."""

    status: FrameStatus
    reason: str = ""
    frame: Frame | None = None


@dataclass(frozen=True, slots=True, order=True)
class DeadLetter:
    """A frame that can never count. Its bytes are not kept: they may hold anything.

    Attributes:
        key: Its batch id where that could be read, else a digest of the bytes.
        reason: Field and rule, never a value.
        size_bytes: Of the frame.
    """

    key: str
    reason: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FrameCounters:
    """Frames by outcome: accepted = counted + duplicates + late + dead letters."""

    accepted: int = 0
    counted: int = 0
    duplicates: int = 0
    late: int = 0
    dead_letters: int = 0

    @property
    def is_conserved(self) -> bool:
        """Whether every frame that was accepted has exactly one outcome."""
        outcomes = self.counted + self.duplicates + self.late + self.dead_letters
        return self.accepted == outcomes

    def plus(self, status: FrameStatus) -> "FrameCounters":
        """Return the counters with one frame more."""
        more = {"accepted": self.accepted + 1, status.value: getattr(self, status.value) + 1}
        return replace(self, **more)
