"""A training task in memory and at services: the same contents, summaries and answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import task_cases
from live_apps import TOKENS, credentials
from noisefloor.errors import ServicesRefused
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.tasks import task_registry
from noisefloor.tasks.training_task import TrainingTask
from noisefloor.wire import address_frame
from noisefloor_services import ad_server, aggregator
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.hosting.servers import InProcessHost
from noisefloor_sim.deploy.service_client import ServiceAddresses
from served import served
from task_cases import Threshold, Totals, crowd, queries, values


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteHost]:
    listed = (*task_registry.TASK_FAMILIES, *task_cases.FAMILIES)
    monkeypatch.setattr(task_registry, "TASK_FAMILIES", listed)
    with EmbeddedServer(tmp_path / "store") as store:
        free = {"rate": 1e6, "burst": 10**6, "experiments": True}
        settings = Settings(redis_url=store.url, partitions=2, credentials=credentials(), **free)  # type: ignore[arg-type]
        with (
            served(aggregator.create(settings, example_collection())) as counting,
            served(ad_server.create(settings, example_collection())) as serving,
        ):
            tokens = TOKENS[Role.READ], TOKENS[Role.ADMIN]
            yield RemoteHost(ServiceAddresses(serving, counting, *tokens))


def frames(task: TrainingTask, number: int) -> list[bytes]:
    if isinstance(task, Totals):
        return [values(number, place, place, number) for place in (1, 2, 2)]
    return [crowd(number, place, (40 + place, 1), (place, 0)) for place in (3, 1, 2, 1)]


@pytest.mark.parametrize("task", [Totals(), Threshold()], ids=["totals", "threshold"])
def test_a_task_is_trained_alike_on_both_buses(services: RemoteHost, task: TrainingTask) -> None:
    collection = CollectionConfig(example_collection(4).catalogue, task=task, minimum_batch=1)
    worlds = [hosting.open(collection) for hosting in (InProcessHost(), services)]
    here, there = (world.learner(task) for world in worlds)
    for number in range(task.rounds):
        assert there.content == here.content
        for data in frames(task, number):
            here.apply(data)
            there.apply(address_frame(data, collection.kinds, worlds[1].collection))
        for learner in (here, there):
            learner.close(number)
        assert there.summary(number) == here.summary(number)
    assert there.content == here.content
    if task.query_kind is not None:
        asked = queries(40, 41, 42, 0)
        assert there.answers(asked).tolist() == here.answers(asked).tolist()
        assert here.answers(asked).tolist() == [False, True, True, False]
    with pytest.raises(ServicesRefused):
        worlds[1].learner(Totals("other"))
    for world in worlds:
        world.close()
