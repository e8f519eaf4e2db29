"""Closed rounds are trained on in the background: once, and after any kill."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from redis import Redis

import task_cases
from live_apps import LINES, ROOT, Live, bearer, credentials, live, process
from noisefloor.roles import TrainingCoordinator
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.tasks import task_registry
from noisefloor.tasks.training_task import TrainingTask
from noisefloor_services import aggregator
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.write_path import Producer
from task_cases import Threshold, Totals, crowd, values

READ, ADMIN = bearer(Role.READ), bearer(Role.ADMIN)
NOT_TRAINED = "The last closed round was not trained on yet."
FRAMES = {
    "totals": [values(0, 1, 5, 6), values(0, 2, -1)],
    "threshold": [crowd(0, 1, (30, 0), (70, 1)), crowd(0, 2, (60, 1))],
}


@pytest.fixture
def settings(valkey: EmbeddedServer) -> Settings:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    many = {"rate": 1e6, "burst": 10**6, "minimum_batch": 1}
    return Settings(redis_url=valkey.url, partitions=2, credentials=credentials(), **many)  # type: ignore[arg-type]


def learning(task: TrainingTask) -> CollectionConfig:
    return CollectionConfig(example_collection(4).catalogue, task=task)


def send(settings: Settings, collection: CollectionConfig, frames: list[bytes]) -> None:
    server = Server(settings.redis_url)
    layout = Layout(collection.namespace, settings.partitions)
    Producer(server, layout, collection.kinds).append(frames)
    server.close()


def model(app: Live) -> bytes:
    return app("GET", "/model", headers=READ).content


def counted(app: Live, kind: str, frames: int) -> Callable[[], bool]:
    return lambda: app("GET", f"/epochs/{kind}/0", headers=READ).json()["frames"] == frames


def expected(task: TrainingTask, frames: list[bytes]) -> bytes:
    learner = TrainingCoordinator(task)
    for data in frames:
        learner.apply(data)
    learner.close(0)
    return learner.content


@pytest.mark.parametrize("task", [Totals(), Threshold()], ids=["totals", "threshold"])
def test_services_learn_what_the_role_learns(settings: Settings, task: TrainingTask) -> None:
    collection, kind = learning(task), task.kind(0).name
    frames = FRAMES["totals" if kind == "values" else "threshold"]
    with live(aggregator.create(settings, collection)) as app:
        app.wait_ready()
        assert model(app) == task.first()
        assert "course_step_seconds" not in app("GET", "/metrics", headers=READ).text
        send(settings, collection, frames)
        app.wait(counted(app, kind, 2))
        for _ in range(2):
            assert app("POST", f"/epochs/{kind}/0/close", headers=ADMIN).status_code == 200
        app.wait(lambda: model(app) == expected(task, frames))
        numbers = app("GET", "/metrics", headers=READ).text
        assert "noisefloor_course_round_open 1\n" in numbers
        for number in range(1, task.rounds):
            app("POST", f"/epochs/{kind}/{number}/close", headers=ADMIN)
        app.wait(lambda: task.round_of(model(app)) == task.rounds)
        server = Server(settings.redis_url)
        server.call("HDEL", Layout(collection.namespace).settings, "broadcast")
        server.close()
        numbers = app("GET", "/metrics", headers=READ).text
        assert "course_step_seconds" in numbers
        assert "course_round_open" not in numbers


def test_two_aggregators_learn_the_same_and_none_goes_back(
    settings: Settings, tmp_path: Path
) -> None:
    blocker = tmp_path / "held"
    blocker.touch()
    slow, quick = learning(Totals(str(blocker))), learning(Totals())
    with live(aggregator.create(settings, slow)) as behind:
        behind.wait_ready()
        assert behind("POST", "/epochs/values/0/close", headers=ADMIN).status_code == 200
        with live(aggregator.create(settings, quick)) as ahead:
            send(settings, quick, [values(1, 1, 8)])
            ahead.wait(lambda: Totals().round_of(model(ahead)) == 1)
            ahead.wait(
                lambda: ahead("GET", "/epochs/values/1", headers=READ).json()["frames"] == 1
            )
            ahead("POST", "/epochs/values/1/close", headers=ADMIN)
            ahead.wait(lambda: Totals().round_of(model(ahead)) == 2)
            fitted = model(ahead)
            blocker.unlink()  # now the first one ends a step that was taken long ago
            behind.wait(
                lambda: (
                    "noisefloor_course_round_open 2\n"
                    in behind("GET", "/metrics", headers=READ).text
                )
            )
            assert model(behind) == fitted == task_cases.written(2, total=8)


def test_a_step_that_fails_is_reported_and_repeated(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    with live(aggregator.create(settings, learning(Totals("", str(broken))))) as app:
        app.wait_ready()
        assert app("POST", "/epochs/values/0/close", headers=ADMIN).status_code == 200
        app.wait(lambda: app("GET", "/readyz").json()["lacks"] == [NOT_TRAINED])
        assert model(app) == Totals().first()
        broken.unlink()
        app.wait_ready()
        assert Totals().round_of(model(app)) == 1


def test_a_round_is_not_retired_before_it_is_trained_on(
    settings: Settings, tmp_path: Path
) -> None:
    blocker = tmp_path / "held"
    blocker.touch()
    with live(aggregator.create(settings, learning(Totals(str(blocker))))) as app:
        app.wait_ready()
        app("POST", "/epochs/values/0/close", headers=ADMIN)
        refused = app("POST", "/epochs/values/0/retire", headers=ADMIN)
        assert (refused.status_code, "not trained" in refused.json()["detail"]) == (409, True)
        blocker.unlink()
        app.wait(lambda: app("POST", "/epochs/values/0/retire", headers=ADMIN).status_code == 200)
        assert app("POST", "/epochs/impressions/0/close", headers=ADMIN).status_code == 200
        assert app("POST", "/epochs/impressions/0/retire", headers=ADMIN).status_code == 200


def test_a_store_that_lost_everything_is_begun_anew_where_nothing_else_was_promised(
    settings: Settings, valkey: EmbeddedServer
) -> None:
    forgetful = Settings(
        redis_url=settings.redis_url,
        partitions=2,
        credentials=credentials(),
        durability=Durability.MEMORY.value,
        minimum_batch=1,
    )
    with live(aggregator.create(forgetful, learning(Totals()))) as app:
        app.wait_ready()
        app("POST", "/epochs/values/0/close", headers=ADMIN)
        app.wait(lambda: Totals().round_of(model(app)) == 1)
        with Redis.from_url(valkey.url) as client:
            client.flushall()
        app.wait(lambda: model(app) == Totals().first())
        app.wait_ready()
        assert Totals().round_of(model(app)) == 0


def test_a_kill_between_close_and_step_loses_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (*task_registry.TASK_FAMILIES, *task_cases.FAMILIES)
    monkeypatch.setattr(task_registry, "TASK_FAMILIES", listed)
    blocker, file = tmp_path / "held", tmp_path / "collection.json"
    blocker.touch()
    task, frames = Threshold(str(blocker)), FRAMES["threshold"]
    collection = learning(task)
    file.write_bytes(collection.content)
    given = {"REDIS_URL": settings.redis_url, "PARTITIONS": "2", "TOKENS": ";".join(LINES)}
    given["MINIMUM_BATCH"] = "1"
    options = ("--collection", str(file))
    program = (str(ROOT / "tests" / "task_services.py"),)
    with process("aggregator", tmp_path, given, *options, program=program) as first:
        wait(lambda: httpx.get(f"{first.url}/readyz").status_code == 200)
        send(settings, collection, frames)
        state = f"{first.url}/epochs/crowd/0"
        wait(lambda: httpx.get(state, headers=READ).json()["frames"] == 2)
        assert httpx.post(f"{state}/close", headers=ADMIN).json()["is_closed"]
        first.process.kill()  # its step is blocked, so that it was not taken
    blocker.unlink()
    with process("aggregator", tmp_path, given, *options, program=program) as second:
        wait(lambda: httpx.get(f"{second.url}/readyz").status_code == 200)
        url = f"{second.url}/model"
        wait(lambda: httpx.get(url, headers=READ).content == expected(Threshold(), frames))
        assert second.end() == 0


def wait(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
    raise AssertionError("it did not come to pass")


def test_a_round_below_the_minimum_is_not_trained_on(settings: Settings) -> None:
    task = Totals()
    few = CollectionConfig(example_collection(4).catalogue, task=task, minimum_batch=3)
    role = TrainingCoordinator(task, terms=few.terms)
    rounds = [
        [values(0, 1, 7, 7)],
        [values(1, 1, 7, 7), values(1, 2, 7)],
    ]
    with live(aggregator.create(settings, few)) as app:
        app.wait_ready()
        for number, frames in enumerate(rounds):
            send(settings, few, frames)
            for data in frames:
                role.apply(data)
            role.close(number)
            path = f"/epochs/values/{number}/close"
            app.wait(lambda path=path: app("POST", path, headers=ADMIN).status_code == 200)  # type: ignore[misc]
            app.wait(lambda: model(app) == role.content)
        states = [app("GET", f"/epochs/values/{one}", headers=READ).json() for one in (0, 1)]
        assert [(one["is_readable"], one["rows"]) for one in states] == [(False, 0), (True, 3)]
        refused = app("GET", "/statistics/values/0", headers=READ)
        assert (refused.status_code, refused.json()["error"]) == (409, "batch-too-small")
        assert (task.round_of(model(app)), json.loads(model(app))["total"]) == (2, 21)
