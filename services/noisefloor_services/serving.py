"""One service as a process: a socket, signals, and an orderly end.

SIGTERM and SIGINT: readiness goes off, no new connection is taken, requests under way are
answered, what was accepted is handed over, exit with 0.
"""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from noisefloor_services.apps import Service
from noisefloor_services.logs import uvicorn_options
from noisefloor_services.settings import Settings

GRACE_S = 8
"""For requests under way; all in all a stop takes at most ten seconds."""

_BACKLOG = 1024
_GC = (50_000, 20, 100)
"""Frames make no cycles; the usual thresholds cost a tenth of the rate."""

_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """A server that leaves signals to us: its own way ends with the signal, not with 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def serve(service: Service, settings: Settings) -> None:
    """Serve until a signal; returns once everything is done."""
    config = uvicorn.Config(
        service,
        interface="asgi3",
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=30,
        limit_concurrency=4096,
        backlog=_BACKLOG,
        lifespan="on",
        **uvicorn_options(),
    )
    # The quickest loop and parser that are installed.
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(service, _Server(config), _bound(settings.host, settings.port)))


async def _serve(service: Service, server: _Server, listening: socket.socket) -> None:
    def stop() -> None:
        service.stop()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    where = {"service": service.name, "port": listening.getsockname()[1]}
    _log.info("listening", extra={"fields": where})
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC)
    await server.serve(sockets=[listening])
    _log.info("stopped", extra={"fields": {"service": service.name}})


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(_BACKLOG)
    made.setblocking(False)
    return made
