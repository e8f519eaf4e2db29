"""Services for tests: called without a socket, run with their lifespan, or as processes."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from noisefloor.cards import SigningKey
from noisefloor.roles.collection_config import CollectionConfig
from noisefloor_services.http.service import Service
from noisefloor_services.security.credentials import Credentials, Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.write_path import Producer

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
    placed = collection.at_least(settings.minimum_batch)
    EpochStore.of(server, layout, placed).prepare(collection.first_epoch)
    server.close()
    return settings


def append(settings: Settings, collection: CollectionConfig, frames: Sequence[bytes]) -> None:
    """Append frames to the streams of a collection, without admission."""
    server = Server(settings.redis_url)
    layout = Layout(collection.namespace, settings.partitions)
    Producer(server, layout, collection.kinds).append(frames)
    server.close()


class Caller:
    """Calls an application as a client would, without a socket.

    Args:
        app: The application; its lifespan is not run.
        raises: Whether an exception of the application is raised here.
    """

    def __init__(self, app: ASGIApp, *, raises: bool = True) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=raises)

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request; the options are those of httpx."""
        return self._answer(self._send(method, path, options))

    def _answer(self, sent: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        return asyncio.run(sent)

    async def _send(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://test") as client:
            return await client.request(method, path, **options)


async def chunked(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Send parts as a body of which no length is announced."""
    for part in parts:
        yield part


class Live(Caller):
    """Calls a service whose lifespan runs in a thread with an event loop of its own."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(service, raises=False)
        self.service = service
        self._loop = loop

    def _answer(self, sent: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
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


def settled(app: Live, accepted: int) -> bool:
    """Tell whether a number of frames were accepted and none of them waits."""
    account = app("GET", "/conservation", headers=bearer(Role.READ)).json()
    assert account["is_conserved"]
    return bool(account["accepted"] == accepted and not account["pending"])


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


def signing_key(folder: Path) -> Path:
    """Return the key file of a publisher in a folder; PATH.pub is beside it."""
    path = folder / "signing.key"
    if not path.exists():
        SigningKey.create(path, "tests")
    return path


@contextmanager
def process(
    name: str,
    folder: Path,
    settings: dict[str, str],
    *options: str,
    program: tuple[str, ...] = ("-m", "noisefloor_services"),
) -> Iterator[Process]:
    """Run a service as a process, and make sure that it ends; the program may be another one."""
    if name == "model-publisher":
        settings = {"SIGNING_KEY_FILE": str(signing_key(folder)), **settings}
    made = Process(name, folder, settings, *options, program=program)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait(5)
