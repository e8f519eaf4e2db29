"""The aggregator: counts what the ad server took, and shows it once it is closed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from redis import Redis

from live_apps import Live, append, bearer, credentials, live, settled
from noisefloor.ads.training.factorisation import AdModel
from noisefloor.ads.training.rounds import Broadcast
from noisefloor.roles import Aggregator
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.tasks import AdTask, read_broadcast
from noisefloor.wire import grid_kind
from noisefloor.wire.frames import read_batch_id
from noisefloor.wire.kinds import Kind
from noisefloor_services import ad_server, aggregator
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.durability import Durability, server_info
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import GROUP, Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams import pending
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from stream_cases import KINDS, frame

FRAME = {"Content-Type": FRAME_TYPE}
COLLECTION = CollectionConfig(example_collection(5).catalogue, {kind.name: kind for kind in KINDS})
READ, ADMIN = bearer(Role.READ), bearer(Role.ADMIN)


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    many = {"rate": 1e6, "burst": 10**6, "minimum_batch": 1}
    return Settings(redis_url=valkey.url, partitions=2, credentials=credentials(), **many)  # type: ignore[arg-type]


@pytest.fixture
def app(settings: Settings) -> Iterator[Live]:
    with live(aggregator.create(settings, COLLECTION)) as running:
        running.wait_ready()
        yield running


def send(settings: Settings, frames: list[bytes]) -> None:
    append(settings, COLLECTION, frames)


def test_sums_are_shown_after_the_close_and_are_those_of_the_role(
    app: Live, settings: Settings
) -> None:
    role = Aggregator(COLLECTION.kinds.values())
    frames = [frame(kind, epoch, n) for kind in KINDS for epoch in range(2) for n in range(9)]
    send(settings, frames + frames[:7])
    app.wait(lambda: settled(app, len(frames) + 7))
    for data in frames:
        role.apply(data)
    for kind in ("clicks", "grid"):
        assert app("GET", f"/statistics/{kind}/0", headers=READ).status_code == 409
        for _ in range(2):
            closed = app("POST", f"/epochs/{kind}/0/close", headers=ADMIN)
            assert (closed.status_code, closed.json()["is_closed"]) == (200, True)
        role.close(kind, 0)
        given = app("GET", f"/statistics/{kind}/0", headers=READ).json()
        cells, rows = role.release(kind, 0)
        assert np.array(given["cells"], dtype=np.int64).tobytes() == cells.tobytes()
        assert given["rows"] == rows
    app("POST", "/epochs/notes/1/close", headers=ADMIN)
    role.close("notes", 1)
    answer = app("GET", "/statistics/notes/1", headers=READ)
    assert answer.headers["content-type"] == FRAME_TYPE
    rows_ = pa.ipc.open_stream(answer.content).read_all().to_pydict()
    assert rows_ == role.release_rows("notes", 1).to_pydict()


def test_what_is_not_there_is_404_and_too_far_ahead_is_422(app: Live) -> None:
    assert app("GET", "/statistics/none/0", headers=READ).status_code == 404
    assert app("POST", "/epochs/none/0/close", headers=ADMIN).status_code == 404
    assert app("POST", "/epochs/clicks/999/close", headers=ADMIN).status_code == 422
    assert app("GET", "/statistics/clicks/999", headers=READ).status_code == 409
    for epoch in ("-1", "x", "9" * 30):
        assert app("GET", f"/statistics/clicks/{epoch}", headers=READ).status_code == 422


def test_state_and_numbers_tell_what_became_of_every_frame(app: Live, settings: Settings) -> None:
    send(settings, [frame(KINDS[0], 0, 1), frame(KINDS[0], 0, 1), b"poison"])
    app.wait(lambda: settled(app, 3))
    app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    send(settings, [frame(KINDS[0], 0, 2)])
    app.wait(lambda: settled(app, 4))
    state = app("GET", "/state", headers=READ).json()
    assert (state["durability"], state["waiting"], state["partitions"]) == ("disk", 0, 2)
    clicks = next(one for one in state["kinds"] if one["kind"] == "clicks")
    (epoch,) = clicks["epochs"]
    assert (epoch["frames"], epoch["late_frames"], epoch["is_closed"]) == (1, 1, True)
    numbers = app("GET", "/metrics", headers=READ).text.splitlines()
    for outcome, count in {"counted": 1, "duplicates": 1, "dead_letters": 1, "late": 1}.items():
        assert f'noisefloor_frames{{outcome="{outcome}"}} {count}' in numbers
    assert {"noisefloor_conserved 1", "noisefloor_worker_up 1"} <= set(numbers)


def test_redis_that_was_away_is_waited_for(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as valkey:
        settings = Settings(redis_url=valkey.url, credentials=credentials())
        with live(aggregator.create(settings, COLLECTION)) as app:
            app.wait_ready()
            send(settings, [frame(KINDS[0], 0, 1)])
            app.wait(lambda: settled(app, 1))
            valkey.kill()
            for path in ("/statistics/clicks/0", "/conservation", "/state"):
                answer = app("GET", path, headers=READ)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            app.wait(lambda: app("GET", "/readyz").status_code == 503)
            numbers = app("GET", "/metrics", headers=READ).text
            assert {"noisefloor_ready 0", "noisefloor_store_reachable 0"} <= {
                *numbers.splitlines()
            }
            assert "noisefloor_worker_up" in numbers
            for name in ("frames{", "frames_missing", "conserved", "stream_", "promises_unkept"):
                assert f"noisefloor_{name}" not in numbers  # nobody knows
            valkey.start()
            app.wait_ready()
            send(settings, [frame(KINDS[0], 0, 1), frame(KINDS[0], 0, 2)])
            app.wait(lambda: settled(app, 3))
            assert app("GET", "/conservation", headers=READ).json()["counted"] == 2


@pytest.mark.parametrize("durability", list(Durability))
def test_a_redis_that_lost_all_is_taken_up_again_only_where_nothing_else_was_promised(
    tmp_path: Path, durability: Durability
) -> None:
    with EmbeddedServer(tmp_path, durability) as valkey:
        settings = Settings(
            redis_url=valkey.url, durability=durability.value, credentials=credentials()
        )
        with live(aggregator.create(settings, COLLECTION)) as app:
            app.wait_ready()
            with Redis.from_url(valkey.url) as client:
                client.flushall()
            app.wait(lambda: "No worker counts." in app("GET", "/readyz").json()["lacks"])
            if durability is Durability.MEMORY:
                app.wait_ready()


class Adding:
    """A training whose model is the sum of what was reported, for two rounds."""

    rounds = 2

    def kind(self, number: int) -> Kind:
        return grid_kind("grid", -(1 << 31), 1 << 31)

    def start(self) -> Broadcast:
        return Broadcast(AdModel(0.0, np.zeros(1, np.float32), np.zeros((1, 1), np.float32)))

    def update(
        self, number: int, sent: Broadcast, tally: NDArray[np.int64], rows: int
    ) -> Broadcast:
        offsets = sent.model.offsets + tally.astype(np.float32)
        return Broadcast(AdModel(0.0, offsets, sent.model.factors))


def test_a_closed_round_becomes_the_model_that_the_ad_server_hands_out(settings: Settings) -> None:
    task = AdTask(Adding())  # type: ignore[arg-type]
    counting = aggregator.create(settings, replace(COLLECTION, task=task))
    with live(counting) as app, live(ad_server.create(settings, COLLECTION)) as serving:
        app.wait_ready()

        def model() -> tuple[int, list[float]]:
            answer = serving("GET", "/model")
            if answer.status_code != 200:
                return -1, []
            number, sent = read_broadcast(answer.content)
            return number, sent.model.offsets.tolist()

        serving.wait(lambda: model() == (0, [0.0]))
        for number, (value, total) in enumerate([(5, 5.0), (-7, -2.0)]):
            report = {"epoch": number, "report": value}
            assert serving("POST", "/reports/grid", json=report).status_code == 202
            app.wait(lambda number=number: settled(app, number + 1))  # type: ignore[misc]
            for _ in range(2):  # the second time changes nothing
                app("POST", f"/epochs/grid/{number}/close", headers=ADMIN)
            expected = (number + 1, [total])
            serving.wait(lambda expected=expected: model() == expected)  # type: ignore[misc]


def test_a_retired_epoch_is_gone_and_stays_closed(app: Live, settings: Settings) -> None:
    send(settings, [frame(KINDS[0], 0, 1)])
    app.wait(lambda: settled(app, 1))
    path = "/epochs/clicks/0/retire"
    assert app("POST", path, headers=READ).status_code == 403
    assert app("POST", path, headers=ADMIN).status_code == 409
    assert app("POST", "/epochs/none/0/retire", headers=ADMIN).status_code == 404
    app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    assert app("GET", "/statistics/clicks/0", headers=READ).status_code == 200
    for _ in range(2):
        given = app("POST", path, headers=ADMIN)
        assert (given.status_code, given.json()["is_closed"], given.json()["rows"]) == (
            200,
            True,
            0,
        )
    assert app("GET", "/statistics/clicks/0", headers=READ).status_code == 404
    send(settings, [frame(KINDS[0], 0, 1), frame(KINDS[0], 0, 2)])
    app.wait(lambda: settled(app, 3))
    assert app("GET", "/conservation", headers=READ).json()["late"] == 2
    assert app("GET", "/statistics/clicks/0", headers=READ).status_code == 404


def test_numbers_tell_how_far_the_counting_is_behind(app: Live) -> None:
    lines = app("GET", "/metrics", headers=READ).text.splitlines()
    for place in range(2):
        for name in ("undelivered", "unacknowledged"):
            assert f'noisefloor_stream_{name}{{partition="{place}"}} 0' in lines
        assert f'noisefloor_stream_oldest_held_seconds{{partition="{place}"}} 0.0' in lines
        assert f'noisefloor_stream_unread_seconds{{partition="{place}"}} 0.0' in lines
        assert f'noisefloor_stream_stalled{{partition="{place}"}} 0' in lines


def test_of_a_partition_that_cannot_be_read_there_are_no_numbers(
    app: Live, settings: Settings
) -> None:
    layout = Layout(COLLECTION.namespace, settings.partitions)
    server = Server(settings.redis_url)
    server.call("SET", layout.keys(1).frames, "something else")
    server.close()
    app.wait(lambda: app("GET", "/readyz").status_code == 503)
    given = "The stream of partition 1 cannot be read."
    app.wait(lambda: given in app("GET", "/readyz").json()["lacks"])
    numbers = app("GET", "/metrics", headers=READ).text
    assert 'noisefloor_stream_undelivered{partition="0"} 0\n' in numbers
    assert 'partition="1"' not in numbers
    assert "noisefloor_conserved" not in numbers


def test_frames_that_no_worker_settles_make_the_aggregator_unready(
    app: Live, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "STALLED_S", 0.3)
    server = Server(settings.redis_url)
    stream = Layout(COLLECTION.namespace, settings.partitions).keys(0).frames
    server.call("XGROUP", "SETID", stream, "aggregators", "0-9")  # the next nine are passed over
    server.call("XADD", stream, "0-*", "f", b"")
    server.close()
    app.wait(lambda: app("GET", "/readyz").status_code == 503)
    given = app("GET", "/readyz").json()["lacks"]
    assert given == ["Frames wait and none was settled for 0.3 s in partition 0."]
    assert (
        'noisefloor_stream_stalled{partition="0"} 1\n' in app("GET", "/metrics", headers=READ).text
    )


def test_alarms_are_raised_for_frames_that_were_promised_and_do_not_count(
    app: Live, settings: Settings
) -> None:
    def given() -> tuple[list[str], set[str]]:
        account = app("GET", "/conservation", headers=READ).json()
        numbers = app("GET", "/metrics", headers=READ).text
        raised = set(re.findall(r'noisefloor_alarm\{reason="(\w+)"\} 1', numbers))
        return account["alarms"], raised

    assert given() == ([], set())
    assert app("POST", "/epochs/clicks/0/close", headers=ADMIN).status_code == 200
    send(settings, [frame(KINDS[0], 0, 2), b"poison"])  # without admission
    app.wait(lambda: settled(app, 2))
    texts, raised = given()
    assert raised == {"late", "dead_letters"}
    assert texts[0] == "1 frames were answered with 202 and do not count: their epoch was closed."
    assert len(texts) == 2


def test_retirement_is_followed_by_a_rewrite_of_the_log(app: Live, settings: Settings) -> None:
    server = Server(settings.redis_url)
    before = int(server_info(server, "persistence")["aof_rewrites"])
    app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    assert app("POST", "/epochs/clicks/0/retire", headers=ADMIN).status_code == 200
    app.wait(lambda: int(server_info(server, "persistence")["aof_rewrites"]) == before + 1)
    app.wait(lambda: "noisefloor_log_rewrites_due 0" in app("GET", "/metrics", headers=READ).text)
    server.close()


def test_closing_that_cannot_finish_is_503_and_is_repeated(
    app: Live, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EpochStore.close, "__kwdefaults__", {"patience_s": 0.0})
    server, layout = Server(settings.redis_url), Layout(COLLECTION.namespace, settings.partitions)
    data = frame(KINDS[0], 0, 1)
    place = layout.partition_of(data, read_batch_id(data, COLLECTION.kinds))
    group = ("GROUP", GROUP, "asleep", "COUNT", 1, "STREAMS", layout.keys(place).frames, ">")
    # Somebody else holds the frame, and does not settle it for now.
    server.atomically(
        [
            ("XADD", layout.keys(place).frames, "0-*", "f", data),
            ("XREADGROUP", *group),
        ]
    )
    closing = app("POST", "/epochs/clicks/0/close", headers=ADMIN)
    assert (closing.status_code, closing.headers["retry-after"]) == (503, "1")
    assert app("GET", "/epochs/clicks/0", headers=READ).json()["is_closed"] is False
    store = EpochStore(server, layout, COLLECTION.kinds.values())
    assert Worker(store, abandoned_s=0).sweep() == 1
    assert app("POST", "/epochs/clicks/0/close", headers=ADMIN).status_code == 200
    assert app("GET", "/statistics/clicks/0", headers=READ).json()["rows"] == 2
    server.close()
