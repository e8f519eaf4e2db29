"""The compose file and the Dockerfile keep their rules; a planted fault of each kind is found."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

import compose_rules
import dockerfile_rules
from compose_rules import Tree, read_compose
from image_contents import link_packages, pins, requirements
from noisefloor_services.security.secret_files import make_secrets

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = read_compose(ROOT / "docker-compose.yml")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
STAGES = dockerfile_rules.read_stages(DOCKERFILE)
SERVICES = ["ad-server", "aggregator", "model-publisher", "worker"]
SERVICES += ["create-ledger", "restore-ledger", "make-signing-key"]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return set(make_secrets(tmp_path_factory.mktemp("made") / "secrets"))


def compose_faults(compose: Tree, secrets: set[str]) -> list[str]:
    return compose_rules.faults(compose, STAGES[-1].variables, VERSION, secrets)


def test_the_compose_file_keeps_every_rule(secrets: set[str]) -> None:
    assert compose_faults(COMPOSE, secrets) == []
    assert sorted(COMPOSE["services"]) == sorted([*SERVICES, "store", "ledger-store"])


def of(name: str, **changes: object) -> Callable[[Tree], None]:
    """Change keys of a service; None takes one away."""

    def change(compose: Tree) -> None:
        service = compose["services"][name]
        service.update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            del service[key]

    return change


def environment(name: str, **variables: str) -> Callable[[Tree], None]:
    """Change variables of a service."""
    return lambda compose: compose["services"][name]["environment"].update(variables)


def option(name: str, value: str) -> Callable[[Tree], None]:
    """Change an option of a store's server."""

    def change(compose: Tree) -> None:
        command = compose["services"]["ledger-store"]["command"]
        command[command.index(f"--{name}") + 1] = value

    return change


PLANTED: list[tuple[str, Callable[[Tree], None]]] = [
    ("schema: services/worker", of("worker", memory="1g")),
    ("schema: services/worker", of("worker", depends_on={"store": {"condition": "up"}})),
    ("schema: ", lambda compose: compose.update(service={})),
    ("variable: ", of("worker", command=["${NAME}"])),
    ("worker: image: not an exact", of("worker", image="noisefloor:latest")),
    ("worker: image: not an exact", of("worker", image="noisefloor")),
    ("store: image: not an exact", of("store", image="valkey/valkey:9-alpine")),
    ("store: image: not an exact", of("store", image="valkey/valkey:9.1.2@sha256:abc")),
    ("store: image: unknown", of("store", image="redis:8.0.0")),
    ("worker: image: not of version", of("worker", image="noisefloor:9.9.9")),
    ("worker: build: ", of("worker", build=None)),
    ("networks: nowhere is not declared", of("worker", networks=["nowhere"])),
    ("networks: spare is not used", lambda it: it["networks"].update(spare={})),
    ("volumes: lost is not declared", of("store", volumes=["lost:/data"])),
    ("volumes: spare is not used", lambda it: it["volumes"].update(spare={})),
    ("secrets: none is not declared", of("worker", secrets=["none"])),
    ("secrets: spare is not made", lambda it: it["secrets"].update(spare={"file": "./x"})),
    ("secrets: store.acl is made for nothing", lambda it: it["secrets"].pop("store.acl")),
    ("worker: secrets: ", of("worker", secrets=["ad-server.redis-url"])),
    ("worker: secrets: ", of("worker", secrets=["aggregator.redis-url", "aggregator.tokens"])),
    ("worker: read_only: ", of("worker", read_only=None)),
    ("worker: cap_drop: ", of("worker", cap_drop=["NET_RAW"])),
    ("worker: cap_drop: ", of("worker", cap_add=["SYS_ADMIN"])),
    ("worker: security_opt: ", of("worker", security_opt=[])),
    ("worker: privileged: ", of("worker", privileged=True)),
    ("worker: user: ", of("worker", user="0:0")),
    ("worker: user: ", of("worker", user=None)),
    ("worker: tmpfs: ", of("worker", tmpfs=None)),
    ("worker: init: ", of("worker", init=None)),
    ("worker: pids_limit: ", of("worker", pids_limit=-1)),
    ("worker: restart: ", of("worker", restart="no")),
    ("create-ledger: restart: ", of("create-ledger", restart="always")),
    ("create-ledger: restart: ", of("create-ledger", profiles=None)),
    ("worker: stop_grace_period: ", of("worker", stop_grace_period="5s")),
    ("worker: mem_limit: ", of("worker", mem_limit="4g")),
    ("worker: container_name: ", of("worker", container_name="one")),
    ("worker: network_mode: ", of("worker", network_mode="host")),
    ("worker: volumes: ", of("worker", volumes=["/var/run/docker.sock:/s"])),
    ("worker: networks: none", of("worker", networks=None)),
    ("ad-server: ports: ", of("ad-server", ports=["8080:8080"])),
    ("ad-server: ports: ", of("ad-server", ports=["127.0.0.1:8080:9090"])),
    ("ad-server: ports: ", of("ad-server", ports=None)),
    ("aggregator: ports: ", of("aggregator", ports=None)),
    ("model-publisher: ports: ", of("model-publisher", ports=["8082:8080"])),
    ("model-publisher: networks: not reached", of("model-publisher", networks=["ledger"])),
    ("networks: outside is shared", of("aggregator", networks=["streams", "outside"])),
    ("model-publisher: volumes: ", of("model-publisher", volumes=["./data:/srv/data"])),
    ("restore-ledger: restart: ", of("restore-ledger", profiles=None)),
    ("store: ports: ", of("store", ports=["127.0.0.1:6379:6379"])),
    ("store: networks: reached", of("store", networks=["streams", "outside"])),
    ("ad-server: networks: not reached", of("ad-server", networks=["streams"])),
    ("store: networks: reached", lambda it: it["networks"].update(streams={})),
    ("worker: depends_on: nobody", of("worker", depends_on={"nobody": {}})),
    ("worker: depends_on: no store", of("worker", depends_on=None)),
    ("depends_on: store has no health", of("store", healthcheck={"disable": True})),
    (
        "worker: depends_on: store may not",
        of("worker", depends_on={"store": {"condition": "service_started"}}),
    ),
    ("worker: depends_on: store is on no network", of("worker", networks=["ledger"])),
    ("ledger-store: command: --appendfsync", option("appendfsync", "everysec")),
    ("ledger-store: command: --appendonly", option("appendonly", "no")),
    ("ledger-store: command: --maxmemory-policy", option("maxmemory-policy", "allkeys-lru")),
    ("ledger-store: command: --maxmemory is", option("maxmemory", "1g")),
    ("ledger-store: command: --aclfile", option("aclfile", "/data/users.acl")),
    ("ledger-store: command: --dir", option("dir", "/tmp")),  # noqa: S108  to be refused
    ("worker: command: ", of("worker", command=["wroker"])),
    ("worker: command: ", of("worker", command=["worker", "--threads", "2"])),
    ("worker: command: ", of("worker", command=["make-secrets"])),
    (
        "environment: NOISEFLOOR_SIGNING_KEY is refused",
        environment("model-publisher", NOISEFLOOR_SIGNING_KEY="x"),
    ),
    ("worker: healthcheck: ", of("worker", healthcheck=None)),
    ("worker: environment: NOISEFLOOR_PROT", environment("worker", NOISEFLOOR_PROT="1")),
    (
        "worker: environment: NOISEFLOOR_PARTITIONS",
        environment("worker", NOISEFLOOR_PARTITIONS="0"),
    ),
    ("worker: environment: no address", of("worker", environment={})),
    (
        "ad-server, aggregator, worker: have different",
        environment("worker", NOISEFLOOR_PARTITIONS="2"),
    ),
    (
        "model-publisher, create-ledger, restore-ledger: have different",
        environment("create-ledger", NOISEFLOOR_LEDGER="x"),
    ),
]


@pytest.mark.parametrize(("line", "plant"), PLANTED, ids=[f"{one[0]}" for one in PLANTED])
def test_a_fault_of_the_compose_file_is_found(
    line: str, plant: Callable[[Tree], None], secrets: set[str]
) -> None:
    compose = deepcopy(COMPOSE)
    plant(compose)
    assert [one for one in compose_faults(compose, secrets) if line in one]


def test_the_dockerfile_keeps_every_rule() -> None:
    assert dockerfile_rules.faults(DOCKERFILE, IGNORE, ROOT) == []
    assert [stage.name for stage in STAGES] == ["build", "service"]
    for service in COMPOSE["services"].values():
        if "build" in service:
            assert service["build"] == {"context": ".", "target": STAGES[-1].name}
            assert service["user"] == STAGES[-1].last("USER")


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("FROM: not an exact", "python:3.11.16-slim-bookworm\n\n", "python:3.11-slim\n\n"),
        ("FROM: not an exact", "FROM ${PYTHON_IMAGE} AS service", "FROM python AS service"),
        ("FROM: without a name", " AS service", ""),
        ("FROM: one stage", "FROM ${PYTHON_IMAGE} AS service\n", ""),
        ("COPY: README.rst is not there", "README.md", "README.rst"),
        ("COPY: tests is ignored", "COPY services services", "COPY tests tests"),
        ("COPY: builder is no earlier", "--from=build", "--from=builder"),
        ("ADD: not used", "COPY services", "ADD services"),
        ("RUN: a compiler", "RUN groupadd", "RUN apt-get install gcc && groupadd"),
        ("RUN: pip has", "--require-hashes -r locks/services.txt", "-r locks/services.txt"),
        ("RUN: pip has", "--require-hashes -r locks/build.txt", "setuptools"),
        ("RUN: pip has", "--only-binary :all: ", ""),
        ("RUN: pip has", "install --no-cache-dir", "install"),
        ("RUN: pip has", "wheel --no-cache-dir --no-index", "wheel --no-cache-dir"),
        ("RUN: pip has", "--no-index --no-deps /wheel", "--no-index /wheel"),
        ("RUN: pip has", "-r locks/services.txt", "-r locks/services.txt -r locks/dev.txt"),
        ("RUN: pip does not", "-r locks/services.txt", "-r locks/build.txt"),
        ("USER: ", "USER 10001:10001", "USER root"),
        ("USER: ", "USER 10001:10001\n", ""),
        ("USER: ", "EXPOSE", "USER 0:0\nEXPOSE"),
        ("ENV: PYTHONDONT", "PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=random"),
        ("EXPOSE: ", "EXPOSE 8080", "EXPOSE 80"),
        ("HEALTHCHECK: ", 'CMD ["python", "-c",', 'CMD ["curl", "-f",'),
        ("HEALTHCHECK: ", "HEALTHCHECK ", "LABEL "),
        (
            "ENTRYPOINT: ",
            '["python", "-m", "noisefloor_services"]',
            "python -m noisefloor_services",
        ),
    ],
)
def test_a_fault_of_the_dockerfile_is_found(line: str, old: str, new: str) -> None:
    assert old in DOCKERFILE
    found = dockerfile_rules.faults(DOCKERFILE.replace(old, new), IGNORE, ROOT)
    assert [one for one in found if line in one]


def test_the_builder_gets_the_sources_and_nothing_else() -> None:
    kept = ("pyproject.toml", "platform/noisefloor/errors.py", "services/noisefloor_services/lua")
    left = ["secrets/store.acl", ".git/config", ".venv/bin/python", "tests/valkeys.py", "runs/x"]
    left += ["platform/noisefloor/__pycache__/errors.pyc", "services/noisefloor.egg-info/PKG-INFO"]
    assert not [one for one in kept if dockerfile_rules.is_ignored(one, IGNORE)]
    assert not [one for one in left if not dockerfile_rules.is_ignored(one, IGNORE)]
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_all_that_the_image_installs_is_pinned_and_torch_is_not_of_it() -> None:
    installed = requirements("services")
    assert {"fastapi", "uvicorn", "redis", "numpy", "pyarrow"} <= set(installed)
    assert "torch" not in installed
    assert sorted(set(installed) - set(pins())) == []
    assert "setuptools" in pins()  # builds the wheel


def test_the_image_has_what_the_services_import_and_nothing_of_the_tests(tmp_path: Path) -> None:
    folder = link_packages(tmp_path, "services")
    code = "import sys, importlib.util as it; print(*map(bool, map(it.find_spec, sys.argv[1:])))"
    names = ("fastapi", "numpy", "pytest", "httpx", "mypy", "noisefloor_sim")
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *names],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "False", "False", "False", "False"]


def test_docker_compose_itself_reads_the_file() -> None:
    docker = shutil.which("docker")
    if not docker or _run(docker, "compose", "version").returncode:
        pytest.skip("docker compose is not installed here")
    done = _run(docker, "compose", "--file", "docker-compose.yml", "config", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
