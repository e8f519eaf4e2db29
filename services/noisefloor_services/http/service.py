"""What the services have in common: health, metrics, limits, tokens, and answers without input.

Middleware from the outside in: request latencies, access log, guard (tokens, roles, rates), body
limits, direct routes, FastAPI. A route without a rule is denied.

``DirectRoutes`` calls the endpoints of devices by their exact path. The routes are still described
and answered in the same way, but FastAPI's routing and dependency handling, which cost more than
validating a frame of a thousand reports, are skipped.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from noisefloor_services import metrics
from noisefloor_services.http import error_handlers
from noisefloor_services.http.body_limits import BodyBounds, BodyLimits
from noisefloor_services.http.collection_apps import PREFIX, CollectionApps
from noisefloor_services.http.error_handlers import describe_refusals
from noisefloor_services.http.logs import AccessLog
from noisefloor_services.http.policy import AnonymousAccess, Guard, Policy, Rule
from noisefloor_services.http.readiness import Readiness
from noisefloor_services.metrics import MetricSample, RequestLatency
from noisefloor_services.security import RateLimit, Role
from noisefloor_services.settings import Settings

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
        samples: Current values of its metrics; may block.
        unlogged: Paths of devices, which the access log leaves out.
        direct: Paths that are served without FastAPI's routing, see ``DirectRoutes``.
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
        spec: What makes it different.
        settings: From the environment.
        readiness: Whether it may be sent requests.
        collection_apps: Other collections that it serves.
        rate: Limit of requests with a token; the collections of a service share one.
    """

    __slots__ = ("_asgi", "_latency", "api", "collection_apps", "name", "policy", "readiness")

    def __init__(
        self,
        spec: ServiceSpec,
        settings: Settings,
        readiness: Readiness,
        *,
        collection_apps: CollectionApps | None = None,
        rate: RateLimit | None = None,
    ) -> None:
        self.name = spec.name
        self.readiness = readiness
        self.collection_apps = collection_apps
        self.policy = Policy({**COMMON, **spec.rules})
        self.api = _api(spec, readiness, collection_apps)
        self._add_common(spec)
        described = describe_refusals(self.policy.describe(self.api.openapi()))
        self.api.openapi_schema = described
        limits = BodyBounds(settings.body_bytes, time_s=settings.body_time_s)
        guarded = Guard(
            BodyLimits(DirectRoutes(self.api, spec.direct), limits),
            self.policy,
            settings.credentials,
            limit=rate or rate_limit(settings),
            usual=[("POST", path) for path in spec.direct],
        )
        logged = AccessLog(guarded, unlogged=spec.unlogged)
        self._latency = RequestLatency(logged, described["paths"])
        self._asgi: ASGIApp = self._latency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; one for another collection goes to the app of that collection."""
        if scope["type"] == "http" and scope["path"].startswith(PREFIX):
            if self.collection_apps is not None and await self.collection_apps.serve(
                scope, receive, send
            ):
                return
        await self._asgi(scope, receive, send)

    def stop(self) -> None:
        """Become not ready, so that no more requests are sent."""
        self.readiness.stop()
        if self.collection_apps is not None:
            self.collection_apps.stop()

    def _add_common(self, spec: ServiceSpec) -> None:
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
            return Response(self._numbers(spec), media_type=metrics.MEDIA_TYPE)

    def _numbers(self, spec: ServiceSpec) -> str:
        """Write every metric; those that come from Redis are left out while it is away."""
        samples = [*_common_samples(self.readiness), *spec.samples()]
        return metrics.prometheus_text(samples, self._latency.lines())


def rate_limit(settings: Settings) -> RateLimit:
    """Return the rate limit that the settings give for requests with a token."""
    return RateLimit(settings.rate, settings.burst, clock=time.monotonic)


def _api(
    spec: ServiceSpec, readiness: Readiness, collection_apps: CollectionApps | None
) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(readiness.look)
        watch = asyncio.create_task(readiness.watch(), name="readiness")
        try:
            async with spec.runs():
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
        title=f"noisefloor {spec.name}",
        version=_version(),
        description=spec.description,
        lifespan=lifespan,
        openapi_url=DESCRIPTION,
        docs_url=None,  # Swagger UI loads its scripts from a CDN
        redoc_url=None,
    )
    error_handlers.install_error_handlers(api)
    error_handlers.install_frame_handlers(api)
    spec.add(api.router)
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


def _version() -> str:
    try:
        return version("noisefloor")
    except PackageNotFoundError:
        return "0"


_log = logging.getLogger(__name__)


class _Request(Request):
    """A request whose body is read once; Starlette's own way is made for bodies in pieces."""

    async def body(self) -> bytes:
        """Return the whole body."""
        chunks: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(chunks)


class DirectRoutes:
    """Calls some endpoints straight, and leaves everything else to the application.

    Args:
        app: The application; its handlers of exceptions are used here, too.
        paths: Path and what the placeholders of its route are, by the route's own path. The
            endpoints take the request and these, and return a response.
    """

    __slots__ = ("_app", "_routes")

    def __init__(self, app: FastAPI, paths: Mapping[str, tuple[str, Mapping[str, str]]]) -> None:
        self._app = app
        routes = {
            route.path: route
            for route in app.router.routes
            if isinstance(route, APIRoute) and "POST" in (route.methods or ())
        }
        self._routes = {path: (routes[own], values) for path, (own, values) in paths.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        direct = self._routes.get(scope["path"]) if scope["type"] == "http" else None
        if direct is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        route, values = direct
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
        handlers = self._app.exception_handlers
        return next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
