"""Every refusal of an upload says what the device does with the bytes: resend, wait or drop."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import numpy as np
import pytest
from redis import Redis

from live_apps import Live, bearer, credentials, live, prepared
from noisefloor.roles import CollectionConfig, kinds_from_sizes
from noisefloor.wire.frames import seal
from noisefloor_services import ad_server
from noisefloor_services.http.bodies import ClientAction, action_after, error_body
from noisefloor_services.http.connection import _TOO_LONG, _TOO_SLOW
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore

CLICKS = kinds_from_sizes({"clicks": {"size": 5}})["clicks"]
COLLECTION = CollectionConfig(kinds={"clicks": CLICKS})
JSON = {"Content-Type": "application/json"}
FRAME = {"Content-Type": "application/vnd.apache.arrow.stream"}
UPLOADS = ("/frames", "/requests", "/reports/{kind}", "/predictions")


def frame(epoch: int, number: int = 0) -> bytes:
    rows = CLICKS.encode(np.eye(5, dtype=np.uint8))
    return seal(CLICKS, epoch, rows, number.to_bytes(16, "big"))


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    made = Settings(redis_url=valkey.url, credentials=credentials(), body_bytes=4096, high_water=1)
    return prepared(made, COLLECTION)


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    server = Server(settings.redis_url)
    EpochStore.of(server, Layout("noisefloor"), COLLECTION).close("clicks", 0)
    server.close()
    with live(ad_server.create(settings, COLLECTION)) as made:
        made.wait_ready()
        yield made


def posted(app: Live, path: str, content: bytes, **headers: str) -> httpx.Response:
    return app("POST", path, content=content, headers={**FRAME, **headers})


REFUSALS: dict[str, tuple[Callable[[Live], httpx.Response], int, str]] = {
    "no frame": (lambda app: posted(app, "/frames", b"x"), 400, "drop"),
    "another collection": (lambda app: posted(app, "/requests", frame(1)), 400, "drop"),
    "bad length": (
        lambda app: posted(app, "/frames", b"x", **{"Content-Length": "y"}),
        400,
        "drop",
    ),
    "no such path": (lambda app: posted(app, "/frame", b"x"), 401, "drop"),
    "no such kind": (lambda app: posted(app, "/reports/tea", b"{}"), 404, "drop"),
    "no such collection": (lambda app: posted(app, "/collections/tea/frames", b"x"), 404, "drop"),
    "no task": (lambda app: posted(app, "/predictions", b"x"), 404, "drop"),
    "ahead": (lambda app: posted(app, "/frames", frame(99)), 409, "wait"),
    "closed": (lambda app: posted(app, "/frames", frame(0)), 410, "drop"),
    "too long": (lambda app: posted(app, "/frames", bytes(5000)), 413, "drop"),
    "type": (lambda app: app("POST", "/frames", content=b"x"), 415, "drop"),
    "encoded": (
        lambda app: posted(app, "/frames", b"x", **{"Content-Encoding": "gzip"}),
        415,
        "drop",
    ),
    "no report": (lambda app: app("POST", "/reports/clicks", json={}), 422, "drop"),
    "not of the kind": (
        lambda app: app("POST", "/reports/clicks", json={"epoch": 1, "report": [7]}),
        422,
        "drop",
    ),
    "too deep": (
        lambda app: app("POST", "/reports/clicks", content=b"[" * 99, headers=JSON),
        422,
        "drop",
    ),
}


def checked(answer: httpx.Response, status: int, action: str) -> None:
    assert (answer.status_code, answer.json()["action"]) == (status, action), answer.text
    assert {"error", "detail"} <= set(answer.json())
    assert action != "wait" or int(answer.headers["Retry-After"]) >= 1


def test_every_refusal_of_a_running_ad_server_says_what_to_do(app: Live) -> None:
    for ask, status, action in REFUSALS.values():
        checked(ask(app), status, action)
    answers = [posted(app, "/frames", frame(1, number)) for number in range(4)]
    assert answers[0].status_code == 202
    checked(answers[-1], 429, "wait")  # nobody counts: too much waits


def test_a_frame_without_its_token_is_dropped_and_a_token_without_its_role_learns_which(
    settings: Settings,
) -> None:
    with live(ad_server.create(replace(settings, report_tokens=True), COLLECTION)) as app:
        app.wait_ready()
        checked(posted(app, "/frames", frame(1)), 403, "drop")
        denied = app("POST", "/tokens/0", json={"count": 1}, headers=bearer(Role.READ))
        checked(denied, 403, "drop")
        assert denied.json()["role"] == "admin"
        assert "lacks the role admin" in denied.json()["detail"]


def test_what_got_no_promise_is_sent_again() -> None:
    away = Settings(redis_url="redis://127.0.0.1:1", credentials=credentials())
    with live(ad_server.create(away, COLLECTION)) as app:
        answer = posted(app, "/frames", frame(1))
        checked(answer, 503, "resend")
        assert answer.headers["Retry-After"]
        checked(posted(app, "/collections/tea/frames", frame(1)), 503, "resend")


def test_every_described_refusal_of_an_upload_has_an_action(app: Live) -> None:
    described = app("GET", "/openapi.json").json()
    refusal = described["components"]["schemas"]["Refusal"]
    assert "action" in refusal["required"]
    assert refusal["properties"]["action"]["enum"] == [one.value for one in ClientAction]
    for path in UPLOADS:
        answers = described["paths"][path]["post"]["responses"]
        refused = {status: one for status, one in answers.items() if status >= "400"}
        assert refused
        for status, one in refused.items():
            schema = one["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Refusal"}, (path, status)


def test_refusals_of_the_connection_say_it_as_well() -> None:
    for (status, error, detail), action in ((_TOO_LONG, "drop"), (_TOO_SLOW, "resend")):
        assert json.loads(error_body(status, error, detail))["action"] == action


def test_only_what_may_pass_is_kept() -> None:
    kept = {status for status in range(400, 600) if action_after(status) is not ClientAction.DROP}
    assert kept == {408, 429, 500, 503}
    assert action_after(409, {"Retry-After": "60"}) is ClientAction.WAIT
