"""Connections within bounds: bytes, time and number, whatever a client sends or leaves unsent."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from noisefloor_services.http import connection
from noisefloor_services.http.bodies import refuse
from noisefloor_services.http.body_limits import WHOLE, BodyBounds, BodyLimits
from noisefloor_services.http.connection import (
    MOST_AHEAD,
    MOST_CHUNKS,
    MOST_HEADERS,
    RESERVE,
    ConnectionBounds,
    ConnectionLimits,
    connection_factory,
)

HEAD = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"
WAIT_S = 10.0
LONG_S = 60.0
BIG = 1 << 24


class App:
    """Answers `/no` unread, `/big` with many bytes, `/held` and `/readyz` once it may, else OK."""

    def __init__(self, limits: BodyBounds | None) -> None:
        self.may_go = asyncio.Event()
        self.bodies: list[int] = []
        self.paths: list[str] = []
        self.is_whole: list[bool] = []
        self._limited = BodyLimits(self._answer, limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        self.is_whole.append(WHOLE in scope)
        if scope["path"] == "/no":
            await refuse(send, 401, "unknown-caller", "No.")
        else:
            await self._limited(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        self.bodies.append(len(message.get("body", b"")))
        if scope["path"] in ("/held", "/readyz"):
            await self.may_go.wait()
        body = bytes(BIG) if scope["path"] == "/big" else b"OK"
        length = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": body})


class Place:
    """A server on a port of its own, and clients of it."""

    def __init__(self, shared: ConnectionLimits, port: int, app: App) -> None:
        self.shared = shared
        self.port = port
        self.app = app
        self.clients: list[Client] = []

    async def connect(self) -> "Client":
        made = await asyncio.open_connection("127.0.0.1", self.port)
        self.clients.append(Client(*made))
        return self.clients[-1]

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a new connection, and return the answer."""
        client = await self.connect()
        client.writer.write(request)
        return await client.answer()

    async def until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(int(WAIT_S / 0.01)):
            if is_so():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it did not come to pass")


class Client:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(WAIT_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, body

    async def is_ended(self) -> bool:
        """Wait for the end; without one the test fails by its time."""
        async with asyncio.timeout(WAIT_S):
            try:
                while await self.reader.read(1 << 16):
                    pass
            except ConnectionError:
                pass
        return True


@asynccontextmanager
async def place(
    bounds: ConnectionBounds, limits: BodyBounds | None = None
) -> AsyncIterator[Place]:
    app, shared = App(limits), ConnectionLimits(bounds)
    config = uvicorn.Config(
        app, interface="asgi3", log_config=None, http=connection_factory(shared)
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()

    def connection() -> Any:  # Any: uvicorn's own type
        return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

    server = await loop.create_server(connection, "127.0.0.1", 0)
    made = Place(shared, server.sockets[0].getsockname()[1], app)
    try:
        yield made
    finally:
        server.close()
        app.may_go.set()
        for client in made.clients:
            client.writer.transport.abort()
        for one in list(state.connections):
            one.transport.abort()
        await made.until(lambda: not state.connections and not state.tasks)


def run(test: Awaitable[None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LINGER_S", 0.05)


PATIENT = ConnectionBounds(head_bytes=2048, head_time_s=LONG_S, idle_time_s=LONG_S, connections=8)
QUICK = ConnectionBounds(head_bytes=2048, head_time_s=0.1, idle_time_s=0.2, connections=8)


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"X: " + b"a" * 4096,  # unfinished
        HEAD + b"X: " + b"a" * 4096 + b"\r\n\r\n",
        HEAD + b"a" * 4096,
        b"GET /" + b"a" * 4096,
        b"\r\n" * 4096,
        HEAD + b"a:\r\n" * (MOST_HEADERS + 1),
        HEAD + b"".join(b"x%d: %b\r\n" % (n, b"a" * 90) for n in range(40)),
    ],
    ids=["value", "whole", "name", "address", "blank", "many", "together"],
)
def test_a_long_head_is_refused_and_the_connection_ends(sent: bytes) -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            client = await one.connect()
            client.writer.write(sent)
            status, headers, body = await client.answer()
            assert (status, headers["connection"]) == (431, "close")
            assert json.loads(body)["error"] == "head-too-long"
            assert await client.is_ended()
            assert one.app.paths == []

    run(test())


def test_a_head_of_just_as_many_bytes_and_headers_passes() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            used = len(b"/healthz") + len(b"Hosthere") + 4
            value = b"a" * (PATIENT.head_bytes - used - len(b"X") - 4)
            for more, status in ((b"", 200), (b"a", 431)):
                request = HEAD + b"X: " + value + more + b"\r\n\r\n"
                assert (await one.ask(request))[0] == status
            for count, status in ((MOST_HEADERS - 1, 200), (MOST_HEADERS, 431)):
                assert (await one.ask(HEAD + b"a:\r\n" * count + b"\r\n"))[0] == status

    run(test())


def test_an_endless_header_is_not_kept() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            client = await one.connect()
            client.writer.write(HEAD + b"X: ")
            for _ in range(64):
                client.writer.write(b"a" * (1 << 16))
            assert (await client.answer())[0] == 431
            assert (await one.ask(HEAD + b"\r\n"))[2] == b"OK"

    run(test())


@pytest.mark.parametrize("trailer", [b"X: " + b"a" * 4096, b"a:\r\n" * (MOST_HEADERS + 1)])
def test_trailers_count_as_a_head(trailer: bytes) -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            status, _, _ = await one.ask(head + b"1\r\na\r\n0\r\n" + trailer)
            assert status == 431
            assert one.app.bodies == []  # the route was not reached

    run(test())


def test_only_a_body_that_is_there_is_read_without_a_deadline() -> None:
    async def test() -> None:
        async with place(PATIENT, BodyBounds(time_s=0.2)) as one:
            head = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"
            assert (await one.ask(head + b"body"))[0] == 200
            assert (await one.ask(head + b"bod"))[0] == 408
            client = await one.connect()
            client.writer.write(head + b"body" + head)  # the second one of a pipeline has no body
            assert (await client.answer())[0] == 200
            assert (await client.answer())[0] == 408
            assert one.app.is_whole == [True, False, True, False]

    run(test())


def test_a_body_in_crumbs_is_refused() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            fine = head + b"1\r\na\r\n" * (MOST_CHUNKS - 1) + b"0\r\n\r\n"
            assert (await one.ask(fine))[0] == 200
            assert (await one.ask(head + b"1\r\na\r\n" * (MOST_CHUNKS + 1)))[0] == 413
            assert (await one.ask(head + b"1;" + b"a" * 4096))[0] == 431
            assert one.app.bodies == [MOST_CHUNKS - 1]

    run(test())


def test_a_slow_head_gets_408_and_a_silent_connection_an_end() -> None:
    async def test() -> None:
        async with place(QUICK) as one:
            silent, slow, idle = [await one.connect() for _ in range(3)]
            idle.writer.write(HEAD + b"\r\n")
            assert (await idle.answer())[0] == 200
            slow.writer.write(HEAD)
            status, headers, _ = await slow.answer()
            assert (status, headers["connection"]) == (408, "close")
            for client in (silent, slow, idle):
                assert await client.is_ended()
            await one.until(lambda: len(one.shared) == 0)

    run(test())


def test_bytes_after_an_answer_do_not_keep_a_connection() -> None:
    async def test() -> None:
        async with place(QUICK) as one:
            client = await one.connect()
            client.writer.write(b"POST /no HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
            async with asyncio.timeout(WAIT_S):
                while len(one.shared) or not one.app.paths:
                    client.writer.write(b"a")
                    await asyncio.sleep(0.01)

    run(test())


def test_a_client_that_takes_nothing_of_an_answer_is_dropped() -> None:
    async def test() -> None:
        async with place(QUICK) as one:
            client = await one.connect()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.writer.write(b"GET /big HTTP/1.1\r\n\r\n")
            await one.until(lambda: one.app.bodies == [0])
            await one.until(lambda: len(one.shared) == 0)

    run(test())


def test_a_client_that_takes_its_time_gets_all_of_an_answer() -> None:
    async def test() -> None:
        async with place(QUICK) as one:
            client = await one.connect()
            client.writer.write(b"GET /big HTTP/1.1\r\n\r\n")
            await client.reader.readuntil(b"\r\n\r\n")
            for _ in range(8):  # several times the idle time
                await client.reader.readexactly(BIG // 8)
                await asyncio.sleep(QUICK.idle_time_s / 2)

    run(test())


def test_when_all_slots_are_taken_the_oldest_that_waits_gives_way() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            silent = [await one.connect() for _ in range(PATIENT.connections)]
            await one.until(lambda: len(one.shared) == PATIENT.connections)
            silent[0].writer.write(HEAD)  # half a head is no request
            silent[1].writer.write(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc")
            silent[2].writer.write(HEAD + b"\r\n")
            assert (await silent[2].answer())[0] == 200
            for _ in range(3):
                assert (await one.ask(HEAD + b"\r\n"))[0] == 200
            for place_ in (0, 1, 3):  # the third one was heard of later than the fourth
                assert await silent[place_].is_ended()
            silent[2].writer.write(HEAD + b"\r\n")
            assert (await silent[2].answer())[0] == 200
            assert len(one.shared) == PATIENT.connections

    run(test())


def test_when_every_slot_works_health_is_answered_and_the_rest_is_503_with_retry_after() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            busy = [await one.connect() for _ in range(PATIENT.connections)]
            for client in busy:
                client.writer.write(b"GET /held HTTP/1.1\r\n\r\n")
            await one.until(lambda: len(one.app.bodies) == PATIENT.connections)
            assert (await one.ask(HEAD + b"\r\n"))[0] == 200
            status, headers, body = await one.ask(b"GET /other HTTP/1.1\r\n\r\n")
            assert (status, headers["retry-after"]) == (503, "1")
            assert json.loads(body)["error"] == "too-many-connections"
            one.app.may_go.set()
            for client in busy:
                assert (await client.answer())[0] == 200

    run(test())


def test_beyond_the_reserve_connections_are_ended_at_once() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            most = PATIENT.connections + RESERVE
            for count in range(1, most + 1):
                path = b"/held" if count <= PATIENT.connections else b"/readyz"
                client = await one.connect()
                client.writer.write(b"GET %b HTTP/1.1\r\n\r\n" % path)
                await one.until(lambda count=count: len(one.app.bodies) == count)  # type: ignore[misc]
            assert len(one.shared) == most
            assert await (await one.connect()).is_ended()
            assert len(one.shared) == most

    run(test())


def test_requests_far_ahead_of_their_answers_end_the_connection_after_those_in_time() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            client = await one.connect()
            client.writer.write(b"GET /held HTTP/1.1\r\n\r\n" * (2 * MOST_AHEAD))
            await one.until(lambda: len(one.app.paths) == 1)
            one.app.may_go.set()
            answers = [await client.answer() for _ in range(MOST_AHEAD + 1)]
            assert {status for status, _, _ in answers} == {200}
            assert answers[-1][1]["connection"] == "close"
            assert await client.is_ended()
            assert len(one.app.paths) == MOST_AHEAD + 1

    run(test())


def test_nonsense_behind_a_request_does_not_take_its_answer() -> None:
    async def test() -> None:
        async with place(PATIENT) as one:
            client = await one.connect()
            client.writer.write(b"GET /held HTTP/1.1\r\n\r\n")
            await one.until(lambda: len(one.app.paths) == 1)
            client.writer.write(b"nonsense\r\n\r\n")
            await asyncio.sleep(0)
            one.app.may_go.set()
            status, headers, _ = await client.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert (await one.ask(b"nonsense\r\n\r\n"))[0] == 400

    run(test())


def test_a_body_that_never_comes_is_answered_408() -> None:
    async def test() -> None:
        async with place(QUICK, BodyBounds(time_s=0.1)) as one:
            for body in (b"", b"abc"):
                request = b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + body
                assert (await one.ask(request))[0] == 408
            await one.until(lambda: len(one.shared) == 0)

    run(test())
