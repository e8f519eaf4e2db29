"""A short way to the routes that devices use: by their exact path, past the search for routes.

The routes stay what they are, described and answered in the same way; what FastAPI would do in
between costs more than to check a frame of a thousand reports.
"""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

_log = logging.getLogger(__name__)


class _Request(Request):
    """A request whose body is read once; Starlette's own way is made for bodies in pieces."""

    async def body(self) -> bytes:
        """Return the whole body."""
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)


class DirectRoutes:
    """Calls some endpoints straight, and leaves everything else to the application.

    Args:
        app: The application; its handlers of exceptions are used here, too.
        paths: Path and what the placeholders of its route are, by the route's own path. The
            endpoints take the request and these, and return a response.
    """

    __slots__ = ("_app", "_ways")

    def __init__(self, app: FastAPI, paths: Mapping[str, tuple[str, Mapping[str, str]]]) -> None:
        self._app = app
        routes = {
            route.path: route
            for route in app.router.routes
            if isinstance(route, APIRoute) and "POST" in (route.methods or ())
        }
        self._ways = {path: (routes[own], values) for path, (own, values) in paths.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        way = self._ways.get(scope["path"]) if scope["type"] == "http" else None
        if way is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        route, values = way
        scope["app"], scope["route"] = self._app, route
        request = _Request(scope, receive)
        try:
            answer: Response = await route.endpoint(request=request, **values)
        except Exception as error:
            answer = await self._handler(error)(request, error)
            if answer.status_code == 500:
                _log.error("a fault of the service", exc_info=error)
        await answer(scope, receive, send)

    def _handler(self, error: Exception) -> Any:  # Any: as Starlette types handlers
        held = self._app.exception_handlers
        return next(held[kind] for kind in type(error).__mro__ if kind in held)
