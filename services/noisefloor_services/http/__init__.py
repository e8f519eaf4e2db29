"""What every service has over HTTP: limits, tokens, errors, logs, readiness, and the server."""

from noisefloor_services.http.bodies import (
    FRAME_TYPE,
    EpochNumber,
    KindName,
    frame_body,
    is_frame,
    json_body,
    openapi_frame_body,
    openapi_json_body,
)
from noisefloor_services.http.collection_apps import LOOK_S, CollectionApps
from noisefloor_services.http.error_handlers import JSON, RETRY_AFTER, RETRY_LATER
from noisefloor_services.http.logs import configure_logging
from noisefloor_services.http.policy import AnonymousAccess, Rule
from noisefloor_services.http.readiness import Readiness
from noisefloor_services.http.service import UNAVAILABLE, Service, ServiceSpec, rate_limit
from noisefloor_services.http.serving import serve

__all__ = [
    "FRAME_TYPE",
    "JSON",
    "LOOK_S",
    "RETRY_AFTER",
    "RETRY_LATER",
    "UNAVAILABLE",
    "AnonymousAccess",
    "CollectionApps",
    "EpochNumber",
    "KindName",
    "Readiness",
    "Rule",
    "Service",
    "ServiceSpec",
    "configure_logging",
    "frame_body",
    "is_frame",
    "json_body",
    "openapi_frame_body",
    "openapi_json_body",
    "rate_limit",
    "serve",
]
