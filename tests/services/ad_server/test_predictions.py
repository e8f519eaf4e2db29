"""Protected queries at the ad server: answered by the fitted model, and not stored."""

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis import Redis

from live_apps import Live, credentials, live, prepared
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.tasks.training_task import MOST_QUERIES, TrainingTask
from noisefloor_services import ad_server
from noisefloor_services.ad_server.state import MOST_WAITING
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from task_cases import QUERIES, Threshold, Totals, crowd, queries, written

FRAME = {"Content-Type": FRAME_TYPE}
SENTINEL = b"sentinel-7f3a9c"


@pytest.fixture(scope="module")
def settings(valkey: EmbeddedServer) -> Settings:
    return Settings(redis_url=valkey.url, credentials=credentials())


def answering_app(
    settings: Settings, task: TrainingTask | None, content: bytes | None
) -> Iterator[Live]:
    with Redis.from_url(settings.redis_url) as client:
        client.flushall()
        if content is not None:
            client.hset("noisefloor:settings", "broadcast", content)
    collection = CollectionConfig(example_collection(4).catalogue, task=task)
    with live(ad_server.create(prepared(settings, collection), collection)) as app:
        app.wait_ready()
        yield app


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    yield from answering_app(settings, Threshold(), written(2, threshold=60, seen=""))


def test_queries_are_answered_in_their_order(app: Live) -> None:
    answer = app("POST", "/predictions", content=queries(59, 60, 0, 100), headers=FRAME)
    assert (answer.status_code, answer.json()) == (200, [0, 1, 0, 1])
    many = app("POST", "/predictions", content=queries(*[60] * MOST_QUERIES), headers=FRAME)
    assert many.json() == [1] * MOST_QUERIES


def test_nothing_but_queries_is_answered(app: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bad = [b"", SENTINEL, crowd(0, 1, (1, 1)), queries(*[1] * (MOST_QUERIES + 1)), queries(1)[:-1]]
    for data in bad:
        answer = app("POST", "/predictions", content=data, headers=FRAME)
        assert answer.status_code == 400
        assert {"error", "detail", "field", "rule", "action"} == set(answer.json())
        assert SENTINEL not in answer.content
    assert SENTINEL.decode() not in caplog.text
    assert app("POST", "/predictions", content=queries(1)).status_code == 415
    access = [record for record in caplog.records if record.name == "noisefloor.access"]
    assert not access  # devices leave no line


def test_a_query_is_no_report(app: Live) -> None:
    answer = app("POST", "/frames", content=queries(1), headers=FRAME)
    assert answer.status_code == 400
    assert app("POST", f"/reports/{QUERIES.name}", json={"epoch": 0}).status_code == 404


@pytest.mark.parametrize(
    ("task", "content", "status"),
    [
        (None, None, 404),
        (Totals(), written(3, total=1), 404),
        (Threshold(), None, 409),
        (Threshold(), Threshold().first(), 409),
        (Threshold(), written(1, threshold=3, seen=""), 409),
    ],
)
def test_who_cannot_answer_says_so(
    settings: Settings, task: TrainingTask | None, content: bytes | None, status: int
) -> None:
    for app in answering_app(settings, task, content):
        answer = app("POST", "/predictions", content=queries(1), headers=FRAME)
        assert answer.status_code == status


def test_too_many_queries_are_refused_for_now_and_reports_are_taken(
    settings: Settings, tmp_path: Path
) -> None:
    blocker = tmp_path / "held"
    blocker.touch()
    task = Threshold(str(blocker))
    for app in answering_app(settings, task, written(2, threshold=60, seen="")):
        tally, most = Tally(), MOST_WAITING

        def ask(app: Live = app, tally: "Tally" = tally) -> None:
            answer = app("POST", "/predictions", content=queries(60), headers=FRAME)
            tally.add(answer.status_code, answer.headers.get("Retry-After"))

        with ThreadPoolExecutor(most + 3) as pool:
            done = [pool.submit(ask) for _ in range(most + 3)]
            app.wait(lambda tally=tally: len(tally.seen) == 3)  # type: ignore[misc]
            assert tally.seen == [(503, "1")] * 3
            data = crowd(0, 1, (1, 1))
            assert app("POST", "/frames", content=data, headers=FRAME).status_code == 202
            blocker.unlink()
            for one in done:
                one.result(30)
        assert sorted(tally.seen[3:]) == [(200, None)] * most


@dataclass
class Tally:
    """What became of requests, from several threads."""

    seen: list[tuple[int, str | None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: int, wait: str | None) -> None:
        with self.lock:
            self.seen.append((status, wait))
