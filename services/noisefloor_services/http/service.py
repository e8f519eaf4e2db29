"""What the services have in common: health, metrics, limits, tokens, and answers without input.

Outside in: the latencies, the access log, the guard (tokens, roles, rates), the limits on bodies,
the routes. A route without a rule is denied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor.errors import BadFrame, EpochOpen
from noisefloor_services import metrics
from noisefloor_services.http import error_handlers
from noisefloor_services.http.body_limits import BodyBounds, BodyLimits
from noisefloor_services.http.collection_apps import PREFIX, CollectionApps
from noisefloor_services.http.direct_routes import DirectRoutes
from noisefloor_services.http.error_handlers import describe_refusals
from noisefloor_services.http.guard import Guard
from noisefloor_services.http.logs import AccessLog
from noisefloor_services.http.policy import AnonymousAccess, Policy, Rule
from noisefloor_services.http.readiness import Readiness
from noisefloor_services.metrics import MetricSample, RequestLatency
from noisefloor_services.security import RateLimit, Role
from noisefloor_services.settings import Settings
from noisefloor_services.store import BadStore, FrameRefused, Refusal, StreamFull

DESCRIPTION = "/openapi.json"
COMMON: Mapping[str, Rule] = {
    "GET /healthz": AnonymousAccess.PUBLIC,
    "GET /readyz": AnonymousAccess.PUBLIC,
    "GET /metrics": Role.READ,
    f"GET {DESCRIPTION}": AnonymousAccess.PUBLIC,
}
UNAVAILABLE: dict[int | str, dict[str, Any]] = {  # Any: as FastAPI types it
    503: {"description": "Nothing is promised. Send the same again after Retry-After seconds."}
}
_AHEAD_S = 60
_REFUSALS: Mapping[Refusal, tuple[int, str, dict[str, str]]] = {
    Refusal.CLOSED: (410, "The epoch is closed: drop it, it counts no more.", {}),
    Refusal.FULL: (410, "The epoch is full: drop it, it cannot count.", {}),
    Refusal.AHEAD: (
        409,
        "The epoch is too far ahead: keep it, and send the same later.",
        {"Retry-After": f"{_AHEAD_S}"},
    ),
}


class UnkeptPromise(BaseModel):
    """A promise that the store cannot make, and why."""

    promise: str
    why: str


class ReadinessStatus(BaseModel):
    """Whether requests should be sent here; `lacks` is empty if so."""

    status: str
    lacks: list[str]
    durability: str
    promise: str
    unkept: list[UnkeptPromise]


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What makes one service different from another.

    Attributes:
        name: Of the service.
        description: For a client developer.
        add: Adds its routes.
        rules: Who may call them.
        runs: What runs beside them, as a context.
        samples: Numbers at the time of asking; may block.
        unlogged: Paths of devices, which the access log leaves out.
        direct: Paths that are served the short way, see ``DirectRoutes``.
    """

    name: str
    description: str
    add: Callable[[APIRouter], None]
    rules: Mapping[str, Rule]
    runs: Callable[[], AbstractAsyncContextManager[None]]
    samples: Callable[[], Iterable[MetricSample]]
    unlogged: tuple[str, ...] = ()
    direct: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)


class Service:
    """One service as an ASGI application.

    Args:
        parts: What makes it different.
        settings: What it was told.
        readiness: Whether it may be sent requests.
        collection_apps: Other collections that it serves.
        rate: Of requests with a token; rooms share it with the service whose rooms they are.
    """

    __slots__ = ("_asgi", "_latency", "api", "collection_apps", "name", "policy", "readiness")

    def __init__(
        self,
        parts: ServiceSpec,
        settings: Settings,
        readiness: Readiness,
        *,
        collection_apps: CollectionApps | None = None,
        rate: RateLimit | None = None,
    ) -> None:
        self.name = parts.name
        self.readiness = readiness
        self.collection_apps = collection_apps
        self.policy = Policy({**COMMON, **parts.rules})
        self.api = _api(parts, readiness, collection_apps)
        self._add_common(parts)
        described = describe_refusals(self.policy.describe(self.api.openapi()))
        self.api.openapi_schema = described
        limits = BodyBounds(settings.body_bytes, time_s=settings.body_time_s)
        guarded = Guard(
            BodyLimits(DirectRoutes(self.api, parts.direct), limits),
            self.policy,
            settings.credentials,
            limit=rate or rate_limit(settings),
            usual=[("POST", path) for path in parts.direct],
        )
        logged = AccessLog(guarded, unlogged=parts.unlogged)
        self._latency = RequestLatency(logged, described["paths"])
        self._asgi: ASGIApp = self._latency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; one for a room goes there, if there is such a room."""
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            if self.collection_apps is not None and await self.collection_apps.serve(
                scope, receive, send
            ):
                return
        await self._asgi(scope, receive, send)

    def stop(self) -> None:
        """Ask for no more requests."""
        self.readiness.stop()
        if self.collection_apps is not None:
            self.collection_apps.stop()

    def _add_common(self, parts: ServiceSpec) -> None:
        @self.api.get("/healthz", tags=["health"], summary="Whether the process runs.")
        async def health() -> dict[str, str]:
            return {"status": "alive"}

        @self.api.get(
            "/readyz",
            tags=["health"],
            summary="Whether requests should be sent here, and if not, why.",
            response_model=ReadinessStatus,
            responses={
                503: {"description": "Not now; `lacks` says why.", "model": ReadinessStatus}
            },
        )
        async def ready() -> JSONResponse:
            return _readiness(self.readiness)

        @self.api.get(
            "/metrics",
            tags=["health"],
            summary="Numbers, in the text form of Prometheus.",
            response_class=PlainTextResponse,
        )
        def numbers() -> Response:
            return Response(self._numbers(parts), media_type=metrics.MEDIA_TYPE)

    def _numbers(self, parts: ServiceSpec) -> str:
        """Write every number; those that Redis has are left out while it is away."""
        samples = [*_common_samples(self.readiness), *parts.samples()]
        return metrics.prometheus_text(samples, self._latency.lines())


def rate_limit(settings: Settings) -> RateLimit:
    """Return the limit of requests with a token that the settings ask for."""
    return RateLimit(settings.rate, settings.burst, clock=time.monotonic)


def _api(
    parts: ServiceSpec, readiness: Readiness, collection_apps: CollectionApps | None
) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(readiness.look)
        watch = asyncio.create_task(readiness.watch(), name="readiness")
        try:
            async with parts.runs():
                if collection_apps is not None:
                    collection_apps.start()
                yield
                if collection_apps is not None:
                    await collection_apps.close()
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            readiness.close()

    api = FastAPI(
        title=f"noisefloor {parts.name}",
        version=_version(),
        description=parts.description,
        lifespan=lifespan,
        openapi_url=DESCRIPTION,
        docs_url=None,  # their scripts come from elsewhere
        redoc_url=None,
    )
    error_handlers.install_error_handlers(api)
    api.add_exception_handler(BadFrame, _bad_frame)
    api.add_exception_handler(StreamFull, _full)
    api.add_exception_handler(FrameRefused, _refused)
    api.add_exception_handler(EpochOpen, _open_epoch)
    api.add_exception_handler(BadStore, _bad_store)
    parts.add(api.router)
    return api


def _readiness(readiness: Readiness) -> JSONResponse:
    lacks = readiness.lacks
    body = {
        "status": "not ready" if lacks else "ready",
        "lacks": list(lacks),
        "durability": readiness.durability.value,
        "promise": readiness.durability.promise,
        "unkept": [{"promise": one.promise.value, "why": one.text} for one in readiness.unkept],
    }
    headers = {"Cache-Control": "no-store"} | (error_handlers.RETRY_AFTER if lacks else {})
    return JSONResponse(body, 503 if lacks else 200, headers)


def _common_samples(readiness: Readiness) -> Iterable[MetricSample]:
    yield MetricSample("ready", "Whether requests should be sent here.", int(not readiness.lacks))
    text = "Whether the store answered when last asked."
    yield MetricSample("store_reachable", text, int(readiness.is_reachable))
    if readiness.is_reachable:
        text = "Promises that the store cannot make."
        yield MetricSample("promises_unkept", text, len(readiness.unkept))


async def _bad_frame(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BadFrame)
    told = {"error": "bad-frame", "detail": str(error), "field": error.field, "rule": error.rule}
    return JSONResponse(told, 400)


async def _full(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StreamFull)
    detail = f"Too much waits: send the same in {error.retry_after_s} s."
    headers = {"Retry-After": str(error.retry_after_s)}
    return JSONResponse({"error": "too-much-waits", "detail": detail}, 429, headers)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FrameRefused)
    status, detail, headers = _REFUSALS[error.reason]
    return JSONResponse({"error": error.reason.value, "detail": detail}, status, headers)


async def _open_epoch(_: Request, __: Exception) -> JSONResponse:
    detail = "The epoch is open: it is released once it is closed."
    return JSONResponse({"error": "epoch-open", "detail": detail}, 409)


async def _bad_store(_: Request, __: Exception) -> JSONResponse:
    detail = "The store holds something else, or lost what it held."
    return JSONResponse({"error": "bad-store", "detail": detail}, 503, error_handlers.RETRY_AFTER)


def _version() -> str:
    try:
        return version("noisefloor")
    except PackageNotFoundError:
        return "0"
