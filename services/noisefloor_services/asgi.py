"""Watching a request from outside an app: its status and how long it took."""

from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def watched(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    clock: Callable[[], float],
    tell: Callable[[int, float], None],
) -> None:
    """Serve one request, and tell its status and seconds; 500 if the app broke off."""
    status, started = 500, clock()

    def noted(message: Message) -> Awaitable[None]:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        return send(message)

    try:
        await app(scope, receive, noted)
    finally:
        tell(status, clock() - started)
