"""Rate limits: one token bucket a credential, within bounded memory, on a clock that is given."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter

_SHARED = "<everybody else>"


@dataclass(slots=True)
class _Bucket:
    level: float
    at_s: float


class RateLimit:
    """Admits ``rate`` requests a second for each key, with bursts.

    When there are more keys than may be kept, those that are full again are forgotten: that
    changes nothing for them. If none is, newcomers share one bucket: flooding with new keys
    gains nothing.

    Args:
        rate: Requests a second.
        burst: How many at once after a rest.
        clock: Seconds that never run backwards.
        most_keys: How many keys are kept.
    """

    __slots__ = ("_buckets", "_burst", "_clock", "_lock", "_most_keys", "_rate")

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float], most_keys: int = 10_000
    ) -> None:
        if check_finite(rate, "rate") <= 0:
            raise BadParameter("rate", rate, "> 0")
        self._rate = float(rate)
        self._burst = check_count(burst, "burst")
        self._clock = clock
        self._most_keys = check_count(most_keys, "most_keys")
        self._buckets: dict[str, _Bucket] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_s(self, key: str) -> float:
        """Take one request: 0 if it is admitted, else after how many seconds to come again."""
        with self._lock:
            now = self._clock()
            bucket = self._bucket(key, now)
            bucket.level = self._level(bucket, now)
            bucket.at_s = now
            if bucket.level >= 1:
                bucket.level -= 1
                return 0.0
            return (1 - bucket.level) / self._rate

    def _bucket(self, key: str, now: float) -> _Bucket:
        if key not in self._buckets and len(self._buckets) >= self._most_keys:
            self._forget_full(now)
        if key not in self._buckets and len(self._buckets) >= self._most_keys:
            key = _SHARED
        return self._buckets.setdefault(key, _Bucket(float(self._burst), now))

    def _forget_full(self, now: float) -> None:
        rested = [
            key for key, bucket in self._buckets.items() if self._level(bucket, now) >= self._burst
        ]
        for key in rested:
            del self._buckets[key]

    def _level(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.level + max(0.0, now - bucket.at_s) * self._rate)


def retry_after(seconds: float) -> str:
    """Write a wait as HTTP's Retry-After: whole seconds, rounded up, at least one."""
    return str(max(1, math.ceil(seconds)))
