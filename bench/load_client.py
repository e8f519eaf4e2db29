"""A client that loads the ad server over HTTP, in a process of its own.

Closed loop: every connection sends its next request when the last one is answered; that finds the
rate at which a service saturates. Open loop: the client of ``noisefloor stress``, in one process.
The times of all requests are fixed beforehand, and a latency counts from the time at which a
request should have been sent. Requests come as JSON lines, answers go back as JSON lines (see
``bench.worker.Worker``).

Overload stays apart (``drops``). There a request that finds every connection full is given up, and
connections have several requests under way: one process could not send ten times what a service
takes otherwise. No latency is read from it.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import uvloop
from bench.processes import cpu_s

from noisefloor.randomness import SeededSource
from noisefloor.roles.ad_server import IMPRESSIONS
from noisefloor.roles.collection_config import example_collection
from noisefloor.wire.frames import seal
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.stress.client import LoadTarget, run_share
from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.plan import Phase, RequestMix, make_plan
from noisefloor_services.stress.step_record import (
    FROM_DUE,
    SEND_DELAY,
    StepRecord,
    record_of,
)

FRAMES, JSON, ADS = "frames", "json", "ads"
_WAYS = {
    FRAMES: ("/frames", FRAME_TYPE),
    JSON: ("/reports/clicks", "application/json"),
    ADS: ("/requests", "application/json"),
}
_DISTINCT = 64
_MARK = bytes.fromhex("00112233445566778899aabbccddeeff")
_PATIENCE_S = 10.0
_KIND = example_collection().kinds["clicks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent.

    Attributes:
        port: Where to, on the loopback address.
        what: ``frames``, ``json`` (single reports) or ``ads`` (ad requests).
        reports: In a frame.
        connections: That are kept open.
        rate: Requests a second, by an open loop or an overload; 0 for a closed loop.
        depth: Requests that a connection may have under way in an overload.
        seconds: How long.
        warm_s: How long before, in a closed loop, without being measured.
        drops: An overload: a request that finds every connection full is given up, not delayed.
        pid: Whose CPU time is read at the start and in the end.
        seed: Of the schedule.
    """

    port: int
    what: str = FRAMES
    reports: int = 1000
    connections: int = 32
    rate: float = 0.0
    depth: int = 1
    seconds: float = 3.0
    warm_s: float = 0.5
    drops: bool = False
    pid: int = 0
    seed: int = 1


class _Connection(asyncio.Protocol):
    """One connection: remembers since when each of its requests is due."""

    def __init__(self, answered: Callable[["_Connection", int, bool, float], None]) -> None:
        self._answered = answered
        self._buffered = b""
        self._transport: Any = None
        self.due: deque[float] = deque()
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False

    def send(self, request: bytes, due_s: float) -> None:
        """Send a request without waiting for anything."""
        self.due.append(due_s)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        buffered = self._buffered + data if self._buffered else data
        while buffered:
            end = buffered.find(b"\r\n\r\n")
            if end < 0:
                break
            head = buffered[:end].lower()
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(buffered) < end + 4 + size:
                break
            buffered = buffered[end + 4 + size :]
            self._answered(self, int(head[9:12]), b"retry-after:" in head, self.due.popleft())
        self._buffered = buffered

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()


class Run:
    """One load, from the first request to the last answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._requests = requests_of(load)
        self._loop = asyncio.get_running_loop()
        self._connections: list[_Connection] = []
        self._free: deque[_Connection] = deque()
        self._backlog: deque[float] = deque()
        self._statuses: Counter[int] = Counter()
        self._latencies_s: list[float] = []
        self._refused = self._with_retry_after = self._not_sent = self._sent = 0
        self._until_s = 0.0
        self._done = asyncio.Event()

    async def measure(self) -> dict[str, Any]:  # Any: JSON
        """Connect, send, and return what came back."""
        for _ in range(self._load.connections):
            made = await self._loop.create_connection(self._new, "127.0.0.1", self._load.port)
            self._connections.append(made[1])
        self._free.extend(self._connections)
        try:
            return await (self._overload() if self._load.rate else self._closed())
        finally:
            for connection in self._connections:
                connection.close()

    def _new(self) -> _Connection:
        return _Connection(self._note_open if self._load.rate else self._note_closed)

    async def _closed(self) -> dict[str, Any]:
        self._until_s = time.monotonic() + self._load.warm_s + self._load.seconds
        for connection in self._connections:
            self._send(connection, time.monotonic())
        await asyncio.sleep(self._load.warm_s)
        self._statuses.clear()
        self._latencies_s.clear()
        start_s, start_cpu_s = time.monotonic(), cpu_s(self._load.pid)
        await asyncio.sleep(self._load.seconds)
        return self._figures(time.monotonic() - start_s, cpu_s(self._load.pid) - start_cpu_s)

    def _note_closed(
        self, connection: _Connection, status: int, has_retry: bool, due_s: float
    ) -> None:
        now_s = time.monotonic()
        self._note(status, has_retry, now_s - due_s)
        if now_s < self._until_s:
            self._send(connection, now_s)

    async def _overload(self) -> dict[str, Any]:
        load = self._load
        count = max(1, round(load.rate * load.seconds))
        gaps = SeededSource(load.seed, "schedule").generator().exponential(1 / load.rate, count)
        start_s, start_cpu_s = time.monotonic() + 0.05, cpu_s(load.pid)
        self._schedule = (start_s + np.cumsum(gaps)).tolist()
        self._place = 0
        self._loop.call_later(0.05, self._tick)
        await asyncio.sleep(self._schedule[-1] - time.monotonic())
        taken_s = time.monotonic() - start_s
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._done.wait()
        except TimeoutError:
            pass  # what was not answered is counted
        return self._figures(taken_s, cpu_s(load.pid) - start_cpu_s)

    def _tick(self) -> None:
        """Send whatever is due."""
        schedule, now_s = self._schedule, time.monotonic()
        while self._place < len(schedule) and schedule[self._place] <= now_s:
            self._backlog.append(schedule[self._place])
            self._place += 1
        self._pump()
        self._not_sent += len(self._backlog)
        self._backlog.clear()
        if self._place < len(schedule):
            self._loop.call_later(max(0.0, schedule[self._place] - now_s), self._tick)
        self._look_whether_done()

    def _pump(self) -> None:
        while self._backlog and self._free:
            connection = self._free.popleft()
            if not connection.is_open:
                continue
            self._send(connection, self._backlog.popleft())
            if len(connection.due) < self._load.depth:
                self._free.append(connection)

    def _note_open(
        self, connection: _Connection, status: int, has_retry: bool, due_s: float
    ) -> None:
        self._note(status, has_retry, time.monotonic() - due_s)
        if len(connection.due) == self._load.depth - 1:  # it was full
            self._free.append(connection)
        self._pump()
        self._look_whether_done()

    def _look_whether_done(self) -> None:
        answered = len(self._latencies_s)
        if self._place == len(self._schedule) and not self._backlog and answered == self._sent:
            self._done.set()

    def _send(self, connection: _Connection, due_s: float) -> None:
        self._sent += 1
        connection.send(next(self._requests), due_s)

    def _note(self, status: int, has_retry: bool, latency_s: float) -> None:
        self._statuses[status] += 1
        self._latencies_s.append(latency_s)
        if status in (429, 503):
            self._refused += 1
            self._with_retry_after += has_retry

    def _figures(self, taken_s: float, app_cpu_s: float) -> dict[str, Any]:
        """Return the numbers; in an open loop, what has no answer yet counts as answered now."""
        late = [due_s for one in self._connections for due_s in one.due] + list(self._backlog)
        unanswered = late if self._load.rate else []
        latencies_s = [*self._latencies_s, *(time.monotonic() - due_s for due_s in unanswered)]
        marks = np.quantile(latencies_s, (0.5, 0.9, 0.99, 1.0), method="higher") * 1000
        return {
            "seconds": taken_s,
            "app_cpu_s": app_cpu_s,
            "statuses": {str(status): count for status, count in self._statuses.items()},
            "answered": len(self._latencies_s),
            "unanswered": len(unanswered),
            "not_sent": self._not_sent,
            "refused": self._refused,
            "refused_with_retry_after": self._with_retry_after,
            **dict(zip(("p50_ms", "p90_ms", "p99_ms", "max_ms"), marks.tolist(), strict=True)),
        }


def requests_of(load: Load) -> Iterator[bytes]:
    """Yield requests without end; no two frames have the same batch id."""
    path, media_type = _WAYS[load.what]
    whole = [
        b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
        % (path.encode(), media_type.encode(), len(body), body)
        for body in bodies_of(load)
    ]
    if load.what != FRAMES:
        while True:
            yield from whole
    run = os.urandom(8).hex().encode()
    halves = [one.split(_MARK.hex().encode()) for one in whole]
    number = 0
    while True:
        for before, behind in halves:
            number += 1
            yield b"%b%b%016x%b" % (before, run, number, behind)


def bodies_of(load: Load) -> Sequence[bytes]:
    """Return the bodies that are sent, over and over."""
    if load.what == FRAMES:
        return frame_bodies(load.reports)
    return json_bodies() if load.what == JSON else ad_bodies()


def frame_bodies(reports: int) -> Sequence[bytes]:
    """Write frames of random clicks under one batch id, which is replaced as they are sent."""
    generator = SeededSource(1, "load", reports).generator()
    drawn = (
        generator.integers(0, 2, (reports, _KIND.cells), dtype="uint8") for _ in range(_DISTINCT)
    )
    return [seal(_KIND, 0, _KIND.encode(bits), _MARK) for bits in drawn]


def json_bodies() -> Sequence[bytes]:
    """Write single reports as JSON."""
    drawn = SeededSource(1, "load").generator().integers(0, 2, (_DISTINCT, _KIND.cells))
    return [json.dumps({"epoch": 0, "report": bits.tolist()}).encode() for bits in drawn]


def ad_bodies() -> Sequence[bytes]:
    """Write requests for one ad each."""
    count = example_collection().kinds[IMPRESSIONS].cells
    return [json.dumps({"epoch": 0, "index": at % count}).encode() for at in range(_DISTINCT)]


async def _run(load: Load) -> dict[str, Any]:
    return await Run(load).measure()


def open_loop(load: Load) -> dict[str, Any]:  # Any: JSON
    """Send a plan at a constant rate by the client of ``noisefloor stress``."""
    phases, mix = [Phase(load.rate, load.rate, load.seconds)], RequestMix((1,), (1.0,))
    plan = make_plan(phases, mix, load.seed)
    requests = list(islice(requests_of(load), len(plan)))
    target = LoadTarget((load.port,), load.connections, _PATIENCE_S)
    start_us, start_cpu_s = time.monotonic_ns() // 1000 + 50_000, cpu_s(load.pid)
    core, _ = run_share(
        target, plan.due_us.tolist(), requests.__getitem__, start_us=start_us, retry_until_us=0
    )
    app_cpu_s = cpu_s(load.pid) - start_cpu_s
    record = record_of(core, plan, plan.share(0, 1))
    unanswered = record.count(AnswerClass.TIMED_OUT, AnswerClass.LOST)
    later = record.count(AnswerClass.REFUSED_WITH_RETRY)
    latencies = record.whole(FROM_DUE)
    return {
        "seconds": load.seconds,
        "app_cpu_s": app_cpu_s,
        "statuses": _statuses(record),
        "answered": record.count() - unanswered,
        "unanswered": unanswered,
        "not_sent": 0,
        "refused": later + record.count(AnswerClass.REFUSED_WITHOUT_RETRY),
        "refused_with_retry_after": later,
        **{f"p{p}_ms": latencies.percentile_us(p) / 1000 for p in (50, 90, 99)},
        "max_ms": latencies.longest_us / 1000,
        "send_delay_p99_ms": record.whole(SEND_DELAY).percentile_us(99) / 1000,
    }


def _statuses(record: StepRecord) -> dict[str, int]:
    """Return counts by class, in the words of statuses where all requests were accepted."""
    counts = {one.name.lower(): record.count(one) for one in AnswerClass if record.count(one)}
    accepted = counts.pop("accepted", 0)
    return {**({"202": accepted} if accepted else {}), **counts}


def main() -> None:
    """Run every load that is asked for, until the input closes."""
    for line in sys.stdin:
        try:
            load = Load(**json.loads(line))
            if load.rate and not load.drops:
                answer = open_loop(load)
            else:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    answer = runner.run(_run(load))
        except Exception as error:  # reported, and shown
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
