"""What can go wrong between a service and its Redis.

NoisefloorError
├── BusFull
│   └── StreamFull      too much is waiting: say 429 or 503, with Retry-After
├── StoreAway           Redis does not answer or cannot write: say 503; nothing is promised
├── FrameRefused        the epoch is closed, too far ahead or full: say 410 or 409, and why
├── EpochClosing        the epoch takes no more frames and is not settled yet: say 503, call again
├── BadStore            the keys in Redis belong to another layout or to other kinds
└── StoreStalled        a worker in burst mode made no progress for too long
"""

from enum import Enum

from noisefloor.errors import BusFull, NoisefloorError

RETRY_AFTER_S = 1


class Refusal(Enum):
    """Why a frame is not taken; the value is the error's name in an answer."""

    CLOSED = "epoch-closed"
    AHEAD = "epoch-ahead"
    FULL = "epoch-full"


class StreamFull(BusFull):
    """Too many frames are waiting; this one was not taken.

    Args:
        what: What is full.
        retry_after_s: When to try again, in whole seconds as HTTP has it.
    """

    def __init__(self, what: str, retry_after_s: int = RETRY_AFTER_S) -> None:
        super().__init__(f"{what} is full: try again in {retry_after_s} s.")
        self.what = what
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (self.what, self.retry_after_s)


class StoreAway(NoisefloorError):
    """Redis does not answer, or answers that it cannot write.

    The command may have been executed or not: send the same bytes again.

    Args:
        why: The kind of failure; never an address or a password.
        retry_after_s: When to try again, in whole seconds as HTTP has it.
    """

    def __init__(self, why: str, retry_after_s: int = RETRY_AFTER_S) -> None:
        super().__init__(f"Redis cannot be used now ({why}): try again in {retry_after_s} s.")
        self.why = why
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (self.why, self.retry_after_s)


class FrameRefused(NoisefloorError):
    """The store did not take a frame: as its epoch is now, it cannot count.

    Args:
        reason: What is wrong with the epoch.
    """

    def __init__(self, reason: Refusal) -> None:
        super().__init__(f"The frame was not taken: {reason.value}.")
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[Refusal]]:
        return type(self), (self.reason,)


class EpochClosing(NoisefloorError):
    """An epoch takes no more frames, and some that it took are not counted yet: close it again.

    Args:
        retry_after_s: When to try again, in whole seconds as HTTP has it.
    """

    def __init__(self, retry_after_s: int = RETRY_AFTER_S) -> None:
        super().__init__("The epoch is being closed: frames that it took are not counted yet.")
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.retry_after_s,)


class BadStore(NoisefloorError):
    """What is in Redis was written with another layout or other kinds: it is left alone."""


class StoreStalled(NoisefloorError):
    """Frames are waiting, and none was settled within the time that the worker waits."""
