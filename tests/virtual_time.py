"""A load in virtual time: a client's core against a made-up service, without a socket or a clock.

The service takes requests one by one in the order in which they come; how long each takes is
given. So the latency of each request can be computed by hand.
"""

import heapq
from collections.abc import Callable, Sequence

from noisefloor_services.stress.core import LoadCore, Sending

Answer = tuple[int, float | None]
ServiceTime = Callable[[int], int]


def accept(_: Sending) -> Answer:
    """Answer with 202."""
    return 202, None


def run_open(
    core: LoadCore,
    service_us: ServiceTime,
    *,
    connections: int = 1 << 30,
    answer: Callable[[Sending], Answer] = accept,
) -> None:
    """Let a core send all that it has to a service of one server.

    Args:
        core: The client.
        service_us: How long the n-th request takes.
        connections: Of the client; a request that finds none free waits.
        answer: What the service says to a request.
    """
    under_way: list[tuple[int, int, Sending]] = []
    now_us = free_us = served = 0
    while not core.is_done:
        due_us = core.next_due_us()
        can_send = due_us is not None and len(under_way) < connections
        if can_send and (not under_way or max(due_us or 0, now_us) <= under_way[0][0]):
            now_us = max(now_us, due_us or 0)
            sending = core.pop(now_us)
            free_us = max(free_us, now_us) + service_us(served)
            heapq.heappush(under_way, (free_us, served, sending))
            served += 1
            continue
        now_us, _, sending = heapq.heappop(under_way)
        core.answered(sending, *answer(sending), now_us)


def closed_latencies_us(service_us: ServiceTime, count: int) -> Sequence[int]:
    """Return what a closed loop of one connection records: each request waits for the last."""
    return [service_us(at) for at in range(count)]


def computed_latencies_us(due_us: Sequence[int], service_us: ServiceTime) -> Sequence[int]:
    """Return the latencies by Lindley's recursion: a request begins when the one before ends."""
    found, free_us = [], 0
    for at, due in enumerate(due_us):
        free_us = max(free_us, due) + service_us(at)
        found.append(free_us - due)
    return found
