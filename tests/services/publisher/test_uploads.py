"""Uploaded data sets: a budget of their own for ever, rows in memory until they are dropped."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from live_apps import Live, bearer, credentials, live
from noisefloor.accounting import Amount, Ledger
from noisefloor.privacy import Neighbours
from noisefloor.roles.publication_methods import methods_of
from noisefloor.tables import decode_records, schema_of
from noisefloor_services import publisher
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import BadSetting, Settings
from noisefloor_services.store.embedded import EmbeddedServer

ADMIN, PUBLISH = bearer(Role.ADMIN), bearer(Role.PUBLISH)
READ, LEDGER = bearer(Role.READ), bearer(Role.LEDGER)
ADDED, SWAPPED = Neighbours.RECORD_ADD_REMOVE.value, Neighbours.RECORD_SUBSTITUTE.value
DECLARED: dict[str, Any] = {
    "record": "one visit",
    "columns": {"pages": {"bins": [0, 1, 2, 3]}, "buys": {"categories": ["no", "yes"]}},
    "label": "buys",
}
SCHEMA = schema_of(DECLARED)
BYTES = {**ADMIN, "Content-Type": "application/octet-stream"}
_ledgers = (f"uploads-{number}" for number in count())


def rows(size: int = 40) -> bytes:
    """Return rows of which every second one buys."""
    return bytes([1, 0, 2, 1] * (size // 2))


def message(epsilon: float = 0.5, relation: str = ADDED, **more: object) -> dict[str, Any]:
    budget = {"epsilon": epsilon, "delta": 1e-5, "neighbours": relation}
    return {"declaration": DECLARED, "budget": budget, "audit": False, **more}


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("valkey")) as embedded:
        yield embedded


@pytest.fixture
def settings(valkey: EmbeddedServer, tmp_path: Path) -> Settings:
    made = Settings(
        redis_url=valkey.url,
        ledger=next(_ledgers),
        ledger_epsilon=1.0,
        ledger_anchor=tmp_path / "anchor",
        credentials=credentials(),
        rate=1e6,
        burst=10**6,
    )
    publisher.create_ledger(made)
    return made


def served(settings: Settings) -> Any:
    films = {"films": decode_records(rows(), SCHEMA)}
    return live(publisher.create(settings, methods_of(films), data_sets=films))


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    with served(settings) as running:
        running.wait_ready()
        yield running


def register(app: Live, name: str = "visits", **more: Any) -> httpx.Response:
    return app("PUT", f"/data-sets/{name}", json=message(**more), headers=ADMIN)


def upload(app: Live, data: bytes, version: int = 1, name: str = "visits") -> httpx.Response:
    path = f"/data-sets/{name}/records/{version}"
    return app("PUT", path, content=data, headers=BYTES)


def publish(
    app: Live, number: int = 0, name: str = "visits", relation: str = ADDED, **more: object
) -> httpx.Response:
    request = {
        "publication_id": f"p-{number}",
        "data_set": name,
        "method": "histogram",
        "cost": {"epsilon": 0.25, "neighbours": relation},
        "parameters": {"columns": "pages"},
    }
    return app("POST", "/publications", json={**request, **more}, headers=PUBLISH)


def content(app: Live, name: str | None = "visits", number: int = 0) -> httpx.Response:
    chosen = {} if name is None else {"data_set": name}
    return app("GET", f"/publications/p-{number}", params=chosen, headers=READ)


def spent(app: Live, name: str = "visits") -> int:
    micro_epsilon: int = app("GET", f"/ledger/{name}", headers=LEDGER).json()[
        "spent_micro_epsilon"
    ]
    return micro_epsilon


def test_an_uploaded_data_set_has_a_budget_of_its_own(app: Live) -> None:
    assert register(app).status_code == 204
    assert upload(app, rows()).status_code == 204
    assert [publish(app, number).status_code for number in range(3)] == [200, 200, 409]
    assert publish(app, name="films").status_code == 200
    listed = app("GET", "/ledger", headers=LEDGER).json()
    assert [(one["subject"], one["left_micro_epsilon"]) for one in listed] == [
        ("films", 750_000),
        ("visits", 0),
    ]
    snapshot = app("GET", "/ledger/visits/entries", headers=LEDGER)
    ledger = Ledger.restore(snapshot.content)
    assert ledger.budget == Amount.budget(0.5, 1e-5)
    assert [one.spend_id for one in ledger.entries("visits")] == ["p-0", "p-1"]
    numbers = app("GET", "/metrics", headers=READ).text
    assert 'noisefloor_publications{outcome="stored"} 3' in numbers
    assert 'noisefloor_publications{outcome="refused"} 1' in numbers


def test_ids_of_publications_are_of_one_data_set(app: Live) -> None:
    for name in ("visits", "others"):
        register(app, name)
        upload(app, rows(), name=name)
        assert publish(app, name=name).status_code == 200
    assert publish(app, name="films").status_code == 200
    found = [content(app, name) for name in ("visits", "others", "films", None)]
    assert [one.status_code for one in found] == [200] * 4
    cards = [
        app("GET", "/publications/p-0/card", params={"data_set": name}, headers=READ).json()
        for name in ("visits", "others", "films")
    ]
    assert [card["data_set"] for card in cards] == ["visits", "others", "films"]
    assert found[2].content == found[3].content  # without a name, the operator's
    assert content(app, "nobody").status_code == 404


REGISTRATIONS: tuple[tuple[str, dict[str, Any], int, str], ...] = (
    ("visits", {}, 204, ""),
    ("visits", {"epsilon": 0.6}, 409, "another schema, budget or purpose"),
    ("visits", {"epsilon": 0.4}, 409, "another schema, budget or purpose"),
    ("visits", {"relation": SWAPPED}, 409, "another schema, budget or purpose"),
    ("visits", {"audit": True}, 409, "another schema, budget or purpose"),
    ("films", {}, 409, "of the operator"),
    ("games", {"experiment": True}, 409, "NOISEFLOOR_EXPERIMENTS=on"),
    ("games", {"declaration": {"record": "one", "columns": {}}}, 422, "columns"),
    ("games", {"declaration": {}}, 422, "record and columns"),
    ("games", {"more": 1}, 422, "extra_forbidden"),
    ("games", {"budget": {"epsilon": 1.0, "neighbours": "nobody"}}, 422, "neighbours"),
)


def test_a_registration_is_checked_and_never_changed(app: Live) -> None:
    register(app)
    for name, more, status, says in REGISTRATIONS:
        answer = register(app, name, **more)
        assert (answer.status_code, says in answer.text) == (status, True), (name, more)
    listed = app("GET", "/data-sets", headers=ADMIN).json()
    assert listed == {"data_sets": ["visits"], "experiments": False}
    snapshot = app("GET", "/ledger/visits/entries", headers=LEDGER).content
    assert Ledger.restore(snapshot).budget == Amount.budget(0.5, 1e-5)


def test_rows_come_in_versions_that_only_rise(app: Live) -> None:
    assert upload(app, rows()).status_code == 404
    register(app)
    assert publish(app).status_code == 409  # no rows yet, nothing is charged
    wrong = app("PUT", "/data-sets/visits/records/1", content=rows(), headers=ADMIN)
    assert wrong.status_code == 415
    answers = [
        (b"", 1, 422),
        (rows()[:-1], 1, 422),
        (b"\x03\x00", 1, 422),  # there are three bins
        (b"\x00\x02", 1, 422),
        (rows(4), 2, 204),
        (rows(4), 2, 204),
        (rows(6), 2, 409),
        (rows(6), 1, 409),
        (rows(6), 3, 204),
        (rows(4), 2, 409),
    ]
    for data, version, status in answers:
        assert upload(app, data, version).status_code == status, (len(data), version)
    assert spent(app) == 0


def test_a_dropped_name_is_used_up_and_its_ledger_stays(app: Live, settings: Settings) -> None:
    register(app)
    upload(app, rows())
    assert publish(app).status_code == 200
    before = content(app).content
    dropped = [app("DELETE", "/data-sets/visits", headers=ADMIN).status_code for _ in range(2)]
    assert dropped == [204, 404]

    def check(running: Live) -> None:
        assert running("GET", "/data-sets", headers=ADMIN).json()["data_sets"] == []
        assert register(running).status_code == 409
        assert upload(running, rows(), 9).status_code == 404
        assert publish(running, 1).status_code == 422
        assert content(running).content == before
        assert spent(running) == 250_000

    check(app)
    with served(settings) as other:
        check(other)


def test_after_a_restart_rows_are_uploaded_again_and_what_was_spent_stays(
    app: Live, settings: Settings
) -> None:
    register(app)
    upload(app, rows())
    publish(app)
    with served(settings) as other:
        answer = publish(other, 1)
        assert (answer.status_code, "records are not here" in answer.text) == (409, True)
        assert content(other).content == content(app).content
        assert upload(other, rows()).status_code == 204
        assert [publish(other, number).status_code for number in (1, 2)] == [200, 409]


def test_a_drop_by_one_process_is_seen_by_the_others(app: Live, settings: Settings) -> None:
    register(app)
    upload(app, rows())
    with served(settings) as other:
        assert other("DELETE", "/data-sets/visits", headers=ADMIN).status_code == 204
    assert publish(app).status_code == 422
    assert upload(app, rows(), 2).status_code == 404
    assert spent(app) == 0


def test_of_many_who_register_one_name_one_budget_wins(app: Live) -> None:
    budgets = [0.25 * (number + 1) for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda one: register(app, epsilon=one).status_code, budgets))
    assert sorted(answers) == [204] + [409] * 11
    won = budgets[answers.index(204)]
    snapshot = app("GET", "/ledger/visits/entries", headers=LEDGER).content
    assert Ledger.restore(snapshot).budget == Amount.budget(won, 1e-5)


def test_of_many_uploads_at_once_the_latest_version_stays(app: Live) -> None:
    register(app)
    versions = [*range(1, 13)]
    with ThreadPoolExecutor(12) as pool:
        answers = pool.map(lambda one: upload(app, rows(2 * one), one).status_code, versions[::-1])
        assert set(answers) <= {204, 409}
    assert upload(app, rows(24), 12).status_code == 204
    assert upload(app, rows(22), 12).status_code == 409


def test_no_upload_outlives_a_drop(app: Live) -> None:
    for turn in range(8):
        name = f"race-{turn}"
        register(app, name)
        with ThreadPoolExecutor(6) as pool:
            done = [pool.submit(upload, app, rows(), one, name) for one in range(1, 6)]
            done.append(pool.submit(app, "DELETE", f"/data-sets/{name}", headers=ADMIN))
        assert done[-1].result().status_code == 204
        assert upload(app, rows(), 99, name).status_code == 404
        assert publish(app, name=name).status_code == 422


def test_too_many_data_sets_and_too_many_rows_are_refused(
    app: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisefloor_services.publisher.uploads.MOST_DATA_SETS", 2)
    monkeypatch.setattr("noisefloor_services.publisher.uploads.MOST_CELLS", 100)
    assert [register(app, name).status_code for name in "abc"] == [204, 204, 409]
    assert upload(app, rows(30), 1, "a").status_code == 204
    assert upload(app, rows(30), 1, "b").status_code == 409
    assert upload(app, rows(40), 2, "a").status_code == 204  # its own rows are replaced
    app("DELETE", "/data-sets/a", headers=ADMIN)
    assert upload(app, rows(30), 1, "b").status_code == 204
    assert register(app, "c").status_code == 204


def test_a_server_that_lost_the_ledger_gives_no_new_budget(
    app: Live, settings: Settings, valkey: EmbeddedServer
) -> None:
    register(app)
    upload(app, rows())
    publish(app)
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    assert register(app).status_code == 503
    publisher.create_ledger(settings)
    with served(settings) as other:
        for epsilon, error in ((0.6, "bad-anchor"), (0.5, "ledger-behind")):
            answer = register(other, epsilon=epsilon)
            assert (answer.status_code, answer.json()["error"]) == (503, error)
        assert other("GET", "/data-sets", headers=ADMIN).json()["data_sets"] == ["visits"]
    assert str(publisher.restore_ledger(settings)).startswith("Raised visits by epsilon 0.250000")
    with served(settings) as other:
        assert register(other).status_code == 204
        assert register(other, epsilon=0.6).status_code == 409
        assert spent(other) == 250_000
        upload(other, rows())
        assert [publish(other, number).status_code for number in (0, 1, 2)] == [409, 200, 409]


def stored_bytes(url: str) -> bytes:
    """Return every value of every key; a dump would be compressed."""
    with Redis.from_url(url) as client:
        found: list[bytes] = []
        for key in client.keys():
            kind = client.type(key)
            if kind == b"hash":
                found += client.hgetall(key).values()
            elif kind == b"string":
                found.append(client.get(key) or b"")
            elif kind == b"list":
                found += client.lrange(key, 0, -1)
            else:
                assert kind == b"set"
                found += client.smembers(key)
        return b"\n".join(found)


def test_rows_are_nowhere_on_the_server_and_their_anchor_is_the_owners_alone(
    app: Live, settings: Settings, valkey: EmbeddedServer
) -> None:
    register(app)
    sentinel = bytes([2, 1, 0, 0, 1, 1, 2, 0] * 8)
    upload(app, sentinel)
    publish(app)
    everything = stored_bytes(valkey.url)
    assert b"one visit" in everything  # the search finds what is there
    assert sentinel[:16] not in everything
    assert settings.ledger_anchor is not None
    folder = settings.ledger_anchor.with_name("anchor.data-sets")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "visits").stat().st_mode & 0o777 == 0o600


def test_a_plan_is_made_for_the_rows_that_are_there(app: Live) -> None:
    """Where one record is swapped for another, the number of rows is public, and is the plan's."""
    register(app, relation=SWAPPED, epsilon=4.0)
    cost = {"epsilon": 1.0, "delta": 1e-6, "neighbours": SWAPPED}
    asked = {"method": "logistic", "cost": cost, "parameters": {"steps": 2}}
    for number, size in enumerate((40, 60)):
        assert upload(app, rows(size), number + 1).status_code == 204
        assert publish(app, number, **asked).status_code == 202  # type: ignore[arg-type]
        path, chosen = f"/publications/p-{number}", {"data_set": "visits"}
        for _ in range(1500):
            state = app("GET", f"{path}/state", params=chosen, headers=READ).json()["state"]
            if state == "stored":
                break
            time.sleep(0.01)
        card = app("GET", f"{path}/card", params=chosen, headers=READ).json()
        assert card["public_size"] == size
        assert card["audit"] == {"is_audited": False, "why": "this publisher has no auditor"}


def test_only_an_experiment_publishes_without_a_guarantee(settings: Settings) -> None:
    with pytest.raises(BadSetting, match="NOISEFLOOR_EXPERIMENTS has to be off"):
        served(replace(settings, experiments=True))
    experimental = replace(settings, experiments=True)
    plain = {"method": "plain", "parameters": {"epochs": 1}}
    cost = {"epsilon": 0.25, "neighbours": SWAPPED}
    with live(publisher.create(experimental, methods_of({}), data_sets=())) as app:
        for name, is_experiment, status in (("open", True, 202), ("real", False, 422)):
            register(app, name, relation=SWAPPED, experiment=is_experiment)
            upload(app, rows(), name=name)
            answer = publish(app, name=name, cost=cost, **plain)  # type: ignore[arg-type]
            assert answer.status_code == status
            assert spent(app, name) == (250_000 if is_experiment else 0)
