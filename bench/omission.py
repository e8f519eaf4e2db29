"""Coordinated omission, shown: a server that sleeps once, seen by two clients.

The server answers at once, and sleeps for one second before one of its answers. The open-loop
client of ``noisefloor stress`` and a closed-loop client beside it load it in turn. What a client
at that rate has to see follows from the plan: whatever is due while the server sleeps waits until
it wakes up.
"""

import argparse
import http.client
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection

import numpy as np
from bench.table import aligned

from noisefloor_services.stress.client import LoadTarget, run_share
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.plan import Phase, RequestMix, make_plan

PERCENTILES = (50.0, 99.0, 99.9)
SLEEP_S = 1.0
_ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_REQUEST = b"POST /frames HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"


def serve(pipe: Connection, sleeps_at: int) -> None:
    """Answer every request, one after the other, until we are ended."""
    import selectors

    selector, seen = selectors.DefaultSelector(), 0
    server = socket.create_server(("127.0.0.1", 0), backlog=4096)
    selector.register(server, selectors.EVENT_READ)
    pipe.send(server.getsockname()[1])
    while True:
        for key, _ in selector.select():
            if key.fileobj is server:
                selector.register(server.accept()[0], selectors.EVENT_READ)
                continue
            connection = key.fileobj
            assert isinstance(connection, socket.socket)  # noqa: S101  narrows a type
            if not connection.recv(65_536):
                selector.unregister(connection)
                connection.close()
                continue
            seen += 1
            if seen == sleeps_at:
                time.sleep(SLEEP_S)
            connection.sendall(_ANSWER)


def served(sleeps_at: int) -> tuple[int, multiprocessing.process.BaseProcess]:
    """Start a server in a process of its own; return its port and the process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, sleeps_at), daemon=True)
    process.start()
    return ours.recv(), process


def open_loop(rate: float, seconds: float) -> tuple[LatencyHistogram, LatencyHistogram]:
    """Return what the open loop recorded, and what follows from its plan."""
    due_us = make_plan([Phase(rate, rate, seconds)], RequestMix((1,), (1.0,)), 1).due_us
    sleeps_at = len(due_us) // 2
    port, server = served(sleeps_at + 1)
    start_us = time.monotonic_ns() // 1000 + 100_000
    target = LoadTarget((port,), 4096, 10.0)
    core, _ = run_share(
        target, due_us.tolist(), lambda _: _REQUEST, start_us=start_us, retry_until_us=0
    )
    server.kill()
    wakes_us = due_us[sleeps_at] + 1e6 * SLEEP_S
    waits = (due_us >= due_us[sleeps_at]) & (due_us < wakes_us)
    computed = LatencyHistogram.of(np.where(waits, wakes_us - due_us, 0))
    return LatencyHistogram.of(np.array(core.done_us) - due_us), computed


def closed_loop(count: int) -> LatencyHistogram:
    """Return what one connection records that sends again once it is answered."""
    port, server = served(count // 2)
    connection, took_us = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(count):
        begun_ns = time.monotonic_ns()
        connection.request("POST", "/frames", b"")
        connection.getresponse().read()
        took_us.append((time.monotonic_ns() - begun_ns) // 1000)
    server.kill()
    return LatencyHistogram.of(took_us)


def main() -> None:
    """Load the server by both clients, and print what each says of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    opened, computed = open_loop(given.rate, given.seconds)
    closed = closed_loop(opened.total)
    rows = [
        (name, *(f"{one.percentile_us(p) / 1000:.3g}" for p in PERCENTILES))
        for name, one in (("computed", computed), ("open loop", opened), ("closed loop", closed))
    ]
    print(
        f"{opened.total} requests, {given.rate:g} a second; the server sleeps {SLEEP_S:g} s once"
    )
    print(aligned(("ms", *(f"p{p:g}" for p in PERCENTILES)), rows))


if __name__ == "__main__":
    main()
