"""The route table: who is let in where, walked from the services' own descriptions."""

import re

import pytest

from live_apps import Live, bearer, credentials, live, prepared
from noisefloor.roles.collection_config import example_collection
from noisefloor_services import ad_server, aggregator, publisher
from noisefloor_services.http.policy import AnonymousAccess
from noisefloor_services.http.service import Service
from noisefloor_services.security.credentials import Role, new_token
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer

PUBLIC = {"GET /healthz", "GET /readyz"}
OPEN = {
    ad_server.NAME: {
        *PUBLIC,
        *("GET /catalogue", "GET /model"),
        *("POST /requests", "POST /frames", "POST /reports/{kind}", "POST /predictions"),
    },
    aggregator.NAME: PUBLIC,
    publisher.NAME: PUBLIC,
}
"""What asks nobody who they are. A new one has to be written here by somebody who means it."""


@pytest.fixture(scope="module")
def settings(valkey: EmbeddedServer) -> Settings:
    given = Settings(redis_url=valkey.url, credentials=credentials(), rate=1e6, burst=10**6)
    publisher.create_ledger(given)
    return given


def made(name: str, settings: Settings) -> Service:
    if name == ad_server.NAME:
        return ad_server.create(prepared(settings, example_collection()), example_collection())
    if name == aggregator.NAME:
        return aggregator.create(settings, example_collection())
    return publisher.create(settings, {}, data_sets=["films"])


def faults(app: Live) -> list[str]:
    """Walk a service's own list of operations, and name those that let in who should stay out."""
    found = [
        f"no rule: {route}" for route in app.service.policy.missing(app.service.api.openapi())
    ]
    for path, item in app.service.api.openapi()["paths"].items():
        for method, operation in item.items():
            route = f"{method.upper()} {path}"
            is_open = operation["security"] == []
            if is_open != (route in OPEN[app.service.name]):
                found.append(f"open or not: {route}")
            elif not is_open:
                found += _let_in(app, method.upper(), path, operation.get("x-role"))
    return found


def _let_in(app: Live, method: str, path: str, needed: str | None) -> list[str]:
    place = re.sub(r"\{[a-z_]+\}", "7", path)
    nobody = [{}, {"Authorization": f"Bearer {new_token()}"}, {"Authorization": "Bearer"}]
    found = [
        f"not 401: {method} {path}"
        for headers in nobody
        if app(method, place, headers=headers).status_code != 401
    ]
    for role in Role:
        is_refused = app(method, place, headers=bearer(role)).status_code == 403
        if is_refused == (role.value == needed):
            found.append(f"{'refused' if is_refused else 'let in'}: {role.value} {method} {path}")
    return found


@pytest.mark.parametrize("name", OPEN)
def test_every_route_admits_its_role_and_no_other(name: str, settings: Settings) -> None:
    with live(made(name, settings)) as app:
        app.wait_ready()
        paths = app.service.api.openapi()["paths"]
        assert sum(len(item) for item in paths.values()) > len(OPEN[name])
        assert faults(app) == []


@pytest.mark.parametrize("name", OPEN)
def test_a_route_that_is_added_without_a_rule_is_denied_and_found(
    name: str, settings: Settings
) -> None:
    service = made(name, settings)
    reached: list[str] = []

    @service.api.delete("/new/{thing}")
    def new(thing: str) -> str:
        reached.append(thing)
        return thing

    service.api.openapi_schema = None
    service.api.openapi_schema = service.policy.describe(service.api.openapi())
    with live(service) as app:
        assert app("DELETE", "/new/x").status_code == 401
        for role in Role:
            assert app("DELETE", "/new/x", headers=bearer(role)).status_code == 403
        assert faults(app) == ["no rule: DELETE /new/{thing}"]
    assert reached == []


def test_a_route_that_is_opened_by_mistake_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = {**ad_server.RULES, "POST /tokens/{epoch}": AnonymousAccess.DEVICE}
    monkeypatch.setattr("noisefloor_services.ad_server.app.RULES", opened)
    with live(made(ad_server.NAME, settings)) as app:
        assert faults(app) == ["open or not: POST /tokens/{epoch}"]
