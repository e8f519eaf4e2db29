"""The ad server: what is answered with 202 counts once; everything else promises nothing."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from numpy.typing import NDArray
from redis import Redis

from live_apps import Live, bearer, credentials, live, prepared
from noisefloor.ads.delivery import ad_requests_kind, ad_slates_kind
from noisefloor.randomness import SecureSource, SeededSource, new_run
from noisefloor.roles import AdServer, Aggregator, FrameStatus, kinds_from_sizes
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.wire import joined
from noisefloor.wire.frames import encode_frame
from noisefloor_services import ad_server
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from stream_cases import KINDS, broken, frame

FRAME = {"Content-Type": FRAME_TYPE}
COLLECTION = CollectionConfig(example_collection(5).catalogue, {kind.name: kind for kind in KINDS})


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    server = Server(valkey.url)
    server.call("FLUSHALL")
    server.close()
    given = Settings(
        redis_url=valkey.url, partitions=2, credentials=credentials(), minimum_batch=1
    )
    return prepared(given, COLLECTION)


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    with live(ad_server.create(settings, COLLECTION)) as running:
        running.wait_ready()
        yield running


def a_store(settings: Settings, collection: CollectionConfig = COLLECTION) -> EpochStore:
    layout = Layout(collection.namespace, settings.partitions)
    store = EpochStore(Server(settings.redis_url), layout, collection.kinds.values())
    store.prepare()
    return store


def counted(settings: Settings) -> EpochStore:
    store = a_store(settings)
    Worker(store).drain(patience_s=20)
    return store


def test_catalogue_and_model_are_sent_once(app: Live) -> None:
    first = app("GET", "/catalogue")
    assert COLLECTION.catalogue is not None
    assert first.content == COLLECTION.catalogue.content
    tag = {"If-None-Match": f'"other", {first.headers["etag"]}'}
    again = app("GET", "/catalogue", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert app("GET", "/model").status_code == 404


def test_the_broadcast_model_is_served(app: Live, settings: Settings) -> None:
    store = a_store(settings)
    for content in (b"first", b"second"):
        store.server.call("HSET", store.layout.settings, "broadcast", content)
        app.wait(lambda content=content: app("GET", "/model").content == content)  # type: ignore[misc]
    tag = {"If-None-Match": app("GET", "/model").headers["etag"]}
    assert app("GET", "/model", headers=tag).status_code == 304


def test_frames_count_exactly_once(app: Live, settings: Settings) -> None:
    role = Aggregator(COLLECTION.kinds.values())
    for number in range(20):
        for kind in KINDS:
            data = frame(kind, 0, number)
            role.apply(data)
            for _ in range(1 + number % 2):
                answer = app("POST", "/frames", content=data, headers=FRAME)
                assert (answer.status_code, answer.content) == (202, b"")
                assert set(answer.headers) <= {"content-length", "content-type"}
    store = counted(settings)
    for kind in KINDS[:2]:
        for holder in (store, role):
            holder.close(kind.name, 0)
        ours, theirs = store.release(kind.name, 0), role.release(kind.name, 0)
        assert (ours[0].tobytes(), ours[1]) == (theirs[0].tobytes(), theirs[1])
    numbers = app("GET", "/metrics", headers=bearer(Role.READ)).text
    assert 'noisefloor_frames_accepted{kind="clicks"} 30' in numbers


def test_what_is_no_frame_is_refused_and_nothing_is_kept(app: Live, settings: Settings) -> None:
    for data in (b"", b"nonsense", broken(1), frame(KINDS[0], 0, 1)[:-1]):
        answer = app("POST", "/frames", content=data, headers=FRAME)
        assert answer.status_code == 400
        body = answer.json()
        assert body["error"] == "bad-frame"
        assert body["field"] and body["rule"]
    data = frame(KINDS[0], 0, 1)
    for headers in ({}, {"Content-Type": "application/json"}):
        assert app("POST", "/frames", content=data, headers=headers).status_code == 415
    encoded = {**FRAME, "Content-Encoding": "gzip"}
    assert app("POST", "/frames", content=data, headers=encoded).status_code == 415
    assert app("POST", "/frames", content=bytes(2 << 20), headers=FRAME).status_code == 413
    assert a_store(settings).conservation().accepted == 0


def test_an_ad_request_counts_its_index_and_a_slate_counts_nothing(
    app: Live, settings: Settings
) -> None:
    for index in (1, 1, 4):
        shown = app("POST", "/requests", json={"index": index}).json()
        assert [ad["ad_id"] for ad in shown["ads"]] == [f"ad-{index}"]
    slate = app("POST", "/requests", json={"slate": [3, 0]}).json()
    assert [ad["index"] for ad in slate["ads"]] == [3, 0]
    wrong: list[object] = [{}, {"index": 1, "slate": [1]}, {"index": 5}, {"slate": []}, [1]]
    for bad in (*wrong, {"index": "1"}):
        assert app("POST", "/requests", json=bad).status_code == 422
    assert app("POST", "/requests", content=b"{").status_code == 415
    store = counted(settings)
    store.close("impressions", 0)
    cells, rows = store.release("impressions", 0)
    assert (cells.tolist(), rows) == ([0, 2, 0, 0, 1], 3)


def test_the_short_way_of_a_request_answers_like_its_route(
    app: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"Content-Type": "application/json"}
    bodies = [b'{"index": 2}', b'{"slate": [3, 0, 3]}', b"{}", b'{"index": 5}', b"[", b'"x"']
    bodies += [b'{"index": 1, "epoch": -1}', b'{"index": 1, "more": 1}', b'{"index": true}']

    async def answers() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app.service.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.post("/requests", content=one, headers=kind) for one in bodies]

    long = asyncio.run_coroutine_threadsafe(answers(), app._loop).result(20)
    monkeypatch.setattr(FastAPI, "__call__", None)  # the short way does without
    short = [app("POST", "/requests", content=one, headers=kind) for one in bodies]
    for one, other in zip(short, long, strict=True):
        assert (one.status_code, one.content) == (other.status_code, other.content)
        assert one.headers == other.headers
    assert [one.status_code for one in short] == [200, 200] + [422] * 7
    assert {"index", "ad_id", "topic", "price_floor_micros"} == set(short[0].json()["ads"][0])


REQUESTS = kinds_from_sizes({"ad-requests": {"size": 5}, "ad-slates": {"size": 5, "slate": 2}})
REQUESTING = replace(COLLECTION, kinds={**COLLECTION.kinds, **REQUESTS}, namespace="requesting")


@pytest.fixture
def requesting(settings: Settings) -> Iterator[Live]:
    with live(ad_server.create(prepared(settings, REQUESTING), REQUESTING)) as running:
        running.wait_ready()
        yield running


def request_frames(epoch: int, number: int) -> list[bytes]:
    """Return a frame of each kind of requests, the same for equal numbers."""
    with new_run():
        source = SeededSource(number, epoch)
        ads = source.child("ads").below(5, 7)
        slates = np.sort(source.child("slates").permutation(5)[:2])[None]
        return [
            encode_frame(REQUESTS["ad-requests"], epoch, ads, source.child("one")),
            encode_frame(REQUESTS["ad-slates"], epoch, slates, source.child("two")),
        ]


def request_frame_of(ads: NDArray[np.uint8]) -> bytes:
    """Return a frame of any number of requests, as no honest writer would make it."""
    kind, end = REQUESTS["ad-requests"], 8
    honest = encode_frame(kind, 0, ads[:1], SecureSource())
    start = len(honest) - end - joined(kind, [kind.encode(ads[:1])]).serialize().size
    rows: bytes = joined(kind, [kind.encode(ads)]).serialize().to_pybytes()
    return honest[:start] + rows + honest[-end:]


def test_frames_of_requests_count_as_the_role_counts_them(
    requesting: Live, settings: Settings
) -> None:
    assert REQUESTING.catalogue is not None
    role = AdServer(REQUESTING.catalogue, requests=REQUESTS.values())
    for number in range(10):
        for data in request_frames(0, number):
            role.apply_requests(data)
            for path in ("/requests", "/frames", "/requests")[: 1 + number % 3]:
                answer = requesting("POST", path, content=data, headers=FRAME)
                assert (answer.status_code, answer.content) == (202, b"")
    store = a_store(settings, REQUESTING)
    Worker(store).drain(patience_s=20)
    for name in (*REQUESTS, "impressions"):
        store.close(name, 0)
    role.close(0)
    for name in REQUESTS:
        ours, theirs = store.release(name, 0), role.requests(name, 0)
        assert (ours[0].tobytes(), ours[1]) == (theirs[0].tobytes(), theirs[1])
    assert store.release("impressions", 0)[1] == 0
    late = request_frames(0, 99)[0]
    assert role.apply_requests(late).status is FrameStatus.LATE
    assert requesting("POST", "/requests", content=late, headers=FRAME).status_code == 410
    numbers = requesting("GET", "/metrics", headers=bearer(Role.READ)).text
    assert 'noisefloor_frames_accepted{kind="ad-requests"} 19' in numbers


def test_what_is_no_frame_of_requests_is_refused_and_nothing_is_kept(
    requesting: Live, app: Live, settings: Settings
) -> None:
    one, slate = request_frames(0, 1)
    with new_run():
        source = SeededSource(7)
        wide = encode_frame(ad_requests_kind(6), 0, np.array([5]), source.child("wide"))
        full = encode_frame(ad_slates_kind(5, 3), 0, np.array([[0, 1, 2]]), source.child("full"))
        long = request_frame_of(np.zeros((1 << 16) + 1, dtype=np.uint8))
    other = frame(KINDS[0], 0, 1)
    for data in (b"", b"nonsense", one[:-1], other, wide, full, long):
        answer = requesting("POST", "/requests", content=data, headers=FRAME)
        assert answer.status_code == 400
        assert answer.json()["error"] == "bad-frame"
    assert (
        requesting("POST", "/requests", content=bytes(2 << 20), headers=FRAME).status_code == 413
    )
    for data in (one, slate):  # this collection has no kind of requests
        assert app("POST", "/requests", content=data, headers=FRAME).status_code == 400
    assert a_store(settings, REQUESTING).conservation().accepted == 0
    assert a_store(settings).conservation().accepted == 0
    short = request_frame_of(np.zeros(1 << 16, dtype=np.uint8))  # as many rows as there may be
    assert requesting("POST", "/requests", content=short, headers=FRAME).status_code == 202


def test_frames_of_requests_take_a_token_where_they_have_to(settings: Settings) -> None:
    given = replace(prepared(settings, REQUESTING), report_tokens=True)
    with live(ad_server.create(given, REQUESTING)) as app:
        options = {"json": {"count": 1}, "headers": bearer(Role.ADMIN)}
        (token,) = app("POST", "/tokens/0", **options).json()
        one, slate = request_frames(0, 1)

        def sent(content: bytes, **more: str) -> int:
            headers = {**FRAME, **{name.replace("_", "-"): value for name, value in more.items()}}
            return app("POST", "/requests", content=content, headers=headers).status_code

        assert sent(one) == 403
        assert sent(one, report_token=token) == 202
        assert sent(one, report_token=token) == 202  # the same again is a retry
        assert sent(slate, report_token=token) == 403


def test_single_reports_are_counted_like_frames(app: Live, settings: Settings) -> None:
    reports: dict[str, object] = {
        "clicks": [0, 1, 0, 1, 1],
        "grid": -7,
        "notes": {"age": 3, "note": "n"},
        "impressions": 2,
    }
    for kind, report in reports.items():
        answer = app("POST", f"/reports/{kind}", json={"epoch": 0, "report": report})
        assert (answer.status_code, answer.content) == (202, b"")
    bad: dict[str, list[object]] = {
        "clicks": [[0, 1], [0, 1, 0, 1, 2], 1, "x", {"bits": 1}, {"other": [0] * 5}, None],
        "grid": [1 << 40, 1 << 70, 0.5, True, [1, 2], "x"],
        "notes": [{"age": 121, "note": "n"}, {"age": 3, "note": "too long a note"}, {"age": 3}, 1],
        "impressions": [5, -1],
    }
    for kind, listed in bad.items():
        for report in listed:
            answer = app("POST", f"/reports/{kind}", json={"epoch": 0, "report": report})
            assert answer.status_code == 422, (kind, report)
    assert app("POST", "/reports/none", json={"epoch": 0, "report": 1}).status_code == 404
    store = counted(settings)
    for kind in ("clicks", "grid", "impressions", "notes"):
        store.close(kind, 0)
    assert store.release("clicks", 0)[0].tolist() == [0, 1, 0, 1, 1]
    assert store.release("grid", 0)[0].tolist() == [-7]
    assert store.release_rows("notes", 0).to_pydict() == {"age": [3], "note": ["n"]}
    assert store.conservation().counted == 4


def test_too_much_that_waits_is_429_with_retry_after(settings: Settings) -> None:
    narrow = replace(COLLECTION, namespace="narrow")
    given = prepared(replace(settings, high_water=3, partitions=1), narrow)
    with live(ad_server.create(given, narrow)) as app:
        answers = [
            app("POST", "/frames", content=frame(KINDS[0], 0, number), headers=FRAME)
            for number in range(6)
        ]
        assert [one.status_code for one in answers] == [202] * 3 + [429] * 3
        assert answers[-1].headers["retry-after"] == "1"
        store = a_store(given, narrow)
        assert store.waiting() == 3
        Worker(store).drain(patience_s=20)
        data = frame(KINDS[0], 0, 9)
        app.wait(lambda: app("POST", "/frames", content=data, headers=FRAME).status_code == 202)


def test_reports_take_a_token_where_they_have_to(settings: Settings) -> None:
    given = replace(settings, report_tokens=True)
    with live(ad_server.create(given, COLLECTION)) as app:
        options = {"json": {"count": 2}, "headers": bearer(Role.ADMIN)}
        first, second = app("POST", "/tokens/0", **options).json()
        data, other = frame(KINDS[0], 0, 1), frame(KINDS[0], 0, 2)

        def sent(content: bytes, **more: str) -> int:
            headers = {**FRAME, **{name.replace("_", "-"): value for name, value in more.items()}}
            return app("POST", "/frames", content=content, headers=headers).status_code

        assert sent(data) == 403
        assert sent(data, report_token=first) == 202
        assert sent(data, report_token=first) == 202  # the same again is a retry
        assert sent(other, report_token=first) == 403
        assert sent(frame(KINDS[0], 1, 2), report_token=second) == 403
        assert sent(other, report_token=second) == 202


def test_without_redis_it_is_503_and_never_a_promise(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as valkey:
        settings = prepared(Settings(redis_url=valkey.url, minimum_batch=1), COLLECTION)
        with live(ad_server.create(settings, COLLECTION)) as app:
            app.wait_ready()
            taken = [frame(KINDS[0], 0, number) for number in range(3)]
            for data in taken:
                assert app("POST", "/frames", content=data, headers=FRAME).status_code == 202
            valkey.kill()
            late = frame(KINDS[0], 0, 7)
            for _ in range(20):
                answer = app("POST", "/frames", content=late, headers=FRAME)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                report = app("POST", "/requests", json={"index": 1})
                assert report.status_code == 503
                assert app("GET", "/catalogue").status_code == 200
            app.wait(lambda: app("GET", "/readyz").status_code == 503)
            assert app("GET", "/healthz").status_code == 200
            valkey.start()
            app.wait(
                lambda: app("POST", "/frames", content=late, headers=FRAME).status_code == 202
            )
            app.wait_ready()
        store = counted(settings)
        assert store.conservation().counted == 4
        assert store.conservation().is_conserved


def test_requests_under_way_share_one_sync(app: Live, settings: Settings) -> None:
    frames = [frame(KINDS[0], 0, number) for number in range(64)]

    async def send() -> list[int]:
        transport = httpx.ASGITransport(app.service)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            sent = [client.post("/frames", content=data, headers=FRAME) for data in frames]
            return [one.status_code for one in await asyncio.gather(*sent)]

    answers = asyncio.run_coroutine_threadsafe(send(), app._loop).result(20)
    assert answers == [202] * 64
    assert a_store(settings).conservation().accepted == 64


def test_the_largest_frames_pass(app: Live) -> None:
    rows = np.zeros((1 << 16, 5), dtype=bool)
    data = encode_frame(KINDS[0], 0, rows, SecureSource())
    assert app("POST", "/frames", content=data, headers=FRAME).status_code == 202


def test_the_description_has_the_frame_and_the_report(app: Live) -> None:
    paths = app("GET", "/openapi.json").json()["paths"]
    assert FRAME_TYPE in paths["/frames"]["post"]["requestBody"]["content"]
    assert json.dumps(paths["/reports/{kind}"]["post"]["requestBody"]).count("epoch")
    assert {"400", "413", "415", "429", "503"} <= set(paths["/frames"]["post"]["responses"])


def test_a_store_that_takes_no_frames_makes_the_service_unready(settings: Settings) -> None:
    other = replace(COLLECTION, namespace="noisefloor-closed")
    layout = Layout(other.namespace, settings.partitions)
    streams = [layout.keys(place).frames for place in range(settings.partitions)]
    server = Server(settings.redis_url)
    with live(ad_server.create(settings, other)) as app:
        opened = (
            "Frames cannot be appended: no aggregator has opened the epochs of the collection."
        )
        app.wait(lambda: app("GET", "/readyz").json()["lacks"] == [opened])
        lines = app("GET", "/metrics", headers=bearer(Role.READ)).text
        assert "noisefloor_stream_length" not in lines  # there is no collection yet
        a_store(settings, other)
        app.wait_ready()
        lines = app("GET", "/metrics", headers=bearer(Role.READ)).text
        assert "noisefloor_stream_length 0\n" in lines
        server.all([("SET", one, "something else") for one in streams])
        refused = app("POST", "/requests", json={"index": 1})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        app.wait(lambda: app("GET", "/readyz").status_code == 503)
        lacks = app("GET", "/readyz").json()["lacks"]
        assert lacks == ["Frames cannot be appended: a stream's key holds something else."]
        lines = app("GET", "/metrics", headers=bearer(Role.READ)).text
        assert 'noisefloor_appends_failed{cause="wrong-type"} 1\n' in lines
        assert "noisefloor_stream_length" not in lines
        server.call("DEL", *streams)
        a_store(settings, other)
        app.wait_ready()
        assert app("POST", "/requests", json={"index": 1}).status_code == 200
    server.close()


def test_a_closed_or_far_epoch_is_refused_with_what_to_do(app: Live, settings: Settings) -> None:
    def sent(epoch: int, number: int) -> httpx.Response:
        return app("POST", "/frames", content=frame(KINDS[0], epoch, number), headers=FRAME)

    assert sent(0, 1).status_code == 202
    store = counted(settings)
    store.close("clicks", 0)
    store.close("impressions", 0)
    assert sent(0, 1).status_code == 202  # counted before the close: only its answer was lost
    gone, ahead = sent(0, 2), sent(33, 2)
    assert (gone.status_code, gone.json()["error"]) == (410, "epoch-closed")
    assert "drop it" in gone.json()["detail"]
    assert (ahead.status_code, ahead.json()["error"]) == (409, "epoch-ahead")
    assert ahead.headers["retry-after"] == "60" and "send the same" in ahead.json()["detail"]
    report = {"epoch": 0, "report": [1, 0, 0, 0, 0]}
    assert app("POST", "/reports/clicks", json=report).status_code == 410
    assert app("POST", "/requests", json={"index": 1, "epoch": 0}).status_code == 410
    account = counted(settings).conservation()
    assert (account.accepted, account.counted, account.duplicates) == (2, 1, 1)
    assert (account.late, account.dead_letters, account.missing) == (0, 0, 0)
    numbers = app("GET", "/metrics", headers=bearer(Role.READ)).text
    assert 'noisefloor_frames_refused{reason="epoch-closed"} 3' in numbers


def test_a_store_without_windows_promises_nothing(app: Live, settings: Settings) -> None:
    with Redis.from_url(settings.redis_url) as client:
        client.flushall()  # it lost what it held: which epochs were closed is not known any more
    answer = app("POST", "/frames", content=frame(KINDS[0], 0, 1), headers=FRAME)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    prepared(settings, COLLECTION)
    answer = app("POST", "/frames", content=frame(KINDS[0], 0, 1), headers=FRAME)
    assert answer.status_code == 202
