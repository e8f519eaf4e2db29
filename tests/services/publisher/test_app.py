"""The model publisher: charged first, drawn once, and the same bytes for ever."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from live_apps import Live, bearer, credentials, live
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import Source
from noisefloor.roles.model_publisher import PublicationMethod, ReleaseRequest
from noisefloor_services import publisher
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer

PUBLISH, READ, LEDGER = bearer(Role.PUBLISH), bearer(Role.READ), bearer(Role.LEDGER)
RECORD = Neighbours.RECORD_ADD_REMOVE
COST = Guarantee(0.25, RECORD, model=TrustModel.CENTRAL)


def release(_: ReleaseRequest, source: Source) -> bytes:
    return source.words(8).tobytes()


METHODS = {"mean": PublicationMethod("mean", "application/octet-stream", lambda _: COST, release)}


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("valkey")) as embedded:
        yield embedded


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    made = Settings(
        redis_url=valkey.url, ledger_epsilon=1.0, credentials=credentials(), rate=1e6, burst=10**6
    )
    publisher.create_ledger(made)
    return made


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    with live(publisher.create(settings, METHODS, data_sets={"films"})) as running:
        running.wait_ready()
        yield running


def asked(publication_id: str = "p-1", **more: object) -> dict[str, object]:
    cost = {"epsilon": 0.25, "neighbours": RECORD.value}
    fixed = {"publication_id": publication_id, "data_set": "films", "method": "mean"}
    return {**fixed, "cost": cost, **more}


def publish(app: Live, publication_id: str = "p-1", **more: object) -> Any:
    return app("POST", "/publications", json=asked(publication_id, **more), headers=PUBLISH)


def spent(app: Live) -> int:
    statement: dict[str, int] = app("GET", "/ledger/films", headers=LEDGER).json()
    return statement["spent_micro_epsilon"]


def test_a_retry_gets_the_same_bytes_and_costs_nothing(app: Live, settings: Settings) -> None:
    first = publish(app).json()
    assert first["card"]["claims"]["verdict"] == "holds"
    content = app("GET", "/publications/p-1", headers=READ)
    assert len(content.content) == 64
    assert publish(app).json() == first
    tag = {**READ, "If-None-Match": content.headers["etag"]}
    assert app("GET", "/publications/p-1", headers=tag).status_code == 304
    assert app("GET", "/publications/p-1/card", headers=READ).json() == first["card"]
    with live(publisher.create(settings, METHODS, data_sets={"films"})) as other:
        assert publish(other).json() == first
        assert other("GET", "/publications/p-1", headers=READ).content == content.content
    assert spent(app) == 250_000


def test_a_dry_run_costs_nothing_and_says_so(app: Live) -> None:
    reply = publish(app, dry_run=True).json()
    assert (reply["dry_run"], reply["would_publish"], reply["card"]) == (True, True, None)
    assert reply["detail"].startswith("Dry run, nothing was spent")
    assert spent(app) == 0
    assert app("GET", "/publications/p-1", headers=READ).status_code == 404
    for number in range(4):
        assert publish(app, f"p-{number}").status_code == 200
    assert publish(app, "p-9", dry_run=True).json()["would_publish"] is False


def test_the_budget_cannot_be_overspent(app: Live) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda number: publish(app, f"p-{number}").status_code, range(16))
        assert sorted(answers) == [200] * 4 + [409] * 12
    statement = app("GET", "/ledger/films", headers=LEDGER).json()
    assert (statement["spent_micro_epsilon"], statement["left_micro_epsilon"]) == (1_000_000, 0)
    assert [line["release"] for line in statement["what_spent_it"]] == ["mean"]
    assert statement["why"]
    (balance,) = app("GET", "/ledger", headers=LEDGER).json()
    assert balance == {name: statement[name] for name in balance}
    assert balance["left_micro_epsilon"] == 0
    assert app("GET", "/ledger", headers=READ).status_code == 403
    numbers = app("GET", "/metrics", headers=READ).text
    assert 'noisefloor_ledger_left_micro_epsilon{data_set="films"} 0' in numbers


def test_a_refusal_names_what_ran_out_and_how_much_is_left(app: Live) -> None:
    """The filter takes what is proved of the method, which has no delta: it grants a second."""
    cost = {"epsilon": 0.25, "delta": 8e-6, "neighbours": RECORD.value}
    assert [publish(app, f"p-{number}", cost=cost).status_code for number in (1, 2)] == [200, 200]
    refused = publish(app, "p-3", cost=cost)
    reply = refused.json()
    assert (refused.status_code, reply["error"]) == (409, "budget-exceeded")
    assert "delta ran out: 8e-06 asked for, 0 left" in reply["detail"]
    assert reply["short"][0] == {"quantity": "delta", "asked": 8e-6, "left": 0.0}
    renyi = reply["short"][1]
    assert renyi["quantity"].startswith("Renyi divergence of order ")
    assert renyi["asked"] > renyi["left"]
    dry = publish(app, "p-3", cost=cost, dry_run=True).json()
    assert "refused; delta ran out: 8e-06 asked for, 0 left;" in dry["detail"]
    assert dry["would_publish"] is False
    both = {**cost, "epsilon": 0.76}
    short = publish(app, "p-3", cost=both).json()["short"]
    assert [one["quantity"] for one in short][:2] == ["epsilon", "delta"]


def test_an_id_stands_for_one_request(app: Live) -> None:
    assert publish(app).status_code == 200
    assert publish(app, parameters={"more": 1}).status_code == 409
    assert spent(app) == 250_000


def test_bad_requests_spend_nothing(app: Live) -> None:
    low = {"epsilon": 0.1, "neighbours": RECORD.value}
    for more in (
        {"method": "none"},
        {"data_set": "none"},
        {"cost": low},
        {"cost": {**low, "epsilon": 0}},
        {"cost": {**low, "epsilon": -1}},
        {"cost": {**low, "epsilon": "nan"}},
        {"cost": {**low, "epsilon": 1e300}},
        {"cost": {"epsilon": 0.25, "neighbours": "user"}},
        {"publication_id": "../x"},
        {"publication_id": "P"},
        {"parameters": {"a": [1]}},
        {"parameters": {"a": None}},
        {"more": 1},
    ):
        assert publish(app, **more).status_code == 422, more
    assert spent(app) == 0
    assert app("GET", "/ledger/none", headers=LEDGER).status_code == 404
    assert app("GET", "/publications/P", headers=READ).status_code == 422


def test_without_its_ledger_nobody_is_ready_and_nothing_is_published(
    app: Live, settings: Settings
) -> None:
    assert publish(app).status_code == 200
    with Redis.from_url(settings.redis_url) as client:
        client.flushall()
    assert publish(app, "p-2").status_code == 503
    assert app("GET", "/publications/p-1", headers=READ).status_code in (404, 503)
    app.wait(lambda: app("GET", "/readyz").status_code == 503)
    with live(publisher.create(settings, METHODS, data_sets={"films"})) as other:
        assert other("GET", "/readyz").status_code == 503
        assert publish(other, "p-2").status_code == 503


def test_without_redis_it_is_503_and_the_spend_survives(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as valkey:
        settings = Settings(redis_url=valkey.url, ledger_epsilon=1.0, credentials=credentials())
        publisher.create_ledger(settings)
        with live(publisher.create(settings, METHODS, data_sets={"films"})) as app:
            first = publish(app).json()
            valkey.kill()
            for answer in (publish(app), app("GET", "/ledger/films", headers=LEDGER)):
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            valkey.start()
            app.wait_ready()
            assert publish(app).json() == first
            assert spent(app) == 250_000


def test_without_a_method_nothing_can_be_published_and_what_is_stored_is_handed_out(
    settings: Settings,
) -> None:
    with live(publisher.create(settings, {}, data_sets={"films"})) as app:
        assert publish(app).status_code == 422
        assert spent(app) == 0
        assert app("GET", "/publications/p-1", headers=READ).status_code == 404
    with live(publisher.create(settings, METHODS, data_sets={"films"})) as app:
        publish(app)
    with live(publisher.create(settings, {}, data_sets={"films"})) as app:
        assert app("GET", "/publications/p-1", headers=READ).status_code == 200
