"""Other collections in the same process, each under ``/collections/NAME`` with all its routes.

The app of a collection is a complete service, with guard, limits and OpenAPI description. An
aggregator opens the app of every registered collection, since it has to count; an ad server opens
one at the first request for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from redis.exceptions import RedisError
from starlette.types import Receive, Scope, Send

from noisefloor.errors import NoisefloorError
from noisefloor.roles import CollectionConfig
from noisefloor_services.http.bodies import refuse
from noisefloor_services.store import MOST, NAME, CollectionRegistry

if TYPE_CHECKING:  # a service has collection apps, and each of them is a service
    from noisefloor_services.http.service import Service

PREFIX = "/collections/"
EVERY_S = 0.25
LOOK_S = 2.0
"""Time-out for looking up collections in Redis: a service that stops waits for this call."""

_MISSED_S = 0.5
"""For how long an unknown name is answered with 404 without asking Redis again."""

_MOST_MISSED = 1024

_log = logging.getLogger(__name__)


class CollectionApps:
    """Opens, finds and closes the apps of collections.

    Args:
        registry: Which collections there are.
        make: Makes the service for one.
        is_eager: Whether to open all of them, without waiting for a request.
    """

    def __init__(
        self,
        registry: CollectionRegistry,
        make: Callable[[CollectionConfig], "Service"],
        *,
        is_eager: bool,
    ) -> None:
        self._registry = registry
        self._make = make
        self._is_eager = is_eager
        self._open: dict[str, tuple[Service, asyncio.Event, asyncio.Task[None]]] = {}
        self._missed: dict[str, float] = {}
        self._lock = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        """Look for new and dropped collections from now on."""
        self._watch = asyncio.create_task(self._look_again(), name="collection apps")

    def stop(self) -> None:
        """Make every collection not ready."""
        for service, _, _ in self._open.values():
            service.stop()

    async def close(self) -> None:
        """Close every collection in order."""
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        async with self._lock:
            await asyncio.gather(*(self._shut(name) for name in list(self._open)))

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve a request for a collection, and say whether it was one."""
        name, slash, rest = scope["path"][len(PREFIX) :].partition("/")
        if not (slash and rest and NAME.fullmatch(name)):
            return False
        try:
            service = await self.find(name)
        except (NoisefloorError, RedisError):
            detail = "The store does not answer; nothing is promised. Send the same again."
            await refuse(send, 503, "store-away", detail, headers={"Retry-After": "1"})
            return True
        if service is None:
            await refuse(send, 404, "no-such-collection", "There is no such collection.")
            return True
        path = f"/{rest}"
        inner = {**scope, "path": path, "raw_path": path.encode("latin-1", "replace")}
        await service(inner, receive, send)
        return True

    async def find(self, name: str) -> "Service | None":
        """Return the app of a collection, opened if need be."""
        opened = self._open.get(name)
        if opened is not None:
            return opened[0]
        if time.monotonic() - self._missed.get(name, -_MISSED_S) < _MISSED_S:
            return None
        async with self._lock:
            return await self._enter(name)

    async def leave(self, name: str) -> None:
        """Close the app of a collection that was dropped."""
        async with self._lock:
            if name in self._open:
                await self._shut(name)

    async def _enter(self, name: str) -> "Service | None":
        if name in self._open:
            return self._open[name][0]
        collection = await asyncio.to_thread(self._registry.find, name)
        if collection is None or len(self._open) >= MOST:
            if len(self._missed) >= _MOST_MISSED:
                self._missed.clear()
            self._missed[name] = time.monotonic()
            return None
        service = await asyncio.to_thread(self._make, collection)
        started, stop = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(_live(service, started, stop), name=f"collection {name}")
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            await task  # it failed: this raises its exception
        self._open[name] = service, stop, task
        return service

    async def _shut(self, name: str) -> None:
        _, stop, task = self._open.pop(name)
        stop.set()
        await asyncio.wait((task,))

    async def _look_again(self) -> None:
        while True:
            try:
                await self._look()
            except (NoisefloorError, RedisError) as error:
                _log.warning("collections cannot be looked up: %s", type(error).__name__)
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        """Close the apps of collections that were dropped; open those that are new."""
        names = list(self._open)
        there = await asyncio.to_thread(self._registry.are_there, names)
        async with self._lock:
            for name, is_there in zip(names, there, strict=True):
                if not is_there and name in self._open:
                    await self._shut(name)
            if self._is_eager:
                for name in await asyncio.to_thread(self._registry.names):
                    await self._enter(name)


async def _live(service: "Service", started: asyncio.Event, stop: asyncio.Event) -> None:
    async with service.api.router.lifespan_context(service.api):
        started.set()
        await stop.wait()
