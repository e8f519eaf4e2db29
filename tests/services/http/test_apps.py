"""Every service: denied by default, healthy, measured, and silent about what was sent."""

import io
import json
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException, Request, Response
from redis import Redis

from live_apps import ROOT, Caller, Live, bearer, credentials, live, prepared
from noisefloor.errors import BadCollection
from noisefloor.randomness import SeededSource
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor_services import ad_server, aggregator, publisher
from noisefloor_services.__main__ import main
from noisefloor_services.http import error_handlers, logs
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.http.service import DESCRIPTION, DirectRoutes, Service
from noisefloor_services.metrics import (
    MetricCounter,
    MetricSample,
    RequestLatency,
    available_samples,
    prometheus_text,
)
from noisefloor_services.security.acl import write_acl_file
from noisefloor_services.security.credentials import Role
from noisefloor_services.security.secure_start import InsecureStart
from noisefloor_services.settings import Settings
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import StoreAway
from valkeys import folder, server

SENTINEL = "sentinel-7f3a9c"
NAMES = (ad_server.NAME, aggregator.NAME, publisher.NAME)


def made(name: str, settings: Settings) -> Service:
    if name == ad_server.NAME:
        return ad_server.create(settings, example_collection())
    if name == aggregator.NAME:
        return aggregator.create(settings, example_collection())
    return publisher.create(settings, {}, data_sets=["films"])


@pytest.fixture(scope="module")
def settings(valkey: EmbeddedServer) -> Settings:
    given = Settings(redis_url=valkey.url, credentials=credentials(), rate=1e6, burst=10**6)
    publisher.create_ledger(given)
    return prepared(given, example_collection())


@pytest.fixture(scope="module", params=NAMES)
def app(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Live]:
    with live(made(request.param, settings)) as running:
        running.wait_ready()
        yield running


def operations(app: Live) -> list[tuple[str, str]]:
    described = app("GET", DESCRIPTION).json()
    return [(how.upper(), path) for path, item in described["paths"].items() for how in item]


def filled(path: str) -> str:
    return re.sub(r"\{epoch\}", "0", re.sub(r"\{(?!epoch)[a-z_]+\}", "films", path))


def test_every_route_has_a_rule_and_every_rule_a_route(app: Live) -> None:
    described = app.service.api.openapi()
    assert app.service.policy.missing(described) == []
    assert app.service.policy.superfluous(described) == [f"GET {DESCRIPTION}"]


def test_what_is_not_described_is_denied(app: Live) -> None:
    for path in ("/docs", "/redoc", "/nothing", "/metrics/", "//healthz"):
        assert app("GET", path).status_code == 401
        assert app("GET", path, headers=bearer(Role.ADMIN)).status_code == 403


def test_the_description_says_what_each_operation_does_and_takes(app: Live) -> None:
    for path, item in app("GET", DESCRIPTION).json()["paths"].items():
        for method, operation in item.items():
            assert operation["summary"].endswith("."), path
            assert "security" in operation, path
            assert {"200", "202", "204"} & set(operation["responses"]), path
            if method == "post" and "/epochs/" not in path:
                assert operation["requestBody"]["content"], path


def test_a_service_is_alive_ready_and_measured(app: Live) -> None:
    assert app("GET", "/healthz").json() == {"status": "alive"}
    ready = app("GET", "/readyz").json()
    assert (ready["status"], ready["lacks"], ready["unkept"]) == ("ready", [], [])
    answer = app("GET", "/metrics", headers=bearer(Role.READ))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert "noisefloor_ready 1" in lines
    form = r'(# (HELP|TYPE) .+|[a-z_]+(\{([a-z_]+="[^"]*",?)+\})? -?[0-9.e+-]+)'
    assert [line for line in lines if not re.fullmatch(form, line)] == []
    counts = [line for line in lines if line.startswith("noisefloor_request_seconds_count")]
    assert any('route="/readyz",status="2xx"' in line for line in counts)


def test_labels_are_bounded_for_any_request() -> None:
    counter = MetricCounter("things", "Things.", "kind", ["a"])
    for number in range(100):
        counter.add(f"b{number}")
    text = prometheus_text(counter.samples(), RequestLatency(lambda *_: None, []).lines())  # type: ignore[arg-type]
    assert text.count("noisefloor_things{") == 2
    assert 'noisefloor_things{kind="other"} 100' in text


def test_a_source_that_is_gone_has_no_numbers_and_hides_no_other() -> None:
    def gone() -> Iterator[MetricSample]:
        yield MetricSample("half", "Half of it.", 1)
        raise StoreAway("no connection")

    def here() -> Iterator[MetricSample]:
        yield MetricSample("here", "Here.", 2)

    assert [one.name for one in available_samples(gone, here, gone)] == ["here"]


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    before, level = logging.root.handlers[:], logging.root.level
    logs.configure_logging("INFO", stream)
    yield stream
    logging.captureWarnings(capture=False)
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


def test_a_sentinel_comes_back_nowhere(app: Live, lines: io.StringIO, settings: Settings) -> None:
    headers = {
        "User-Agent": SENTINEL,
        "X-Forwarded-For": SENTINEL,
        "Cookie": f"id={SENTINEL}",
        "Referer": f"http://{SENTINEL}",
        "If-None-Match": f'"{SENTINEL}"',
        "Report-Token": SENTINEL,
        "X-Request-Id": SENTINEL,
    }
    bodies: list[dict[str, object]] = [
        {"content": SENTINEL.encode(), "headers": {"Content-Type": FRAME_TYPE}},
        {"json": {"epoch": 0, "report": SENTINEL}},
        {"json": {"epoch": 0, "report": {SENTINEL: 1}, SENTINEL: 1}},
        {"json": {"epoch": SENTINEL, "index": 1}},
        {"json": {"publication_id": SENTINEL, "data_set": SENTINEL, "method": SENTINEL}},
        {"content": f'{{"{SENTINEL}'.encode(), "headers": {"Content-Type": "application/json"}},
        {"json": {"index": 3}},
        {"json": {"epoch": 0, "report": [0, 1] * 10}},
    ]
    texts = []
    for method, path in operations(app):
        places = {filled(path), re.sub(r"\{[a-z_]+\}", SENTINEL, path)}
        places |= {filled(path).replace("films", "clicks")}
        for place in sorted(places):
            for role in (None, *Role):
                own = {**headers, **(bearer(role) if role else {})}
                for body in bodies if method == "POST" else [{}]:
                    extra = body.get("headers", {})
                    assert isinstance(extra, dict)
                    more = {**own, **extra}
                    rest = {key: value for key, value in body.items() if key != "headers"}
                    query = {"id": SENTINEL}
                    answer = app(method, place, params=query, headers=more, **rest)
                    assert answer.status_code < 500, (method, place, answer.text)
                    texts.append(str(answer.headers) + answer.text)
    texts.append(app("GET", "/metrics", headers=bearer(Role.READ)).text)
    texts.append(lines.getvalue())
    assert lines.getvalue()
    assert [text for text in texts if SENTINEL in text] == []
    with Redis.from_url(settings.redis_url) as client:
        _, keys = client.execute_command("SCAN", 0, "COUNT", 10**6)
        kept = [key + client.execute_command("DUMP", key) for key in keys]
    assert kept
    assert [one for one in kept if SENTINEL.encode() in one] == []


def test_a_service_refuses_a_seed(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    seeded = {"NOISEFLOOR_SEED": "1"}
    with pytest.raises(InsecureStart):
        ad_server.create(settings, example_collection(), environment=seeded)
    with pytest.raises(InsecureStart):
        aggregator.create(settings, example_collection(), environment=seeded)
    with pytest.raises(InsecureStart):
        publisher.create(settings, {}, data_sets=["films"], environment=seeded)
    with pytest.raises(InsecureStart):
        ad_server.create(settings, example_collection(), source=SeededSource(1))
    with pytest.raises(InsecureStart):
        publisher.create(settings, {}, data_sets=["films"], source=SeededSource(2))
    for name in NAMES:
        assert main([name], {"NOISEFLOOR_SEED": SENTINEL}) == 2
    assert SENTINEL not in capsys.readouterr().err


@pytest.mark.usefixtures("lines")  # a start configures the logs: they are put back afterwards
def test_a_failed_start_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "x" * 40
    file = tmp_path / "collection.json"
    file.write_text('{"catalogue": {"version": 1, "ads": []}}')
    for arguments, environment in (
        (["ad-server"], {"NOISEFLOOR_PORT": "x"}),
        (["ad-server", "--collection", str(file)], {}),
        (["model-publisher", "--data-set", token], {"NOISEFLOOR_TOKENS": f"me read {token}"}),
        (["create-ledger"], {"NOISEFLOOR_REDIS_URL": f"unix://{tmp_path}/none"}),
    ):
        assert main(arguments, environment) == 2
        given = capsys.readouterr().err
        assert given.startswith("noisefloor: ") and given.count("\n") == 1
        assert token not in given


def test_a_collection_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "collection.json"
    ads = [{"ad_id": "a", "topic": 0}, {"ad_id": "b", "topic": 1, "price_floor_micros": 5}]
    given = {"catalogue": {"version": 3, "ads": ads}, "kinds": {"clicks": {"size": 2}}}
    file.write_text(json.dumps({**given, "first_epoch": 4}))
    read = CollectionConfig.read(file)
    assert read.catalogue is not None
    assert (len(read.catalogue), read.first_epoch) == (2, 4)
    assert sorted(read.kinds) == ["clicks", "impressions"]
    other = {**given, "kinds": {"impressions": {"size": 3}}}
    wrong: list[object] = [{}, {**given, "more": 1}, other, []]
    for broken in wrong:
        file.write_text(json.dumps(broken))
        with pytest.raises(BadCollection):
            CollectionConfig.read(file)
    with pytest.raises(BadCollection):
        CollectionConfig.read(tmp_path / "none.json")


def test_a_store_that_breaks_the_promise_makes_a_service_unready(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, Durability.MEMORY) as forgetful:
        given = prepared(Settings(redis_url=forgetful.url), example_collection())
        with live(ad_server.create(given, example_collection())) as app:
            ready = app("GET", "/readyz")
            assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
            assert ready.json()["lacks"] == ["The store does not keep a promise: disk."]
            answer = app("POST", "/requests", json={"index": 1})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        given = prepared(
            Settings(redis_url=forgetful.url, durability="memory"), example_collection()
        )
        with live(ad_server.create(given, example_collection())) as app:
            assert app("GET", "/readyz").json()["promise"].endswith("may lose it.")
            assert app("POST", "/requests", json={"index": 1}).status_code == 200


@pytest.mark.parametrize("name", NAMES)
def test_a_port_in_use_ends_the_start_with_one_line(
    name: str, capsys: pytest.CaptureFixture[str], lines: io.StringIO
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main([name], {"NOISEFLOOR_PORT": str(port)}) == 2
    why = f"noisefloor: Cannot listen on 127.0.0.1, port {port}: Address already in use.\n"
    assert capsys.readouterr().err == why


def test_the_module_lists_what_it_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "noisefloor_services", "--help"],
        cwd=ROOT / "services",
        env={"PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout for name in NAMES)


def test_a_fault_on_the_short_way_is_500_without_its_text(lines: io.StringIO) -> None:
    api = FastAPI()
    error_handlers.install_error_handlers(api)

    @api.post("/x/{kind}")
    async def fail(request: Request, kind: str) -> Response:
        if kind == "bad":
            raise HTTPException(418, "Short and stout.")
        raise RuntimeError(SENTINEL)

    ways = {f"/x/{kind}": ("/x/{kind}", {"kind": kind}) for kind in ("worse", "bad")}
    call = Caller(DirectRoutes(api, ways))
    answer = call("POST", "/x/worse")
    assert (answer.status_code, answer.json()["error"]) == (500, "fault")
    assert call("POST", "/x/bad").status_code == 418
    assert call("GET", "/x/bad").status_code == 405
    given = lines.getvalue()
    assert "RuntimeError" in given and SENTINEL not in given + answer.text


def test_services_work_with_the_rights_of_their_own_users(tmp_path: Path) -> None:
    names = ("ad-server", "aggregator", "publisher", "monitor", "operator")
    passwords = {name: f"{name}-{'p' * 40}" for name in names}
    write_acl_file(tmp_path / "users.acl", passwords)
    with folder() as place, server(place, "--aclfile", str(tmp_path / "users.acl")) as address:

        def given(user: str) -> Settings:
            url = address.replace("unix://", f"unix://{user}:{passwords[user]}@")
            return Settings(redis_url=url, credentials=credentials())

        publisher.create_ledger(given("publisher"))
        counts = aggregator.create(given("aggregator"), example_collection())
        publishes = publisher.create(given("publisher"), {}, data_sets=["films"])
        with live(counts) as reads, live(publishes) as ledger:
            reads.wait_ready()
            ledger.wait_ready()
            with live(ad_server.create(given("ad-server"), example_collection())) as serves:
                serves.wait_ready()
                assert serves("POST", "/requests", json={"index": 1}).status_code == 200
                assert serves("GET", "/model").status_code == 404

            def account() -> dict[str, int]:
                found: dict[str, int] = reads(
                    "GET", "/conservation", headers=bearer(Role.READ)
                ).json()
                return found

            reads.wait(lambda: account()["counted"] == 1)
            numbers = reads("GET", "/metrics", headers=bearer(Role.READ)).text
            assert 'noisefloor_stream_undelivered{partition="0"} 0' in numbers
            assert ledger("GET", "/ledger/films", headers=bearer(Role.LEDGER)).status_code == 200
