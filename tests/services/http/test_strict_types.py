"""No body of a request is coerced: where a number or a flag belongs, nothing else is taken.

The operations are those that the services themselves describe: one that is added without an
example here fails the first test.
"""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from live_apps import Live, bearer, credentials, live
from noisefloor.roles.collection_config import example_collection
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import Bins, Records, Schema
from noisefloor_services import ad_server, aggregator, publisher
from noisefloor_services.http.service import Service
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from wrong_types import leaves, replaced, wrong_types

JSON = {"Content-Type": "application/json"}
COST = {"epsilon": 0.5, "delta": 1e-6, "neighbours": "record-add-remove"}
EXAMPLES: dict[str, dict[str, object]] = {
    "POST /publications": {
        "publication_id": "p-1",
        "data_set": "visits",
        "method": "logistic",
        "cost": COST,
        "parameters": {"label": "age", "size": 4, "steps": 3, "clip": 1.5},
        "dry_run": True,
    },
    "PUT /data-sets/{name}": {
        "declaration": {"record": "one", "columns": {"buys": {"categories": ["no", "yes"]}}},
        "budget": COST,
        "audit": False,
        "experiment": False,
    },
    "PUT /collections/{name}": json.loads(example_collection(2).content),
    "POST /requests": {"epoch": 0, "index": 1},
    "POST /reports/{kind}": {"epoch": 0, "report": 1},
    "POST /tokens/{epoch}": {"count": 2},
}
PLACES = {"name": "more", "kind": "impressions", "epoch": "0"}


@pytest.fixture(scope="module")
def apps(valkey: EmbeddedServer) -> Iterator[dict[str, Live]]:
    """Run all three services, and return each under the routes that it has."""
    schema = Schema("one visit", {"age": Bins((0, 30, 60)), "pulse": Bins((0, 80, 200))})
    columns = {name: np.array([10, 40, 50, 20]) for name in ("age", "pulse")}
    records = {"visits": Records.of(columns, schema, "visits.csv")}
    given = Settings(redis_url=valkey.url, credentials=credentials(), rate=1e6, burst=10**6)
    publisher.create_ledger(given)
    services: list[Service] = [
        ad_server.create(given, example_collection()),
        aggregator.create(given, example_collection()),
        publisher.create(given, methods_of(records), data_sets=records),
    ]
    with live(services[0]) as ads, live(services[1]) as counts, live(services[2]) as publishes:
        for app in (ads, counts, publishes):
            app.wait_ready()
        yield {route: app for app in (ads, counts, publishes) for route in _json_routes(app)}


def _json_routes(app: Live) -> Iterator[str]:
    for path, item in app.service.api.openapi()["paths"].items():
        for method, operation in item.items():
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                yield f"{method.upper()} {path}"


def send(app: Live, route: str, body: object) -> tuple[int, str]:
    """Send a body with an admitted token; NaN is written as Python writes it."""
    method, path = route.split()
    operation = app.service.api.openapi()["paths"][path][method.lower()]
    token = bearer(Role(operation["x-role"])) if operation["security"] else {}
    written = json.dumps(body)
    answer = app(method, path.format(**PLACES), content=written, headers={**JSON, **token})
    return answer.status_code, answer.text


def test_every_operation_with_a_body_has_an_example(apps: dict[str, Live]) -> None:
    assert sorted(apps) == sorted(EXAMPLES)
    for route, body in EXAMPLES.items():
        status, text = send(apps[route], route, body)
        assert status < 300 or route == "POST /tokens/{epoch}", (route, text)


@pytest.mark.parametrize("route", EXAMPLES)
def test_a_value_of_another_type_is_refused_by_its_name(apps: dict[str, Live], route: str) -> None:
    for path, value in leaves(EXAMPLES[route]):
        for wrong in wrong_types(value):
            status, text = send(apps[route], route, replaced(EXAMPLES[route], path, wrong))
            assert status == 422, (path, wrong, text)
            names = [str(key) for key in path if isinstance(key, str)]
            assert any(name in text for name in names[-2:]), (path, wrong, text)


def test_nothing_was_spent(apps: dict[str, Live]) -> None:
    route = "POST /publications"
    paid = {**EXAMPLES[route], "dry_run": False}
    for wrong in (True, "0.5", None):
        assert send(apps[route], route, replaced(paid, ("cost", "epsilon"), wrong))[0] == 422
    given = apps[route]("GET", "/ledger/visits", headers=bearer(Role.LEDGER)).json()
    assert (given["spent_micro_epsilon"], given["spent_delta"]) == (0, 0)
