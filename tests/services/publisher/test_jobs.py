"""Publications that take long: paid for first, made beside the requests, polled, stored once."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live_apps import Live, bearer, credentials, live
from noisefloor.errors import BusFull, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import Source
from noisefloor.roles.model_publisher import PublicationMethod, ReleaseRequest
from noisefloor_services import publisher
from noisefloor_services.publisher import jobs
from noisefloor_services.publisher.jobs import PublicationProgress, PublicationQueue
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer

PUBLISH, READ, LEDGER = bearer(Role.PUBLISH), bearer(Role.READ), bearer(Role.LEDGER)
RECORD = Neighbours.RECORD_ADD_REMOVE
_names = (f"l{number}" for number in count())
COST = Guarantee(0.25, RECORD, model=TrustModel.CENTRAL)


class Training:
    """A method that is done when it is told so."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.runs = 0
        self.fails = False

    @property
    def method(self) -> PublicationMethod:
        return PublicationMethod(
            "train", "application/octet-stream", lambda _: COST, self.run, is_long=True
        )

    def run(self, _: ReleaseRequest, source: Source) -> bytes:
        self.runs += 1
        assert self.may_end.wait(20)
        if self.fails:
            raise RuntimeError("sentinel-7f3a9c")
        return source.words(8).tobytes()


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path_factory.mktemp("valkey")) as embedded:
        yield embedded


@pytest.fixture
def settings(valkey: EmbeddedServer, tmp_path: Path) -> Settings:
    made = Settings(
        redis_url=valkey.url,
        ledger=next(_names),
        ledger_epsilon=1.0,
        ledger_anchor=tmp_path / "anchor",
        credentials=credentials(),
        rate=1e6,
        burst=10**6,
    )
    publisher.create_ledger(made)
    return made


def publish(app: Live, publication_id: str = "p-1", **more: object) -> Any:
    cost = {"epsilon": 0.25, "neighbours": RECORD.value}
    fixed = {"publication_id": publication_id, "data_set": "films", "method": "train"}
    return app("POST", "/publications", json={**fixed, "cost": cost, **more}, headers=PUBLISH)


def state(app: Live, publication_id: str = "p-1") -> str:
    answer = app("GET", f"/publications/{publication_id}/state", headers=READ)
    return str(answer.json().get("state", answer.status_code))


def spent(app: Live) -> int:
    found: dict[str, int] = app("GET", "/ledger/films", headers=LEDGER).json()
    return found["spent_micro_epsilon"]


def serving(settings: Settings, training: Training) -> Any:
    methods = {"train": training.method}
    return live(publisher.create(settings, methods, data_sets={"films"}))


def test_a_long_method_is_paid_for_polled_and_stored(settings: Settings) -> None:
    training = Training()
    with serving(settings, training) as app:
        app.wait_ready()
        assert state(app) == "404"
        taken = publish(app)
        assert (taken.status_code, taken.json()["card"]) == (202, None)
        assert taken.headers["location"] == "/publications/p-1/state"
        assert spent(app) == 250_000
        app.wait(lambda: state(app) == "running")
        assert app("GET", "/publications/p-1", headers=READ).status_code == 404
        assert publish(app).json()["state"] == "running"
        assert publish(app, parameters={"more": 1}).status_code == 409
        assert publish(app, "p-2").json()["state"] == "waiting"
        assert "publications_waiting 2" in app("GET", "/metrics", headers=READ).text
        for number in range(3, 5):
            assert publish(app, f"p-{number}").status_code == 202
        assert publish(app, "p-5").status_code == 409
        assert state(app, "p-5") == "404"
        training.may_end.set()
        app.wait(lambda: state(app, "p-4") == "stored")
        done = publish(app)
        assert (done.status_code, done.json()["state"]) == (200, "stored")
        assert publish(app).json() == done.json()
        assert (training.runs, spent(app)) == (4, 1_000_000)
        assert len(app("GET", "/publications/p-1", headers=READ).content) == 64


def test_a_method_that_fails_keeps_its_charge_and_does_not_run_again(settings: Settings) -> None:
    training = Training()
    training.fails = True
    training.may_end.set()
    with serving(settings, training) as app:
        app.wait_ready()
        assert publish(app).status_code == 202
        app.wait(lambda: state(app) == "failed")
        answer = app("GET", "/publications/p-1/state", headers=READ)
        assert "sentinel" not in answer.text
        assert spent(app) == 250_000
        training.fails = False  # whether it failed may tell of the data: one draw for one charge
        assert publish(app).status_code == 410
        assert app("GET", "/publications/p-1", headers=READ).status_code == 410
        assert (state(app), training.runs, spent(app)) == ("failed", 1, 250_000)


def test_a_publisher_that_stops_leaves_the_charge_and_another_goes_on(settings: Settings) -> None:
    training = Training()
    with serving(settings, training) as app:
        app.wait_ready()
        publish(app)
        app.wait(lambda: state(app) == "running")
        publish(app, "p-2")
    other = Training()
    other.may_end.set()
    with serving(settings, other) as app:
        app.wait_ready()
        assert state(app) == "charged"
        assert state(app, "p-2") == "charged"
        assert publish(app).status_code == 202
        app.wait(lambda: state(app) == "stored")
        first = app("GET", "/publications/p-1", headers=READ).content
        training.may_end.set()  # the first one ends late: what is stored stays
        app.wait(lambda: training.runs == 1)
        assert app("GET", "/publications/p-1", headers=READ).content == first
        assert spent(app) == 500_000


def test_too_much_waiting_is_refused_before_it_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "MOST_WAITING", 2)
    queue, charged = PublicationQueue(), []
    for number in range(2):
        request = ReleaseRequest(f"p-{number}", "films", "train", COST)
        queued = queue.submit(f"p-{number}", request, lambda: charged.append(1), bool)
        assert queued is PublicationProgress.WAITING
    with pytest.raises(BusFull):
        third = ReleaseRequest("p-2", "films", "train", COST)
        queue.submit("p-2", third, lambda: charged.append(1), bool)
    with pytest.raises(SpendConflict):
        other = ReleaseRequest("p-1", "films", "train", COST, {"more": 1})
        queue.submit("p-1", other, lambda: charged.append(1), bool)
    assert charged == [1, 1]
    assert queue.waiting == 2
    queue.start()
    for _ in range(1000):
        if not queue.waiting:
            break
        time.sleep(0.01)
    assert queue.progress("p-0") is PublicationProgress.STORED
    assert queue.progress("p-9") is None
    assert queue.stop()


def test_the_queue_keeps_nothing_of_work_that_is_done() -> None:
    queue, rows = PublicationQueue(), np.zeros(1)
    alive = weakref.ref(rows)
    work: Callable[[], object] = rows.sum
    del rows
    queue.start()
    queue.submit("p-1", ReleaseRequest("p-1", "films", "train", COST), bool, work)
    del work
    for _ in range(1000):
        if alive() is None:
            break
        time.sleep(0.01)
    assert queue.progress("p-1") is PublicationProgress.STORED
    assert alive() is None
    assert queue.stop()
