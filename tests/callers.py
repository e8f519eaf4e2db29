"""Call an ASGI application as a client would, without a socket."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx
from starlette.types import ASGIApp


class Caller:
    """Sends requests to an application, one after the other."""

    def __init__(self, app: ASGIApp, *, raises: bool = True) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=raises)

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request; the options are those of httpx."""
        return asyncio.run(self._send(method, path, options))

    async def _send(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://test") as client:
            return await client.request(method, path, **options)


async def chunked(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Send parts as a body whose length nobody announces."""
    for part in parts:
        yield part
