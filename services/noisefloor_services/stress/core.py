"""What one client process sends when, and what becomes of it: no socket and no clock is in here.

The loop is open: a request is sent when it is due, whatever became of those before it. If no
connection is free it waits, is sent late, and its latency still counts from the time at which it
was due. Refusals with Retry-After are repeated as a device does: the same bytes, so many seconds
later. Repeats are counted apart from first sends, and in no latency.

Times go into arrays of fixed size and are made into histograms after the step: recording costs a
tenth of a microsecond, and nothing pauses the sending.
"""

import heapq
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class AnswerClass(IntEnum):
    """What became of one request."""

    NONE = 0
    ACCEPTED = 1
    REFUSED_WITH_RETRY = 2
    REFUSED_WITHOUT_RETRY = 3
    REFUSED_FOR_GOOD = 4
    TIMED_OUT = 5
    LOST = 6


_NOT_NOW = (429, 503)
MOST_REPEATS = 5
"""How often a request is repeated before it is given up."""


def answer_class(status: int, retry_after_s: float | None) -> AnswerClass:
    """Return the class of an answer."""
    if 200 <= status < 300:
        return AnswerClass.ACCEPTED
    if status not in _NOT_NOW:
        return AnswerClass.REFUSED_FOR_GOOD
    if retry_after_s is None:
        return AnswerClass.REFUSED_WITHOUT_RETRY
    return AnswerClass.REFUSED_WITH_RETRY


@dataclass(frozen=True, slots=True)
class Sending:
    """A request that is under way.

    Attributes:
        place: In the share of this process.
        attempt: 0 for the first send.
        sent_us: When it was sent.
    """

    place: int
    attempt: int
    sent_us: int


class LoadCore:
    """The requests of one process in one step.

    Args:
        due_us: When each is due, in order.
        timeout_us: After which an answer is waited for no longer, since it was sent.
        retry_until_us: A repeat that is due later is given up.
    """

    def __init__(self, due_us: Sequence[int], *, timeout_us: int, retry_until_us: int) -> None:
        self._due_us = list(due_us)
        self._timeout_us = timeout_us
        self._retry_until_us = retry_until_us
        self._next = 0
        self._repeats: list[tuple[int, int, int]] = []
        self._open = 0
        self.sent_us = array("q", bytes(8 * len(self._due_us)))
        self.done_us = array("q", bytes(8 * len(self._due_us)))
        self.classes = bytearray(len(self._due_us))
        self.repeats: Counter[AnswerClass] = Counter()
        self.given_up = 0
        self.taken = bytearray(len(self._due_us))

    @property
    def is_done(self) -> bool:
        """Whether everything was sent and has an outcome."""
        return not (self._open or self._repeats or self._next < len(self._due_us))

    def next_due_us(self) -> int | None:
        """Return when the next request is due; None if there is none left."""
        first = self._due_us[self._next] if self._next < len(self._due_us) else None
        if not self._repeats:
            return first
        return self._repeats[0][0] if first is None else min(first, self._repeats[0][0])

    def pop(self, now_us: int) -> Sending:
        """Return the request that is due next; it is sent now."""
        self._open += 1
        place = self._next
        if self._repeats and (
            place == len(self._due_us) or self._repeats[0][0] < self._due_us[place]
        ):
            _, place, attempt = heapq.heappop(self._repeats)
            return Sending(place, attempt, now_us)
        self._next += 1
        self.sent_us[place] = now_us
        return Sending(place, 0, now_us)

    def answered(
        self, sending: Sending, status: int, retry_after_s: float | None, now_us: int
    ) -> None:
        """Note an answer."""
        found = answer_class(status, retry_after_s)
        self._end(sending, found, now_us)
        if found is AnswerClass.REFUSED_WITH_RETRY and retry_after_s is not None:
            again_us = now_us + round(1e6 * retry_after_s)
            if sending.attempt < MOST_REPEATS and again_us <= self._retry_until_us:
                heapq.heappush(self._repeats, (again_us, sending.place, sending.attempt + 1))
            else:
                self.given_up += 1

    def is_late(self, sending: Sending, now_us: int) -> bool:
        """Whether an answer is waited for no longer."""
        return now_us - sending.sent_us >= self._timeout_us

    def timed_out(self, sending: Sending, now_us: int) -> None:
        """Note that no answer came in time."""
        self._end(sending, AnswerClass.TIMED_OUT, now_us)

    def lost(self, sending: Sending, now_us: int) -> None:
        """Note that the connection ended before the answer."""
        self._end(sending, AnswerClass.LOST, now_us)

    def _end(self, sending: Sending, found: AnswerClass, now_us: int) -> None:
        self._open -= 1
        if found is AnswerClass.ACCEPTED:
            self.taken[sending.place] = 1
        if sending.attempt:
            self.repeats[found] += 1
            return
        self.done_us[sending.place] = now_us
        self.classes[sending.place] = found
