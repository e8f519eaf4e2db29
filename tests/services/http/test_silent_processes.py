"""The sentinel test: what a client sends besides its report is nowhere afterwards.

All three services run as processes, on a real server with its log on disk. Each has a fault that
raises with the input in its text, so that tracebacks are looked at as well.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pytest

from live_apps import LINES, TOKENS, Process, prepared, process
from noisefloor.roles.collection_config import example_collection
from noisefloor.wire.frames import seal
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.http.service import DESCRIPTION
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.write_path import Producer
from own_tables import write_visits
from word_search import files_with, keys_with, texts_with

SENTINEL = "sentinel-7f3a9c"
NAMES = ("ad-server", "aggregator", "model-publisher")
FAULTY = """
import sys
from noisefloor_services import __main__
from noisefloor_services.ad_server import routes
from noisefloor_services.aggregator.state import AggregatorState
from noisefloor_services.publisher.state import PublisherState

def fail(*given):
    raise RuntimeError(f"{given}")

routes._columns = AggregatorState.kind = PublisherState.found = fail
sys.exit(__main__.main())
"""
"""A service whose routes break, with all that they were given in the text of the error."""

LEAKY = """
import logging, os, sys
from redis import Redis
from noisefloor_services import __main__
from noisefloor_services.http import service

client = Redis.from_url(os.environ["NOISEFLOOR_REDIS_URL"])
honest = service.Service.__call__

async def leaky(self, scope, receive, send):
    agent = dict(scope.get("headers", ())).get(b"user-agent", b"").decode()

    async def echo(message):
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"x-echo", agent.encode())]}
        await send(message)

    if agent:
        logging.getLogger("noisefloor.leak").info("from %s", agent)
        client.hset("leak", "agent", agent)
    await honest(self, scope, receive, echo)

service.Service.__call__ = leaky
sys.exit(__main__.main())
"""
"""A service that writes the user agent to its log, to its store and to its answer."""

HEADERS = {
    "User-Agent": SENTINEL,
    "X-Forwarded-For": SENTINEL,
    "Forwarded": f"for={SENTINEL}",
    "Cookie": f"id={SENTINEL}",
    "Referer": f"http://{SENTINEL}/",
    "If-None-Match": f'"{SENTINEL}"',
    "Report-Token": SENTINEL,
    "X-Request-Id": SENTINEL,
}
FRAME = {"Content-Type": FRAME_TYPE}
KIND = example_collection().kinds["clicks"]
GOOD = seal(KIND, 0, KIND.encode(np.eye(20, dtype=np.int64)), bytes(16))
BODIES: list[dict[str, object]] = [
    {"content": GOOD, "headers": FRAME},
    {"content": GOOD + SENTINEL.encode(), "headers": FRAME},
    {"content": SENTINEL.encode() * 9, "headers": FRAME},
    {"content": SENTINEL.encode() * 9, "headers": {"Content-Type": SENTINEL}},
    {"content": f'{{"{SENTINEL}'.encode(), "headers": {"Content-Type": "application/json"}},
    {"json": {"epoch": 0, "report": SENTINEL}},
    {"json": {"epoch": 0, "report": {SENTINEL: 1}, SENTINEL: [SENTINEL]}},
    {"json": {"epoch": SENTINEL, "index": 1}},
    {"json": {"publication_id": SENTINEL, "data_set": SENTINEL, "method": SENTINEL}},
    {"json": {"index": 3}},
    {"json": {"epoch": 0, "report": [0, 1] * 10}},
]


@dataclass
class Topology:
    """Services that run, where they keep things, and what they answered."""

    valkey: EmbeddedServer
    client: httpx.Client
    processes: dict[str, Process] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    def ask(self, name: str, method: str, path: str, **options: object) -> None:
        url = self.processes[name].url + path
        answer = self.client.request(method, url, **options)  # type: ignore[arg-type]
        self.answers.append(f"{answer.headers} {answer.text}")
        self.statuses.add(answer.status_code)

    def hits(self) -> set[str]:
        """Name the places where the sentinel is; the store is made to write all it has."""
        texts = {f"log of {name}": one.log.read_text() for name, one in self.processes.items()}
        places = texts_with({**texts, "answers": "\n".join(self.answers)}, SENTINEL)
        places |= {f"{suffix} of the store" for suffix in files_with(self.valkey, SENTINEL)}
        return places | ({"keys"} if keys_with(self.valkey, SENTINEL) else set())


def started(
    stack: ExitStack, folder: Path, names: tuple[str, ...], program: str
) -> Iterator[Topology]:
    plain = {"rdbcompression": "no"}  # what is packed cannot be searched
    valkey = stack.enter_context(EmbeddedServer(folder / "valkey", settings=plain))
    prepared(Settings(redis_url=valkey.url), example_collection())
    # A connection each: after a fault the server closes it, and may do so before the next request.
    once = httpx.Limits(max_keepalive_connections=0)
    found = Topology(valkey, stack.enter_context(httpx.Client(limits=once)))
    (folder / "service.py").write_text(program)
    given = {"REDIS_URL": found.valkey.url, "TOKENS": ";".join(LINES), "LOG_LEVEL": "INFO"}
    given |= {"RATE": "1000000", "BURST": "1000000"}
    for name in names:
        films = ("--data-set", f"films={write_visits(folder)}")
        more = films if name == "model-publisher" else ()
        way = (str(folder / "service.py"),)
        made = process(name, folder, given, *more, program=way)
        found.processes[name] = stack.enter_context(made)
    with process("create-ledger", folder, given) as ledger:
        assert ledger.process.wait(30) == 0
    for one in found.processes.values():
        wait(lambda url=one.url: found.client.get(f"{url}/readyz").status_code == 200)  # type: ignore[misc]
    yield found


def wait(is_so: Callable[[], bool]) -> None:
    for _ in range(1500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    with ExitStack() as stack:
        yield from started(stack, tmp_path_factory.mktemp("silent"), NAMES, FAULTY)


def send_everywhere(topology: Topology, name: str) -> None:
    """Send the sentinel to every operation of a service, wherever a request has room for it."""
    described = topology.client.get(topology.processes[name].url + DESCRIPTION).json()
    for path, item in described["paths"].items():
        place = path.replace("{epoch}", "0")
        for part in ("{kind}", "{publication_id}", "{subject}"):
            place = place.replace(part, SENTINEL)
        for method, operation in item.items():
            role = operation.get("x-role")
            token = TOKENS[Role(role)] if role else SENTINEL * 3
            for headers in ({"Authorization": f"Bearer {token}"}, {"Authorization": SENTINEL}):
                for body in BODIES if method == "post" else [{}]:
                    sent = {**HEADERS, **headers, **body.get("headers", {})}  # type: ignore[dict-item]
                    rest = {key: value for key, value in body.items() if key != "headers"}
                    query = {SENTINEL: SENTINEL}
                    topology.ask(name, method, place, headers=sent, params=query, **rest)
    for wrong in (f"/{SENTINEL}", f"/reports/clicks/{SENTINEL}", f"/%ff{SENTINEL}"):
        topology.ask(name, "GET", wrong, headers=HEADERS)
    topology.ask(name, SENTINEL.upper(), "/healthz", headers=HEADERS)
    if name == "ad-server":  # the short way to a known kind, and into the fault
        topology.ask(name, "POST", "/reports/clicks", json={"epoch": 0, "report": SENTINEL})
    for raw in (
        f"{SENTINEL}\r\n\r\n",
        f"GET / {SENTINEL}\r\n\r\n",
        f"GET /\x00{SENTINEL} HTTP/1.1",
    ):
        _send_raw(topology.processes[name].url, raw.encode() + b"\r\n\r\n")


def _send_raw(url: str, data: bytes) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as made:
        made.sendall(data)
        made.shutdown(socket.SHUT_WR)
        assert SENTINEL.encode() not in made.recv(65_536)


def test_a_sentinel_is_nowhere(topology: Topology) -> None:
    for name in NAMES:
        send_everywhere(topology, name)
        topology.ask(
            name, "GET", "/metrics", headers={"Authorization": f"Bearer {TOKENS[Role.READ]}"}
        )
    assert {200, 202, 400, 401, 404, 415, 422, 500} <= topology.statuses
    for name in NAMES:
        assert "RuntimeError" in topology.processes[name].log.read_text(), name
    assert topology.hits() == set()


def test_a_poison_frame_leaves_a_dead_letter_without_its_bytes(topology: Topology) -> None:
    collection = example_collection()
    server = Server(topology.valkey.url)
    # Past the ad server, which would have refused it: as a service that was taken over could.
    Producer(server, Layout(collection.namespace), collection.kinds).append(
        [SENTINEL.encode() * 9]
    )
    headers = {"Authorization": f"Bearer {TOKENS[Role.READ]}"}
    url = topology.processes["aggregator"].url

    def is_buried() -> bool:
        account = topology.client.get(f"{url}/conservation", headers=headers).json()
        return bool(account["dead_letters"] == 1 and not account["pending"])

    wait(is_buried)
    for path in ("/state", "/metrics", "/conservation"):
        topology.ask("aggregator", "GET", path, headers=headers)
    assert topology.hits() <= {
        "aof of the store"
    }  # the stream's own history, until it is rewritten
    server.call("BGREWRITEAOF")
    wait(lambda: topology.hits() == set())
    server.close()


def test_a_planted_leak_is_found_in_every_place(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for topology in started(stack, tmp_path, ("ad-server",), LEAKY):
            topology.ask("ad-server", "GET", "/healthz", headers=HEADERS)
            assert topology.hits() == {
                *("log of ad-server", "keys", "answers"),
                *("aof of the store", "rdb of the store"),
            }
