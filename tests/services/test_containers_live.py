"""The compose file's commands, variables, secrets and health checks run, as processes here.

The tests share one topology, and the last one stops it.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError
from redis.retry import Retry

from compose_rules import read_compose, server_options, size_bytes
from container_runs import Topology, client_binary, topology
from dockerfile_rules import read_stages
from noisefloor.cards import PublicKey
from noisefloor.publication import load_table
from noisefloor_services.security.secret_files import make_secrets
from own_tables import write_visits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = read_compose(ROOT / "docker-compose.yml")
STORES = ("store", "ledger-store")
APIS = ("ad-server", "aggregator", "model-publisher")
RUNNING = (*APIS, "worker")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    image = read_stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
    folder = tmp_path_factory.mktemp("containers")
    with topology(COMPOSE, image, folder) as made:
        make_secrets(folder / "made")
        for one in made.all.values():
            one.mount(folder / "made", {name: made[name].port for name in STORES})
        write_visits(made["model-publisher"].volumes["/srv/data"])
        made.start(*STORES)
        for name in STORES:
            wait_for_store(made, name)
        for name in ("make-signing-key", "create-ledger"):
            made.start(name)
            assert made[name].process.wait(60) == 0, made[name].log.read_text()
        made.start(*RUNNING)
        for name in APIS:
            made[name].wait_healthy(made.packages)
        yield made


def as_monitor(made: Topology, name: str) -> "Redis":
    """Connect as the user that looks after a store's health."""
    password = (made[name].secrets / "monitor").read_text().strip()
    return Redis(
        port=made[name].port,
        username="monitor",
        password=password,
        retry=Retry(NoBackoff(), 0),
    )


def wait_for_store(made: Topology, name: str) -> None:
    """Ask until the store answers, ten seconds at most."""
    with as_monitor(made, name) as client:
        for _ in range(500):
            assert made[name].process.poll() is None, made[name].log.read_text()
            try:
                client.ping()
                return
            except RedisError:
                time.sleep(0.02)
    raise AssertionError(f"{name} does not answer")


def token(made: Topology, name: str, role: str) -> dict[str, str]:
    """Return the header of a service's token."""
    lines = (made[name].secrets / f"{name}.tokens").read_text().splitlines()
    (found,) = [line.split()[2] for line in lines if line.split()[1] == role]
    return {"Authorization": f"Bearer {found}"}


@pytest.mark.parametrize("name", APIS)
def test_a_service_is_healthy_and_ready(running: Topology, name: str) -> None:
    done = running[name].health(running.packages)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for _ in range(500):
        ready = httpx.get(f"{running[name].url}/readyz")
        if ready.status_code == 200:
            return
        time.sleep(0.02)
    raise AssertionError(ready.text)


@pytest.mark.parametrize("name", STORES)
def test_a_store_is_healthy_by_its_own_check(running: Topology, name: str) -> None:
    if client_binary() is None:
        pytest.skip("neither valkey-cli nor redis-cli is installed here")
    assert running[name].health(running.packages).returncode == 0
    password = running[name].secrets / "monitor"
    before = password.read_text()
    password.chmod(0o644)
    password.write_text("x" * 43)
    assert running[name].health(running.packages).returncode != 0
    password.write_text(before)


@pytest.mark.parametrize("name", STORES)
def test_a_store_has_its_options_and_admits_no_stranger(running: Topology, name: str) -> None:
    nobody = Redis(port=running[name].port, retry=Retry(NoBackoff(), 0))
    with nobody, pytest.raises(AuthenticationError):
        nobody.ping()
    with as_monitor(running, name) as client:
        info = client.info()
    assert info["maxmemory"] == size_bytes(server_options(COMPOSE["services"][name])["maxmemory"])
    assert (info["maxmemory_policy"], info["aof_enabled"]) == ("noeviction", 1)
    assert info["server_name"] == "valkey"
    assert f"valkey/valkey:{info['valkey_version']}-alpine" == COMPOSE["services"][name]["image"]
    assert (running[name].data / "appendonlydir").is_dir()


def test_an_impression_goes_all_the_way(running: Topology) -> None:
    sent = httpx.post(f"{running['ad-server'].url}/requests", json={"index": 3})
    assert sent.status_code == 200
    url, header = (
        f"{running['aggregator'].url}/conservation",
        token(running, "aggregator", "read"),
    )
    for _ in range(500):
        account = httpx.get(url, headers=header).json()
        if account["counted"]:
            break
        time.sleep(0.02)
    assert (account["accepted"], account["counted"], account["missing"]) == (1, 1, 0)


def test_the_commands_of_the_page_on_publishing_work(running: Topology) -> None:
    """Publish, fetch, check, ask the ledger, and restore it: as the page says."""
    publisher, name = running["model-publisher"], "model-publisher"
    body = {
        "publication_id": "visits-by-age",
        "data_set": "visits",
        "method": "histogram",
        "cost": {"epsilon": 0.25, "delta": 0, "neighbours": "record-add-remove"},
        "parameters": {"columns": "country,age"},
        "dry_run": False,
    }
    header = token(running, name, "publish")
    made = httpx.post(f"{publisher.url}/publications", json=body, headers=header, timeout=30)
    assert made.status_code == 200, made.text
    file, card = (
        httpx.get(
            f"{publisher.url}/publications/visits-by-age{end}",
            headers=token(running, name, "read"),
        )
        for end in ("", "/card")
    )
    # The public key is what the command printed, as whoever runs this passes it on.
    said = running["make-signing-key"].log.read_text()
    key = PublicKey.parse(said.partition("pub: ")[2])
    assert load_table(file.content, card.content, [key])["counts"].shape == (2, 3)
    header = token(running, name, "ledger")
    spent = httpx.get(f"{publisher.url}/ledger/visits", headers=header).json()
    assert (spent["spent_micro_epsilon"], spent["left_micro_epsilon"]) == (250_000, 9_750_000)
    running.start("restore-ledger")
    restored = running["restore-ledger"]
    assert restored.process.wait(60) == 0, restored.log.read_text()
    assert "nothing was raised" in restored.log.read_text()


def test_each_service_has_tokens_of_its_own(running: Topology) -> None:
    for name in APIS:
        answers = [
            httpx.get(f"{running[name].url}/metrics", headers=token(running, other, "read"))
            for other in APIS
        ]
        assert [one.status_code == 200 for one in answers] == [other == name for other in APIS]


def test_the_worker_runs(running: Topology) -> None:
    assert running["worker"].process.poll() is None
    assert "failed" not in running["worker"].log.read_text()


@pytest.mark.parametrize("name", RUNNING)
def test_a_service_fits_into_its_memory(running: Topology, name: str) -> None:
    status = Path(f"/proc/{running[name].process.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
    assert found
    assert int(found[1]) * 1024 < size_bytes(COMPOSE["services"][name]["mem_limit"])


def test_a_stop_is_orderly_and_is_noticed_and_nothing_was_written(running: Topology) -> None:
    for name in RUNNING:
        assert running[name].end() == 0, running[name].log.read_text()
    for name in APIS:
        assert running[name].health(running.packages).returncode != 0
    for name in (*RUNNING, "create-ledger", "restore-ledger"):
        assert list(running[name].written.iterdir()) == []
        assert list(running[name].data.iterdir()) == []
    for name in STORES:
        assert running[name].end() == 0
        assert list(running[name].written.iterdir()) == []
