"""Answers that are given before, or instead of, a route: short JSON that repeats nothing."""

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from starlette.types import Send

Pairs: TypeAlias = list[tuple[bytes, bytes]]


def error_body(error: str, detail: str) -> bytes:
    """Write the body of every refusal: a name for programs and a sentence for people."""
    return json.dumps({"error": error, "detail": detail}, separators=(",", ":")).encode("ascii")


async def refuse(
    send: Send,
    status: int,
    error: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer with a refusal; what the caller sent is no part of it."""
    body = error_body(error, detail)
    pairs: Pairs = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    pairs += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def header(pairs: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """Return every value that a header has; ASGI gives names in lower case."""
    return [value for held, value in pairs if held == name]
