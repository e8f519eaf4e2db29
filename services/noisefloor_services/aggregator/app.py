"""The aggregator: a worker that counts, and an API for what was counted.

Sums are shown once their epoch is closed, and never before: two looks at an open epoch would tell
what came in between.
"""

from collections.abc import Mapping

from fastapi import APIRouter

from noisefloor.roles import CollectionConfig
from noisefloor_services.aggregator.collection_routes import RULES as REGISTERING_RULES
from noisefloor_services.aggregator.collection_routes import CollectionRoutes
from noisefloor_services.aggregator.routes import add_routes
from noisefloor_services.aggregator.state import AggregatorState
from noisefloor_services.http import LOOK_S, CollectionApps, Rule, Service, ServiceSpec, rate_limit
from noisefloor_services.security import RateLimit, Role, check_environment, check_settings
from noisefloor_services.settings import Settings
from noisefloor_services.store import CollectionRegistry, Layout, LogRewriting, Server

NAME = "aggregator"
RULES: Mapping[str, Rule] = {
    "GET /statistics/{kind}/{epoch}": Role.READ,
    "GET /epochs/{kind}/{epoch}": Role.READ,
    "POST /epochs/{kind}/{epoch}/close": Role.ADMIN,
    "POST /epochs/{kind}/{epoch}/retire": Role.ADMIN,
    "GET /conservation": Role.READ,
    "GET /state": Role.READ,
    "GET /model": Role.READ,
}
DESCRIPTION = """Counts reports exactly once, and shows the sums of epochs that are closed.

Kinds that are summed are answered as JSON: the cells in the order of the kind's columns. Kinds
that are collected are answered as an Arrow IPC stream of their rows, sorted by content.
Every route takes a bearer token with the role that it names.

Other collections are registered by `PUT /collections/NAME` with a document as the first one's
file: catalogue, kinds, training task (`course`). Each is then served under `/collections/NAME`,
here and by the ad servers, with all routes and a description of its own.
"""


def create(
    settings: Settings,
    collection: CollectionConfig,
    *,
    environment: Mapping[str, str] | None = None,
) -> Service:
    """Make the aggregator; it also serves collections that are registered beside its own.

    Args:
        settings: From the environment.
        collection: Catalogue, kinds, and the training task.
        environment: As the process got it; a seed in it is refused.
    """
    check_environment(environment or {})
    check_settings(settings)
    rate, collection = rate_limit(settings), collection.at_least(settings.minimum_batch)
    layout = Layout(collection.namespace, settings.partitions)
    server = Server(settings.redis_url, timeout_s=LOOK_S)
    registry = CollectionRegistry(server, layout, default_minimum=settings.minimum_batch)

    log_rewriting = LogRewriting(Server(settings.redis_url, timeout_s=LOOK_S), layout)

    def collection_app(other: CollectionConfig) -> Service:
        return _service(settings, AggregatorState(settings, other, log_rewriting), rate=rate)

    collection_apps = CollectionApps(registry, collection_app, is_eager=True)
    return _service(
        settings,
        AggregatorState(settings, collection, log_rewriting, is_first=True),
        rate=rate,
        collection_apps=collection_apps,
        registering=CollectionRoutes(settings, registry, collection_apps, log_rewriting),
    )


def _service(
    settings: Settings,
    shared: AggregatorState,
    *,
    rate: RateLimit,
    collection_apps: CollectionApps | None = None,
    registering: CollectionRoutes | None = None,
) -> Service:
    def add(router: APIRouter) -> None:
        add_routes(router, shared)
        if registering is not None:
            registering.add(router)

    rules = {**RULES, **(REGISTERING_RULES if registering is not None else {})}
    spec = ServiceSpec(NAME, DESCRIPTION, add, rules, shared.running, shared.samples)
    return Service(spec, settings, shared.readiness, collection_apps=collection_apps, rate=rate)
