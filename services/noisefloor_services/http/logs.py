"""Logs as JSON, one object a line, without anything about who called.

Own loggers (``noisefloor...``) say what they say. Of other loggers only the constant part of a
message is kept, and of exceptions only the type and the places: texts of errors, arguments of
messages and addresses may hold what a client sent. The access log has the method, the route as the
interface describes it, the status and the time taken; no address, no user agent, no query.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor_services.metrics import observe_request

OWN = "noisefloor"
ACCESS = f"{OWN}.access"
_TEMPLATED = ("uvicorn", "uvicorn.error")
_MOST_FRAMES = 30


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write what may be written of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "time": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        fields = getattr(record, "fields", None)
        if _is_own(record.name) and isinstance(fields, dict):
            line.update({str(name): value for name, value in fields.items() if name not in line})
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exception(record.exc_info[1])
        return json.dumps(line, default=lambda value: type(value).__name__)


def configure_logging(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send everything that is logged to one stream, as JSON; warnings of Python included."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in (*_TEMPLATED, "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"


def uvicorn_options() -> dict[str, Any]:  # Any: keyword arguments of uvicorn.Config
    """Return how uvicorn has to be started so that its logs and headers reveal nothing."""
    return {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "date_header": True,
        "proxy_headers": False,
    }


class AccessLog:
    """Logs each request by its route; as ASGI, outside of everything else.

    Args:
        app: What answers.
        unlogged: Paths whose requests are counted elsewhere and never logged: those of devices,
            the time of a report is private, and writing a line costs time.
        clock: Seconds that never run backwards.
    """

    __slots__ = ("_app", "_clock", "_logger", "_unlogged")

    def __init__(
        self,
        app: ASGIApp,
        *,
        unlogged: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._unlogged = frozenset(unlogged)
        self._clock = clock
        self._logger = logging.getLogger(ACCESS)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in self._unlogged:
            return self._app(scope, receive, send)

        def record(status: int, taken_s: float) -> None:
            fields = {"method": _method(scope), "route": _route(scope), "status": status}
            taken_ms = round(taken_s * 1000, 3)
            self._logger.info("request", extra={"fields": {**fields, "duration_ms": taken_ms}})

        return observe_request(self._app, scope, receive, send, clock=self._clock, record=record)


def _method(scope: Scope) -> str:
    known = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
    return scope["method"] if scope["method"] in known else "other"


def _route(scope: Mapping[str, Any]) -> str:  # Any: ASGI's scope
    """Return the route as it is described: a path itself may hold an id."""
    route = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", None) or "<none>")


def _message(record: logging.LogRecord) -> str:
    if _is_own(record.name):
        return record.getMessage()
    if record.name in _TEMPLATED and isinstance(record.msg, str) and record.args:
        return record.msg  # without its arguments
    if record.name in _TEMPLATED and record.msg in _CONSTANT:
        return str(record.msg)
    return f"<a message of {record.module}, line {record.lineno}>"


_CONSTANT = frozenset(
    {
        "Application shutdown complete.",
        "Application shutdown failed. Exiting.",
        "Application startup complete.",
        "Application startup failed. Exiting.",
        "Exception in ASGI application\n",
        "Finished server process [%d]",
        "Invalid HTTP request received.",
        "Shutting down",
        "Waiting for application shutdown.",
        "Waiting for application startup.",
        "Waiting for background tasks to complete. (CTRL+C to force quit)",
        "Waiting for connections to close. (CTRL+C to force quit)",
    }
)


def _exception(error: BaseException) -> dict[str, object]:
    """Write an exception by type and places; its text may hold anything."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"type": type(error).__qualname__, "places": places}


def _is_own(name: str) -> bool:
    return name == OWN or name.startswith((f"{OWN}.", f"{OWN}_"))
