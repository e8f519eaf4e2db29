"""One service as a process: a socket, signals, and an orderly end.

SIGTERM and SIGINT: readiness goes off, no new connection is taken, requests under way are
answered, what was accepted is handed over, exit with 0.
"""

import asyncio
import gc
import logging
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from noisefloor_services.http import connection
from noisefloor_services.http.logs import uvicorn_options
from noisefloor_services.http.service import Service
from noisefloor_services.settings import Settings

GRACE_S = 8
"""For requests in progress; a stop takes at most ten seconds in all."""

_BACKLOG = 1024
_OTHER_FILES = 128
"""Open files that are no connections of clients: to Redis, the log, libraries."""

_GC = (50_000, 20, 100)
"""Thresholds of the garbage collector. Handling a frame makes no reference cycles, and Python's
usual thresholds cost a tenth of the measured rate."""

_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """A server that handles no signals.

    uvicorn raises a captured signal again after its shutdown, so that the exit code is not 0.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def serve(service: Service, settings: Settings, listening: socket.socket) -> None:
    """Serve until a signal; returns once everything is done.

    Args:
        service: What answers.
        settings: Of the service.
        listening: A socket that is bound, see ``bound``.
    """
    config = uvicorn.Config(
        service,
        interface="asgi3",
        timeout_graceful_shutdown=GRACE_S,
        backlog=_BACKLOG,
        lifespan="on",
        **connection_options(settings),
        **uvicorn_options(),
    )
    # uvloop where it is installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(service, _Server(config), listening))


def connection_options(settings: Settings) -> dict[str, Any]:  # Any: arguments of uvicorn.Config
    """Return how uvicorn has to be started for connections to stay within their bounds."""
    most = _most_connections(settings.connections)
    bounds = connection.ConnectionBounds(
        settings.head_bytes, settings.head_time_s, settings.idle_time_s, most
    )
    return {
        "http": connection.connection_factory(connection.ConnectionLimits(bounds)),
        "ws": "none",  # WebSocket connections would bypass these bounds
    }


async def _serve(service: Service, server: _Server, listening: socket.socket) -> None:
    def stop() -> None:
        service.stop()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    listening.listen(_BACKLOG)
    where = {"service": service.name, "port": listening.getsockname()[1]}
    _log.info("listening", extra={"fields": where})
    gc.collect()
    gc.freeze()  # what was loaded so far is never collected: scanning it again costs time
    gc.set_threshold(*_GC)
    await server.serve(sockets=[listening])
    _log.info("stopped", extra={"fields": {"service": service.name}})


def _most_connections(requested: int) -> int:
    """Return how many of the requested connections the limit of open files allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = requested + connection.RESERVE + _OTHER_FILES
    if soft < needed:
        soft = min(needed, hard) if hard != resource.RLIM_INFINITY else needed
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = min(requested, max(1, soft - connection.RESERVE - _OTHER_FILES))
    if most < requested:
        _log.warning("connections are limited to %d by the open files of the system", most)
    return most
