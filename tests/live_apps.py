"""A service that runs in this process, with its lifespan, and is called without a socket."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from noisefloor.roles.collection_config import CollectionConfig
from noisefloor_services.http.service import Service
from noisefloor_services.security.credentials import Credentials, Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore

TOKENS = {role: f"{role.value}-{'t' * 40}" for role in Role}
LINES = tuple(f"{role.value} {role.value} {token}" for role, token in TOKENS.items())
ROOT = Path(__file__).resolve().parents[1]


def credentials() -> Credentials:
    """Return one credential for each role."""
    return Credentials(LINES)


def bearer(role: Role) -> dict[str, str]:
    """Return the header of a role's token."""
    return {"Authorization": f"Bearer {TOKENS[role]}"}


def prepared(settings: Settings, collection: CollectionConfig) -> Settings:
    """Open the epochs of a collection, as its aggregator does: an ad server takes none before."""
    server = Server(settings.redis_url)
    layout = Layout(collection.namespace, settings.partitions)
    EpochStore(server, layout, collection.kinds.values()).prepare(collection.first_epoch)
    server.close()
    return settings


class Live:
    """Calls a service whose lifespan runs in a thread with an event loop of its own."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self._loop = loop
        transport = httpx.ASGITransport(service, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request; the options are those of httpx."""
        sent = self._client.request(method, path, **options)
        return asyncio.run_coroutine_threadsafe(sent, self._loop).result(30)

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, for fifteen seconds at most."""
        for _ in range(1500):
            if is_so():
                return
            time.sleep(0.01)
        raise AssertionError("it did not come to pass")

    def wait_ready(self) -> None:
        """Wait until the service is ready."""
        self.wait(lambda: self("GET", "/readyz").status_code == 200)


@contextmanager
def live(service: Service) -> Iterator[Live]:
    """Run a service."""
    started, failed = threading.Event(), []
    loop = asyncio.new_event_loop()

    async def run(stop: asyncio.Event) -> None:
        async with service.api.router.lifespan_context(service.api):
            started.set()
            await stop.wait()

    stop = asyncio.Event()

    def body() -> None:
        try:
            loop.run_until_complete(run(stop))
        except BaseException as error:
            failed.append(error)
        finally:
            started.set()
            loop.close()

    thread = threading.Thread(target=body)
    thread.start()
    try:
        assert started.wait(20)
        assert not failed, failed
        yield Live(service, loop)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(20)
    assert not failed, failed


class Process:
    """A service as a process of its own."""

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: dict[str, str],
        *options: str,
        program: tuple[str, ...] = ("-m", "noisefloor_services"),
    ) -> None:
        self.log = folder / f"{name}.log"
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME")}
        roots = [str(ROOT / one) for one in ("platform", "services")]
        environment = {**kept, "PYTHONPATH": os.pathsep.join(roots), "OPENBLAS_NUM_THREADS": "1"}
        environment |= {f"NOISEFLOOR_{key}": value for key, value in settings.items()}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *program, name, *options],
                stdout=log,
                stderr=log,
                env=environment,
            )

    @property
    def url(self) -> str:
        """Wait for its address."""
        for _ in range(1000):
            found = re.search(r'"listening".*"port": (\d+)', self.log.read_text())
            if found:
                return f"http://127.0.0.1:{found.group(1)}"
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise AssertionError("it does not listen")

    def end(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()
            self.process.wait(5)


@contextmanager
def process(
    name: str,
    folder: Path,
    settings: dict[str, str],
    *options: str,
    program: tuple[str, ...] = ("-m", "noisefloor_services"),
) -> Iterator[Process]:
    """Run a service as a process, and make sure that it ends; the program may be another one."""
    made = Process(name, folder, settings, *options, program=program)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait(5)
