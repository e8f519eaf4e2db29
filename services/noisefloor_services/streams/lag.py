"""How far the counting is behind: what waits in a partition, handed out or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from noisefloor_services.streams.keys import GROUP, Keys
from noisefloor_services.streams.scripts import Command


@dataclass(frozen=True, slots=True)
class Lag:
    """One partition at one instant.

    Attributes:
        undelivered: Frames that no worker has been given.
        unacknowledged: Frames that a worker holds and has not settled.
        oldest_held_s: For how long the first of those has been held; 0 if there is none.
    """

    undelivered: int
    unacknowledged: int
    oldest_held_s: float


def questions(keys: Keys) -> list[Command]:
    """Return what to ask of a partition, all at one instant.

    Not XINFO's lag: it is unknown once entries are deleted, and here each one is when it is
    settled. So what is in the stream and not held was never handed out.
    """
    return [
        ("XLEN", keys.frames),
        ("XPENDING", keys.frames, GROUP),
        ("XPENDING", keys.frames, GROUP, "-", "+", 1),
    ]


def read(replies: Sequence[Any]) -> Lag:
    """Return a partition's lag from the replies (Any: each is what its command answers)."""
    length, (held, *_), first = replies
    oldest_ms = first[0][2] if first else 0
    return Lag(length - held, held, oldest_ms / 1000)
