"""Collections beside the first: registered, served with the same guard, dropped for ever."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from live_apps import Live, bearer, credentials, live
from noisefloor.randomness import SecureSource
from noisefloor.roles.ad_server import Ad, Catalogue
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.roles.kind_registry import kinds_from_sizes
from noisefloor.wire.frames import encode_frame
from noisefloor_services import ad_server, aggregator
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.collection_registry import MOST, CollectionRegistry, Registration
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server

ADMIN, READ = bearer(Role.ADMIN), bearer(Role.READ)
FRAME = {"Content-Type": FRAME_TYPE}
OTHER = CollectionConfig(
    Catalogue(7, (Ad("tea", 0), Ad("rum", 1), Ad("gin", 1))),
    kinds_from_sizes({"clicks": {"size": 3}}),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path, Durability.MEMORY) as server:
        yield server


@pytest.fixture
def settings(store: EmbeddedServer) -> Settings:
    return Settings(
        redis_url=store.url, durability="memory", credentials=credentials(), minimum_batch=1
    )


@pytest.fixture
def apps(settings: Settings) -> Iterator[tuple[Live, Live]]:
    with (
        live(aggregator.create(settings, example_collection())) as counts,
        live(ad_server.create(settings, example_collection())) as serves,
    ):
        counts.wait_ready()
        serves.wait_ready()
        yield counts, serves


def registered(counts: Live, name: str, collection: CollectionConfig = OTHER) -> int:
    return counts(
        "PUT", f"/collections/{name}", content=collection.content, headers=ADMIN
    ).status_code


def click(name: str, rows: list[list[int]]) -> bytes:
    return encode_frame(OTHER.kinds["clicks"], 0, np.array(rows), SecureSource(), collection=name)


def test_a_collection_counts_its_own_frames_and_no_others(apps: tuple[Live, Live]) -> None:
    counts, serves = apps
    assert registered(counts, "tea") == 204
    data = click("tea", [[1, 0, 0], [1, 0, 1]])
    for _ in range(2):
        answer = serves("POST", "/collections/tea/frames", content=data, headers=FRAME)
        assert answer.status_code == 202
    # The first collection has another kind of clicks, of 20 ads.
    assert serves("POST", "/frames", content=data, headers=FRAME).status_code == 400

    def account() -> dict[str, int]:
        found: dict[str, int] = counts("GET", "/collections/tea/conservation", headers=READ).json()
        return found

    counts.wait(lambda: account()["counted"] == 1 and account()["duplicates"] == 1)
    assert counts("GET", "/conservation", headers=READ).json()["accepted"] == 0
    counts("POST", "/collections/tea/epochs/clicks/0/close", headers=ADMIN)
    sums = counts("GET", "/collections/tea/statistics/clicks/0", headers=READ).json()
    assert (sums["cells"], sums["rows"]) == ([2, 0, 1], 2)
    epoch = counts("GET", "/collections/tea/epochs/clicks/0", headers=READ).json()
    assert (epoch["is_closed"], epoch["rows"]) == (True, 2)


def test_a_collection_without_ads_counts_reports_and_hands_out_no_ad(
    apps: tuple[Live, Live],
) -> None:
    counts, serves = apps
    assert (
        registered(counts, "plain", CollectionConfig(kinds={"clicks": OTHER.kinds["clicks"]}))
        == 204
    )
    for name, status in (("", 400), ("tea", 400), ("plain", 202)):
        data = click(name, [[1, 0, 1]])
        answer = serves("POST", "/collections/plain/frames", content=data, headers=FRAME)
        assert answer.status_code == status, name  # whatever the minimum, which is 1 here
    assert serves("GET", "/collections/plain/catalogue").status_code == 404
    for request in ({"epoch": 0, "index": 0}, {"epoch": 0, "slate": [0, 1]}):
        answer = serves("POST", "/collections/plain/requests", json=request)
        assert (answer.status_code, "catalogue" in answer.text) == (404, True)
    counts("POST", "/collections/plain/epochs/clicks/0/close", headers=ADMIN)
    sums = counts("GET", "/collections/plain/statistics/clicks/0", headers=READ).json()
    assert (sums["cells"], sums["rows"]) == ([1, 0, 1], 1)
    answer = counts("POST", "/collections/plain/epochs/impressions/0/close", headers=ADMIN)
    assert answer.status_code == 404
    answer = counts("PUT", "/collections/none", content=b"{}", headers=ADMIN)
    assert answer.status_code == 422


def test_a_collection_has_the_guard_of_its_service(apps: tuple[Live, Live]) -> None:
    counts, serves = apps
    registered(counts, "tea")
    described = counts("GET", "/collections/tea/openapi.json").json()["paths"]
    assert "/collections/{name}" not in described  # rooms have no rooms
    for path, item in described.items():
        for method, operation in item.items():
            inner = path.replace("{kind}", "clicks").replace("{epoch}", "0")
            answer = counts(method.upper(), f"/collections/tea{inner}")
            is_open = not operation["security"]
            assert (answer.status_code == 401) is not is_open, path
    assert serves("POST", "/collections/tea/nowhere", headers=ADMIN).status_code == 403
    answer = serves("POST", "/collections/tea/collections/tea/frames", headers=ADMIN)
    assert answer.status_code == 403


def test_what_is_not_registered_is_not_there(apps: tuple[Live, Live]) -> None:
    counts, serves = apps
    for app in apps:
        assert app("GET", "/collections/none/healthz").status_code == 404
    for name in ("Tea", "a" * 65, "a.b", "%2e%2e"):
        assert serves("GET", f"/collections/{name}/healthz").status_code in (401, 404)
        answer = counts("PUT", f"/collections/{name}", content=OTHER.content, headers=ADMIN)
        assert answer.status_code == 422
    assert counts("PUT", "/collections/tea", content=OTHER.content).status_code == 401
    answer = counts("PUT", "/collections/tea", content=OTHER.content, headers=READ)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"catalogue": {"version": 1, "ads": []}}, "ads"),
        ({"kinds": {"clicks": {"size": 0}}}, "size"),
        ({"kinds": {"unheard-of": {"size": 3}}}, "kind"),
        (
            {"kinds": {"r": {"columns": [{"name": "user_id", "type": "bits", "size": 3}]}}},
            "column",
        ),
        ({"kinds": {"r": {"columns": [{"name": "x", "type": "pickle"}]}}}, "type"),
        ({"course": {"method": "guess"}}, "method"),
        ({"course": {"method": "bits", "ads": 3}}, "bits"),
        ({"surprise": 1}, "catalogue"),
    ],
)
def test_a_bad_document_is_refused_by_name_and_rule(
    apps: tuple[Live, Live], change: dict[str, object], word: str
) -> None:
    counts, _ = apps
    document = {**json.loads(OTHER.content), **change}
    answer = counts("PUT", "/collections/bad", content=json.dumps(document), headers=ADMIN)
    assert answer.status_code == 422
    assert word in answer.json()["detail"]
    assert counts("GET", "/collections", headers=READ).json() == {"collections": []}


def test_a_dropped_collection_leaves_an_empty_stream_and_its_name_is_used_up(
    apps: tuple[Live, Live], store: EmbeddedServer
) -> None:
    counts, serves = apps
    registered(counts, "tea")
    assert registered(counts, "tea") == 204  # the same again
    assert registered(counts, "tea", example_collection(4)) == 409
    data = click("tea", [[1, 0, 0]])
    serves("POST", "/collections/tea/frames", content=data, headers=FRAME)
    assert counts("DELETE", "/collections/tea", headers=ADMIN).status_code == 204
    assert counts("DELETE", "/collections/tea", headers=ADMIN).status_code == 404
    serves.wait(lambda: serves("GET", "/collections/tea/healthz").status_code == 404)
    assert registered(counts, "tea") == 409
    server = Server(store.url)
    stored = [key for key in server.call("KEYS", "*") if b".tea" in key]
    assert stored == [b"noisefloor.tea:{p0}:frames"]  # no user has the right to delete a stream
    assert server.call("XLEN", stored[0]) == 0


def test_a_restarted_aggregator_opens_every_collection(settings: Settings) -> None:
    with live(aggregator.create(settings, example_collection())) as counts:
        counts.wait_ready()
        registered(counts, "tea")
    with live(ad_server.create(settings, example_collection())) as serves:
        serves.wait_ready()
        data = click("tea", [[0, 1, 0]])
        path = "/collections/tea/frames"
        assert serves("POST", path, content=data, headers=FRAME).status_code == 202
    with live(aggregator.create(settings, example_collection())) as counts:
        path = "/collections/tea/conservation"

        def counted() -> int:
            answer = counts("GET", path, headers=READ)
            return int(answer.json()["counted"]) if answer.status_code == 200 else 0

        counts.wait(lambda: counted() == 1)


def test_there_are_so_many_collections_and_no_more(store: EmbeddedServer) -> None:
    registry = CollectionRegistry(Server(store.url), Layout())
    for number in range(MOST):
        assert registry.add(f"c{number}", OTHER) is Registration.NEW
    assert registry.add("more", OTHER) is Registration.FULL
    assert registry.add("c1", OTHER) is Registration.SAME
    registry.drop("c1")
    assert registry.add("c1", OTHER) is Registration.GONE
    assert registry.add("more", OTHER) is Registration.NEW
    found = registry.find("more")
    assert found is not None
    assert (found.namespace, found.kinds) == ("noisefloor.more", OTHER.kinds)
