"""The ad server: catalogue and model out, ad requests and frames of reports in.

Device routes carry no identity: no token, no cookie, no address is looked at or kept. What is
answered with 202 is with Redis, on disk where that is the promise; the aggregator counts it.
"""

from collections.abc import Mapping

from fastapi import APIRouter

from noisefloor.randomness import Source
from noisefloor.roles import CollectionConfig
from noisefloor_services import http
from noisefloor_services.ad_server.routes import add_routes
from noisefloor_services.ad_server.state import AdServerState, PredictionQueue
from noisefloor_services.security import RateLimit, Role, secure_source
from noisefloor_services.settings import Settings
from noisefloor_services.store import CollectionRegistry, Durability, Layout, Server

NAME = "ad-server"
RULES: Mapping[str, http.Rule] = {
    "GET /catalogue": http.AnonymousAccess.DEVICE,
    "GET /model": http.AnonymousAccess.DEVICE,
    "POST /requests": http.AnonymousAccess.DEVICE,
    "POST /predictions": http.AnonymousAccess.DEVICE,
    "POST /frames": http.AnonymousAccess.DEVICE,
    "POST /reports/{kind}": http.AnonymousAccess.DEVICE,
    "POST /tokens/{epoch}": Role.ADMIN,
}
DESCRIPTION = """Hands out the catalogue and the model, answers ad requests, takes reports.

Devices send **frames**: an Arrow IPC stream of one record batch whose schema has four entries of
metadata (version, kind, epoch, batch id; for a collection beside the first, its name). There is
exactly one way to write a frame; see `noisefloor.wire.encode_frame`. A frame that was answered
with 202 counts exactly once, however often it is sent. After no answer, 429 or 503 send the
**same bytes** again, when Retry-After says.
409 says that the epoch is too far ahead: keep the bytes and send the same later. 410 says that the
epoch is closed or full: drop the frame. It does not count, unless it was taken before and only the
answer was lost. Every refusal says it as `action`: `resend`, `wait` or `drop`. No request needs
a token, and none is looked at.

`POST /frames` takes frames of every kind of the collection. `POST /requests` takes frames of
requests and of nothing else, under the same rules; a single request may also be sent as JSON.

Collections that are registered at the aggregator are served under `/collections/NAME`, each with
all routes and a description of its own: `/collections/NAME/openapi.json`.
"""


def create(
    settings: Settings,
    collection: CollectionConfig,
    *,
    environment: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> http.Service:
    """Make the ad server; it also serves collections that are registered at the aggregator.

    Args:
        settings: From the environment.
        collection: Catalogue and kinds.
        environment: As the process got it; a seed in it is refused.
        source: Nothing, or a SecureSource.
    """
    drawn = secure_source(environment or {}, settings, source)
    rate, collection = http.rate_limit(settings), collection.at_least(settings.minimum_batch)
    registry = CollectionRegistry(
        Server(settings.redis_url, timeout_s=http.LOOK_S),
        Layout(collection.namespace, settings.partitions),
        default_minimum=settings.minimum_batch,
    )

    predictions = PredictionQueue()

    def collection_app(other: CollectionConfig) -> http.Service:
        return _service(settings, other, drawn, predictions, rate=rate)

    collection_apps = http.CollectionApps(registry, collection_app, is_eager=False)
    return _service(
        settings, collection, drawn, predictions, rate=rate, collection_apps=collection_apps
    )


def _service(
    settings: Settings,
    collection: CollectionConfig,
    source: Source,
    predictions: PredictionQueue,
    *,
    rate: RateLimit,
    collection_apps: http.CollectionApps | None = None,
) -> http.Service:
    readiness = http.Readiness(settings.redis_url, Durability(settings.durability))
    shared = AdServerState(settings, collection, source, readiness, predictions)

    def add(router: APIRouter) -> None:
        add_routes(router, shared)

    reports = {f"/reports/{name}": ("/reports/{kind}", {"kind": name}) for name in shared.kinds}
    plain = {path: (path, dict[str, str]()) for path in ("/frames", "/requests")}
    direct = plain | reports
    unlogged = (*direct, "/predictions")
    spec = http.ServiceSpec(
        NAME, DESCRIPTION, add, RULES, shared.running, shared.samples, unlogged, direct
    )
    return http.Service(spec, settings, readiness, collection_apps=collection_apps, rate=rate)
