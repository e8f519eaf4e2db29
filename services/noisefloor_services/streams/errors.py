"""What can go wrong between a service and its Redis.

NoisefloorError
├── BusFull
│   └── StreamFull      too much is waiting: say 429 or 503, with Retry-After
├── StoreAway           Redis does not answer or cannot write: say 503; nothing is promised
├── BadStore            the keys in Redis belong to another layout or to other kinds
└── StoreStalled        a worker in burst mode made no progress for too long
"""

from noisefloor.errors import BusFull, NoisefloorError

RETRY_AFTER_S = 1


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

    What was asked for may have happened or not: send the same bytes again.

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


class BadStore(NoisefloorError):
    """What is in Redis was written with another layout or other kinds: it is left alone."""


class StoreStalled(NoisefloorError):
    """Frames are waiting, and none was settled for as long as the worker was told to wait."""
