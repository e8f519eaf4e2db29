"""The aggregator releases no batch below its minimum, and one batch with one answer for ever."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from redis import Redis

from live_apps import Live, append, bearer, credentials, live, settled
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.roles import Aggregator, CollectionConfig, ReportProtection, kinds_from_sizes
from noisefloor.wire.frames import seal
from noisefloor_services import ad_server, aggregator
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import BadStore
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from stream_cases import NOTES, frame

READ, ADMIN = bearer(Role.READ), bearer(Role.ADMIN)
FRAME = {"Content-Type": "application/vnd.apache.arrow.stream"}
CLICKS = kinds_from_sizes({"clicks": {"size": 5}})["clicks"]
STATED = ReportProtection("KaryResponse", Guarantee(1.5, Neighbours.USER))
COLLECTION = CollectionConfig(
    kinds={"clicks": CLICKS, "notes": NOTES},
    minimum_batch=6,
    protections={"clicks": STATED},
)


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    return Settings(
        redis_url=valkey.url,
        partitions=2,
        credentials=credentials(),
        minimum_batch=3,
        rate=1e6,
        burst=10**6,
    )


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    with live(aggregator.create(settings, COLLECTION)) as made:
        made.wait_ready()
        yield made


def sent(app: Live, settings: Settings, epoch: int, numbers: range) -> list[bytes]:
    """Send frames of one to three rows of both kinds, and wait until they are counted."""
    frames = [frame(kind, epoch, one) for kind in COLLECTION.kinds.values() for one in numbers]
    before = app("GET", "/conservation", headers=READ).json()["accepted"]
    append(settings, COLLECTION, frames)
    app.wait(lambda: settled(app, before + len(frames)))
    return frames


def test_a_batch_below_the_minimum_is_refused_and_its_size_is_not_shown(
    app: Live, settings: Settings
) -> None:
    sent(app, settings, 0, range(2))  # three rows of each kind
    for place in range(2):
        state = app("GET", "/epochs/clicks/0", headers=READ).json()
        found = (state["is_readable"], state["minimum"], state["is_closed"])
        assert found == (False, 6, bool(place))
        assert {state[name] for name in ("frames", "rows", "late_frames", "late_rows")} == {0}
        closed = app("POST", "/epochs/clicks/0/close", headers=ADMIN).json()
        assert (closed["rows"], closed["frames"]) == (0, 0)
    for _ in range(2):
        refused = app("GET", "/statistics/clicks/0", headers=READ)
        assert refused.status_code == 409
        body = refused.json()
        assert (body["error"], body["threshold"]) == ("batch-too-small", 6)
        assert "later epoch" in body["detail"] and "3" not in body["detail"]
    (listed,) = [one for one in state_of(app)["kinds"] if one["kind"] == "clicks"]
    assert listed["epochs"][0]["rows"] == 0
    assert app("GET", "/conservation", headers=READ).json()["reports"] == 6  # of both kinds
    sent(app, settings, 1, range(1))
    assert app("GET", "/conservation", headers=READ).json()["reports"] == 6  # and not 8
    assert "noisefloor_reports_counted 6\n" in app("GET", "/metrics", headers=READ).text
    retired = app("POST", "/epochs/clicks/0/retire", headers=ADMIN)
    assert (retired.status_code, retired.json()["is_readable"]) == (200, False)


def test_late_reports_of_a_batch_that_is_read_are_shown_in_whole_minimums(
    app: Live, settings: Settings
) -> None:
    sent(app, settings, 0, range(4))
    app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    append(settings, COLLECTION, [frame(CLICKS, 0, 90)])  # one report
    app.wait(lambda: app("GET", "/conservation", headers=READ).json()["late"] == 1)
    state = app("GET", "/epochs/clicks/0", headers=READ).json()
    answer = app("GET", "/statistics/clicks/0", headers=READ).json()
    assert (state["is_readable"], state["frames"], state["rows"]) == (True, 4, answer["rows"])
    assert (state["late_frames"], state["late_rows"]) == (0, 0)
    append(settings, COLLECTION, [frame(CLICKS, 0, number) for number in range(91, 96)])
    app.wait(lambda: app("GET", "/conservation", headers=READ).json()["late"] == 6)
    (listed,) = [one for one in state_of(app)["kinds"] if one["kind"] == "clicks"]
    assert (listed["epochs"][0]["late_frames"], listed["epochs"][0]["late_rows"] % 6) == (6, 0)
    account = app("GET", "/conservation", headers=READ).json()
    assert (account["accepted"], account["is_conserved"]) == (14, True)  # frames: exactly


def state_of(app: Live) -> Any:  # Any: JSON
    return app("GET", "/state", headers=READ).json()


def test_an_answer_is_the_role_s_own_and_the_same_bytes_ever_after(settings: Settings) -> None:
    role = Aggregator(COLLECTION.kinds.values(), terms=COLLECTION.terms)
    given: dict[str, set[bytes]] = {"clicks": set(), "notes": set()}
    other = replace(STATED, mechanism="another")
    changed = replace(COLLECTION, protections={"clicks": other, "notes": other})
    for number, collection in enumerate((COLLECTION, changed, COLLECTION)):
        with live(aggregator.create(settings, collection)) as app:
            app.wait_ready()
            if number == 0:
                for data in sent(app, settings, 0, range(4)):
                    role.apply(data)
            for kind, answers in given.items():
                role.close(kind, 0)
                assert app("POST", f"/epochs/{kind}/0/close", headers=ADMIN).status_code == 200
                answer = app("GET", f"/statistics/{kind}/0", headers=READ)
                assert answer.content == role.answer(kind, 0)
                answers.add(answer.content)
            append(settings, COLLECTION, [frame(CLICKS, 0, 90 + number)])  # late: never counted
    assert [len(answers) for answers in given.values()] == [1, 1]
    stated = json.loads(given["clicks"].pop())["parameters"]
    assert (stated["mechanism"], stated["epsilon"], stated["threshold"]) == (
        "KaryResponse",
        1.5,
        6,
    )


def test_an_answer_that_would_differ_from_the_first_is_refused(
    app: Live, settings: Settings
) -> None:
    sent(app, settings, 0, range(4))
    app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    first = app("GET", "/statistics/clicks/0", headers=READ)
    key = Layout("noisefloor", 2).keys(0).kept("clicks", 0)
    with Redis.from_url(settings.redis_url) as client:
        kept = client.get(key)
        client.set(key, np.arange(5, dtype="<i8").tobytes())
        changed = app("GET", "/statistics/clicks/0", headers=READ)
        assert (changed.status_code, changed.json()["error"]) == (409, "answer-changed")
        client.set(key, kept)
    assert app("GET", "/statistics/clicks/0", headers=READ).content == first.content
    app("POST", "/epochs/clicks/0/retire", headers=ADMIN)
    assert app("GET", "/statistics/clicks/0", headers=READ).status_code == 404


def test_a_minimum_is_raised_and_never_lowered(settings: Settings) -> None:
    server, layout = Server(settings.redis_url), Layout("noisefloor", 2)
    stores = {
        minimum: EpochStore.of(server, layout, replace(COLLECTION, minimum_batch=minimum))
        for minimum in (1, 6, 9)
    }
    stores[6].prepare()
    with pytest.raises(BadStore, match="minimum_batch of 6, which cannot be lowered"):
        stores[1].prepare()
    stores[9].prepare()
    assert [one.terms.minimum for one in stores.values()] == [9, 9, 9]
    with pytest.raises(BadParameter, match="minimum_batch"):
        aggregator.create(settings, replace(COLLECTION, minimum_batch=2))
    server.close()


def test_a_collection_below_the_service_s_minimum_is_refused_unless_people_are_simulated(
    settings: Settings,
) -> None:
    small = replace(COLLECTION, minimum_batch=1)
    headers = {**ADMIN, "Content-Type": "application/json"}
    with live(aggregator.create(settings, COLLECTION)) as app:
        app.wait_ready()
        refused = app("PUT", "/collections/small", content=small.content, headers=headers)
        assert refused.status_code == 422
        assert "minimum_batch has to be 3 or more" in refused.json()["detail"]
        assert "--experiments" in refused.json()["detail"]
        older = json.loads(small.content)
        for name in ("format", "minimum_batch", "protections"):
            del older[name]
        for _ in range(2):
            put = app("PUT", "/collections/older", content=json.dumps(older), headers=headers)
            assert put.status_code == 204
        state = app("GET", "/collections/older/epochs/clicks/0", headers=READ).json()
        assert state["minimum"] == 3
        with Redis.from_url(settings.redis_url) as client:  # as it stood before there were formats
            client.hset("noisefloor:collections", "older", json.dumps(older))
        assert app("PUT", "/collections/older", content=json.dumps(older), headers=headers)
    with live(aggregator.create(replace(settings, experiments=True), COLLECTION)) as app:
        app.wait_ready()
        put = app("PUT", "/collections/small", content=small.content, headers=headers)
        assert put.status_code == 204


def test_a_frame_counts_in_the_collection_that_it_names_and_in_no_other(
    app: Live, settings: Settings
) -> None:
    headers = {**ADMIN, "Content-Type": "application/json"}
    for name in ("tea", "rum"):
        put = app("PUT", f"/collections/{name}", content=COLLECTION.content, headers=headers)
        assert put.status_code == 204
    rows = CLICKS.encode(np.eye(5, dtype=np.uint8))
    with live(ad_server.create(settings, COLLECTION)) as serves:
        serves.wait_ready()
        for name in ("", "tea"):
            data = seal(CLICKS, 0, rows, name.rjust(16).encode(), collection=name)
            for place in ("", "tea", "rum"):
                path = f"/collections/{place}/frames" if place else "/frames"
                serves.wait(
                    lambda path=path: (
                        serves("GET", path.replace("frames", "readyz")).status_code  # type: ignore[misc]
                        == 200
                    )
                )
                answer = serves("POST", path, content=data, headers=FRAME)
                assert answer.status_code == (202 if place == name else 400), (name, place)
        single = {"epoch": 0, "report": [1, 0, 0, 0, 1]}
        path = "/collections/tea/reports/clicks"
        assert serves("POST", path, json=single).status_code == 202
    for name, rows_of in (("", 0), ("/collections/tea", 6)):  # whole minimums of 5 and 6
        path = f"{name}/epochs/clicks/0/close"
        app.wait(lambda path=path: app("POST", path, headers=ADMIN).status_code == 200)  # type: ignore[misc]
        assert app("GET", path.removesuffix("/close"), headers=READ).json()["rows"] == rows_of
