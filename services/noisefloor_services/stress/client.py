"""The load client's loop: sockets and a clock around ``LoadCore``, in a process of its own.

A connection has one request under way. If none is free another one is opened, up to a bound: as
many devices would. ``select`` waits for the poll's own descriptor, since a poll by itself counts
whole milliseconds, and a millisecond is as much as sending may be late.
"""

import gc
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisefloor_services.stress.connection import ConnectionLost, LoadConnection
from noisefloor_services.stress.core import LoadCore, Sending

_LONGEST_WAIT_S = 0.05
"""After which it is looked for answers that take too long."""

RequestBytes = Callable[[int], bytes]
"""Returns the bytes of a request, by its place in the share of this process."""


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """Where a process sends.

    Attributes:
        ports: On the loopback address; connections take them in turn.
        connections: That one process opens at most.
        timeout_s: After which an answer is waited for no longer.
    """

    ports: tuple[int, ...]
    connections: int
    timeout_s: float


class LoadClient:
    """Sends the requests of one step.

    Args:
        target: Where to.
        core: What is due when.
        request: The bytes of each request.
        start_us: When the step begins, by ``time.monotonic``.
    """

    def __init__(
        self, target: LoadTarget, core: LoadCore, request: RequestBytes, start_us: int
    ) -> None:
        self._target = target
        self._core = core
        self._request = request
        self._start_us = start_us
        self._epoll = select.epoll()
        self._open: dict[int, LoadConnection] = {}
        self._free: list[LoadConnection] = []
        self._under_way: deque[tuple[LoadConnection, Sending]] = deque()
        self._opened = 0
        self.most_open = 0

    def run(self) -> None:
        """Send everything, and wait until everything has an outcome."""
        gc.collect()
        gc.disable()  # a collection would make requests late
        try:
            while not self._core.is_done:
                self._send_due()
                self._wait()
                self._end_late()
        finally:
            gc.enable()
            for connection in self._open.values():
                connection.close()
            self._epoll.close()

    def _now_us(self) -> int:
        return time.monotonic_ns() // 1000 - self._start_us

    def _send_due(self) -> None:
        while True:
            due_us, now_us = self._core.next_due_us(), self._now_us()
            if due_us is None or due_us > now_us:
                return
            connection = self._free.pop() if self._free else self._opened_one()
            if connection is None:
                return
            sending = self._core.pop(now_us)
            self._under_way.append((connection, sending))
            try:
                connection.send(self._request(sending.place), sending)
            except ConnectionLost:
                self._drop(connection)

    def _opened_one(self) -> LoadConnection | None:
        if len(self._open) >= self._target.connections:
            return None
        ports = self._target.ports
        made = LoadConnection(ports[self._opened % len(ports)], self._epoll)
        self._opened += 1
        self._open[made.number] = made
        self.most_open = max(self.most_open, len(self._open))
        return made

    def _wait(self) -> None:
        due_us = self._core.next_due_us()
        wait_s = _LONGEST_WAIT_S
        if due_us is not None and (self._free or len(self._open) < self._target.connections):
            wait_s = min(wait_s, max(0.0, (due_us - self._now_us()) / 1e6))
        if wait_s:
            select.select((self._epoll,), (), (), wait_s)
        for number, event in self._epoll.poll(0):
            self._happened(self._open[number], event)

    def _happened(self, connection: LoadConnection, event: int) -> None:
        try:
            if event & select.EPOLLOUT:
                connection.flush()
                connection.sent_all()
            if not event & ~select.EPOLLOUT:
                return
            answer = connection.receive()
        except ConnectionLost:
            self._drop(connection)
            return
        sending = connection.sending
        if answer is None or sending is None:
            return
        connection.sending = None
        self._core.answered(sending, *answer, self._now_us())
        self._free.append(connection)

    def _drop(self, connection: LoadConnection) -> None:
        """Forget a connection that has ended; what was under way on it is lost."""
        if connection.sending is not None:
            self._core.lost(connection.sending, self._now_us())
            connection.sending = None
        else:  # it was idle: the service ends such connections after a while
            self._free.remove(connection)
        del self._open[connection.number]
        connection.close()

    def _end_late(self) -> None:
        now_us = self._now_us()
        while self._under_way:
            connection, sending = self._under_way[0]
            if connection.sending is sending:
                if not self._core.is_late(sending, now_us):
                    return
                self._core.timed_out(sending, now_us)
                connection.sending = None
                del self._open[connection.number]
                connection.close()
            self._under_way.popleft()


def run_share(
    target: LoadTarget,
    due_us: Sequence[int],
    request: RequestBytes,
    *,
    start_us: int,
    retry_until_us: int,
) -> tuple[LoadCore, int]:
    """Send one process's share of a plan; return what became of it, and connections at most."""
    timeout_us = round(1e6 * target.timeout_s)
    core = LoadCore(due_us, timeout_us=timeout_us, retry_until_us=retry_until_us)
    client = LoadClient(target, core, request, start_us)
    client.run()
    return core, client.most_open
