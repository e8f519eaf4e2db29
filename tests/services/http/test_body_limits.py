"""Bodies that are too large, too deep, too slow or compressed never reach a route."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from live_apps import Caller, chunked
from noisefloor.errors import BadParameter
from noisefloor_services.http.body_limits import (
    MOST_BUFFERED,
    BodyBounds,
    BodyLimits,
    Deadline,
    is_deeper,
)

MIB = 1 << 20
SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "path": "/echo", "root_path": ""} | {
    "query_string": b"",
    "http_version": "1.1",
    "scheme": "http",
}


def an_app(seen: list[int]) -> FastAPI:
    app = FastAPI()

    @app.post("/echo")
    async def echo(request: Request) -> int:
        seen.append(len(await request.body()))
        return seen[-1]

    @app.get("/plain")
    def plain() -> str:
        return "here"

    return app


@pytest.fixture
def seen() -> list[int]:
    return []


@pytest.fixture
def client(seen: list[int]) -> Caller:
    return Caller(BodyLimits(an_app(seen)))


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 1024):
        yield b"a" * 1024
    yield b"a" * (size % 1024)


def test_a_mebibyte_passes_and_a_byte_more_does_not(client: Caller, seen: list[int]) -> None:
    binary = {"Content-Type": "application/octet-stream"}
    assert client("POST", "/echo", content=b"a" * MIB, headers=binary).json() == MIB
    assert client("POST", "/echo", content=b"a" * (MIB + 1), headers=binary).status_code == 413
    assert client("POST", "/echo", content=chunked(chunks(MIB)), headers=binary).json() == MIB
    assert (
        client("POST", "/echo", content=chunked(chunks(MIB + 1)), headers=binary).status_code
        == 413
    )
    assert client("POST", "/echo").json() == 0
    assert client("GET", "/plain").json() == "here"
    assert seen == [MIB, MIB, 0]


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "identity, gzip", "GZIP"])
def test_compressed_bodies_are_refused(client: Caller, encoding: str) -> None:
    answer = client("POST", "/echo", content=b"x", headers={"Content-Encoding": encoding})
    assert answer.status_code == 415
    assert encoding not in answer.text
    fine = client("POST", "/echo", content=b"x", headers={"Content-Encoding": "identity"})
    assert fine.json() == 1


def test_json_is_32_deep_and_no_deeper(client: Caller, seen: list[int]) -> None:
    for depth, status in ((32, 200), (33, 422), (100_000, 422)):
        for left, right in (("[", "]"), ('{"a":', "}")):
            content = left * depth + ("1" if left != "[" else "") + right * depth
            headers = {"Content-Type": "application/json; charset=utf-8"}
            answer = client("POST", "/echo", content=content.encode(), headers=headers)
            assert answer.status_code == status
    assert len(seen) == 2
    assert client("POST", "/echo", content=b"[" * 33).status_code == 422


nested = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\a', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=3), inner)
    ),
    max_leaves=30,
)


def depth_of(value: Any) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 0


@given(nested)
def test_depth_is_that_of_the_parsed_value(value: Any) -> None:
    data, depth = json.dumps(value).encode(), depth_of(value)
    assert not is_deeper(data, depth)
    if depth:
        assert is_deeper(data, depth - 1)


@given(st.binary(max_size=300), st.integers(1, 5))
def test_depth_of_anything_is_found_without_an_error(data: bytes, most: int) -> None:
    if data.count(b"[") + data.count(b"{") <= most:
        assert not is_deeper(data, most)
    is_deeper(data, most)


def test_texts_that_never_end_take_no_quadratic_time() -> None:
    hostile = b"[" * 33 + b'"' + b'\\"' * (MIB // 2)
    assert is_deeper(hostile, 32)
    assert not is_deeper(b'"' + b"[" * MIB, 32)
    assert not is_deeper(b'"' + b"[" * 40 + b"\\", 32)
    assert is_deeper(b'""' * (MIB // 4) + b"[" * 33, 32)


def drive(parts: list[Message | float], limits: BodyBounds, headers: list[Any]) -> list[Message]:
    """Serve one request whose messages come as told; a number is a pause."""
    sent: list[Message] = []
    pending = list(parts)

    async def receive() -> Message:
        while pending:
            part = pending.pop(0)
            if not isinstance(part, float):
                return part
            await asyncio.sleep(part)
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(BodyLimits(an_app([]), limits)({**SCOPE, "headers": headers}, receive, send))
    return sent


def part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_that_drips_is_cut_off() -> None:
    dripping: list[Message | float] = [one for _ in range(50) for one in (0.02, part(b"a"))]
    sent = drive(dripping, BodyBounds(time_s=0.1), [])
    assert sent[0]["status"] == 408
    assert (b"Connection", b"close") in sent[0]["headers"]


def test_unfinished_bodies_take_bounded_memory_and_the_oldest_are_given_up() -> None:
    answered: dict[int, tuple[int, bool]] = {}

    async def all_of_it() -> None:
        limited, may_end = BodyLimits(an_app([]), BodyBounds(100)), asyncio.Event()

        async def one(number: int, *, trickles: bool = False) -> None:
            coming = [part(b"a" * 90), *([part(b"a")] if trickles else []), part(b"", more=False)]

            async def receive() -> Message:
                if len(coming) < 2 + trickles:
                    await may_end.wait()
                return coming.pop(0)

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    has_retry = (b"Retry-After", b"1") in message["headers"]
                    answered[number] = message["status"], has_retry

            await limited({**SCOPE, "headers": []}, receive, send)

        tasks = [asyncio.create_task(one(0, trickles=True))]
        most = MOST_BUFFERED * 100 // 90
        for number in range(1, most + 2):
            tasks.append(asyncio.create_task(one(number)))
        await asyncio.sleep(0)
        assert len(limited._unfinished) == most
        may_end.set()
        await asyncio.gather(*tasks)
        assert (limited._buffered_bytes, limited._unfinished) == (0, {})
        assert (answered.pop(0), answered.pop(1)) == ((503, True), (503, True))
        assert set(answered.values()) == {(200, False)}

    asyncio.run(all_of_it())


def test_what_others_cancel_stays_cancelled_and_the_next_is_timed_again() -> None:
    deadline = Deadline(0.05)

    async def wait_for_ever() -> None:
        await asyncio.sleep(60)

    async def late() -> str:
        try:
            await deadline.bound(wait_for_ever())
        except TimeoutError:
            return "late"
        return "done"

    async def all_of_it() -> list[str]:
        cancelled = asyncio.create_task(deadline.bound(wait_for_ever()))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        first = await asyncio.gather(late(), late(), deadline.bound(asyncio.sleep(0, "quick")))
        await asyncio.sleep(0.05)
        return [*first, await late()]

    assert asyncio.run(all_of_it()) == ["late", "late", "quick", "late"]
    assert asyncio.run(late()) == "late"


def test_a_caller_who_goes_away_reaches_nothing() -> None:
    assert drive([part(b"a"), {"type": "http.disconnect"}], BodyBounds(), []) == []


@pytest.mark.parametrize("lengths", [[b"-1"], [b"x"], [b"1", b"2"], [b"1" * 30], [b"\xb2"], [b""]])
def test_a_length_that_is_none_is_refused(lengths: list[bytes]) -> None:
    sent = drive(
        [part(b"", more=False)], BodyBounds(), [(b"content-length", one) for one in lengths]
    )
    assert sent[0]["status"] == 400


def test_limits_have_limits() -> None:
    for wrong in ({"size_bytes": -1}, {"depth": 0}, {"time_s": 0}):
        with pytest.raises(BadParameter):
            BodyBounds(**wrong)
