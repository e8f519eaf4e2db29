"""The same scenario and seed on the memory bus and on services: equal to the last digit."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from live_apps import LINES, TOKENS, process
from noisefloor.errors import NoisefloorError
from noisefloor.randomness import new_run
from noisefloor_services.security.credentials import Role
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.cli import batch_reading, run_commands
from noisefloor_sim.deploy.hosting.remote_servers import RemoteHost
from noisefloor_sim.deploy.hosting.servers import ServerHost
from noisefloor_sim.deploy.service_client import ServiceAddresses
from noisefloor_sim.deploy.starting import start
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.runs.engine import Engine, RunOutcome
from noisefloor_sim.scenario import loads

LOSSY = "network: {loss: 0.2, duplicate: 0.2, reorder: 0.3, retries: 6, retry_after_s: 600}"
CLICKS = f"""
name: clicks
question: Is a report counted once, wherever it is counted?
seed: 5
days: 3
grace_h: 0.2
population: {{users: 3000, cohort: 512}}
{LOSSY}
pipelines:
  clicks: {{form: one-click, counting_share: 0.3}}
"""
ADS = """
name: ads
question: Do services learn what the simulator learns?
seed: 6
days: 2
population: {users: 2000, cohort: 512}
behaviour: {ads: 8}
pipelines:
  ads:
    training: {method: METHOD, rounds: 3, dimension: 3, fallback: false}
  clicks: {}
"""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteHost]:
    """Run an ad server and an aggregator on a real store."""
    folder = tmp_path_factory.mktemp("services")
    with EmbeddedServer(folder / "store") as store:
        variables = {"REDIS_URL": store.url, "PARTITIONS": "2", "TOKENS": ";".join(LINES)}
        variables |= {"RATE": "5000", "BURST": "5000", "EXPERIMENTS": "on"}
        with (
            process("aggregator", folder, variables) as aggregator,
            process("ad-server", folder, variables) as ad_server,
        ):
            for url in (ad_server.url, aggregator.url):
                wait_ready(url)
            yield RemoteHost(
                ServiceAddresses(
                    ad_server.url, aggregator.url, TOKENS[Role.READ], TOKENS[Role.ADMIN]
                )
            )


def wait_ready(url: str) -> None:
    for _ in range(500):
        if httpx.get(f"{url}/readyz").status_code == 200:
            return
    raise AssertionError("not ready")


def outcome(text: str, hosting: ServerHost | None = None) -> RunOutcome:
    with new_run():
        return Engine(loads(text, BLOCKS), PIPELINES, hosting=hosting).run()


def test_clicks_over_a_lossy_network_are_counted_alike(services: RemoteHost) -> None:
    here, there = outcome(CLICKS), outcome(CLICKS, services)
    assert repr(there) == repr(here)
    counted = {metric.name: metric.value for metric in here.world}
    assert counted["frames_duplicate"] > 0
    assert counted["frames_late"] > 0  # the grace is shorter than the retries
    assert counted["frames_dead"] == 0


@pytest.mark.parametrize("method", ["bits", "laplace", "spectral", "means for bits"])
def test_services_learn_the_same_model(services: RemoteHost, method: str) -> None:
    text = ADS.replace("METHOD", method)
    if method == "means for bits":
        text = ADS.replace("METHOD", "bits").replace("fallback: false", "fallback: true")
    here, there = outcome(text), outcome(text, services)
    assert repr(there) == repr(here)


REQUESTS = f"""
name: requests
question: Are requests counted alike, wherever they are counted?
seed: 8
days: 2
grace_h: 0.2
population: {{users: 1000, cohort: 256}}
behaviour: {{ads: 8}}
{LOSSY}
pipelines:
  ads: {{training: {{method: open}}, BLOCK}}
"""


@pytest.mark.parametrize(
    ("block", "kinds"),
    [
        ("delivery: {choice: slate, fresh: impression}", ("ad-slates",)),
        ("auction: {run: true}", ("ad-requests", "bid-requests")),
    ],
)
def test_requests_are_counted_alike(
    services: RemoteHost, block: str, kinds: tuple[str, ...]
) -> None:
    text, found = REQUESTS.replace("BLOCK", block), []
    for hosting in (None, services):
        with new_run():
            engine = Engine(loads(text, BLOCKS), PIPELINES, hosting=hosting)
            try:
                engine.run_days()
                ads = engine.ads
                assert ads is not None
                released = [ads.server.requests(kind, day) for kind in kinds for day in (0, 1)]
                world = repr(engine._world_metrics())
            finally:
                engine.hosted.close()
        found.append(([(tally.tolist(), rows) for tally, rows in released], world))
    assert found[1] == found[0]
    assert all(rows for _, rows in found[0][0])


RUN = """
name: two-buses
question: Does a run write the same files, whatever carries its frames?
seed: 9
days: 2
population: {users: 1500, cohort: 512}
behaviour: {ads: 6}
pipelines: {clicks: {canaries: 1000}}
sweep:
  seeds: 2
  variant: [paper, corrected]
"""


def written(folder: Path, scenario: Path, bus: str, jobs: int) -> tuple[bytes, ...]:
    out = folder / f"run-{jobs}-{len(list(folder.iterdir()))}"
    code = run_commands.run(
        scenario, settings=[], seed=None, out=out, jobs=jobs, force=False, resume=False, bus=bus
    )
    assert code == 0
    return tuple((out / name).read_bytes() for name in ("metrics.csv", "privacy.json"))


@pytest.mark.slow
def test_a_run_writes_the_same_files_on_every_bus(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(RUN)
    here = written(tmp_path, scenario, "memory", jobs=1)
    topology = start(tmp_path / "up", settings={"experiments": "on"})
    try:
        assert written(tmp_path, scenario, f"services:{tmp_path / 'up'}", jobs=2) == here
        token = {"Authorization": f"Bearer {topology.token('read')}"}
        left = httpx.get(f"{topology.url('aggregator')}/collections", headers=token).json()
        assert left == {"collections": []}  # a run leaves nothing behind
        access = batch_reading.AggregatorAccess(tmp_path / "up")
        for as_json in (True, False):
            assert batch_reading.close(access, "clicks", 0, as_json=as_json) == 0
        assert batch_reading.read(access, "clicks", 0, as_json=True, out=None) == 1  # too few
    finally:
        topology.stop()
    with EmbeddedServer(tmp_path / "store") as store:
        assert written(tmp_path, scenario, store.url, jobs=1) == here


@pytest.mark.parametrize("bus", ["carrier-pigeon", "http://127.0.0.1:1", "services:nowhere"])
def test_a_bus_that_is_not_there_is_refused_before_anything_is_written(
    tmp_path: Path, bus: str
) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(RUN)
    with pytest.raises(NoisefloorError):
        written(tmp_path, scenario, bus, jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]


RECORDS = """
name: records
question: Is the same model learnt, wherever it is learnt?
seed: 7
days: 4
population: {users: 1500, cohort: 512}
network: {loss: 0.2, duplicate: 0.2, reorder: 0.3, retries: 6, retry_after_s: 600}
pipelines:
  collection: {method: METHOD, selection: SELECTION, epsilon: 4.0, questions: protected}
"""


@pytest.mark.parametrize(
    ("method", "selection"), [("joint-bayes", "random"), ("joint-svm", "response")]
)
def test_a_model_of_records_is_the_same_to_the_last_support_vector(
    services: RemoteHost, method: str, selection: str
) -> None:
    text = RECORDS.replace("METHOD", method).replace("SELECTION", selection)
    found = []
    for hosting in (None, services):
        with new_run():
            engine = Engine(loads(text, BLOCKS), PIPELINES, hosting=hosting)
            simulated = engine.run()
        pipeline = engine.pipelines["collection"]
        assert isinstance(pipeline, CollectionPipeline)
        assert pipeline.content
        found.append((pipeline.content, repr(simulated)))
    assert found[1] == found[0]
