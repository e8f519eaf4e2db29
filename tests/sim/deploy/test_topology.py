"""All services as processes: up, counted, seen, down, and what is told when something is amiss."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import publishing_runs
from full_disks import full_disk
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_sim.cli import commands
from noisefloor_sim.deploy import pids, starting
from noisefloor_sim.deploy import state as states
from noisefloor_sim.deploy.deployment import Deployment, running
from noisefloor_sim.deploy.errors import (
    BadState,
    FolderBusy,
    NotRunning,
    ServicesMissing,
    StaleState,
    StartFailed,
)
from noisefloor_sim.deploy.paths import DeploymentPaths
from noisefloor_sim.deploy.process import Process, describe_exit, launch
from noisefloor_sim.deploy.redis_address import RedisAddress
from noisefloor_sim.deploy.repairing import repair
from noisefloor_sim.deploy.starting import start
from noisefloor_sim.deploy.state import DeploymentState
from noisefloor_sim.deploy.status import read
from own_tables import write_visits

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "p" * 40


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children find the packages, and leave their settings to the test."""
    roots = [str(ROOT / one) for one in ("platform", "simulator", "services")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(roots))
    monkeypatch.delenv("NOISEFLOOR_REDIS_URL", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return where a topology may run; whatever still does in the end is stopped."""
    made = tmp_path / "topology"
    yield made
    try:
        running(made).stop()
    except NoisefloorError:
        return


def run(*words: str, folder: Path) -> tuple[int, str]:
    """Run a command in this process, and return its exit code and what it printed."""
    result = CliRunner().invoke(commands.app, [*words, "--folder", str(folder)])
    if isinstance(result.exception, NoisefloorError):
        return 1, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def status(folder: Path) -> tuple[int, dict[str, Any]]:
    code, out = run("status", "--json", folder=folder)
    return code, json.loads(out)


def report(topology: Deployment) -> int:
    connection = HTTPConnection(topology.url("ad-server").removeprefix("http://"), timeout=10)
    body = json.dumps({"epoch": 0, "index": 3})
    connection.request("POST", "/requests", body, {"Content-Type": "application/json"})
    answer = connection.getresponse().status
    connection.close()
    return answer


def wait(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for ten seconds at most."""
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def all_pids(topology: Deployment) -> list[tuple[int, str]]:
    listed = topology.processes.values()
    servers = [(one.server_pid, one.server_born) for one in listed if one.server_pid]
    return [*((one.pid, one.born) for one in listed), *servers]


def argument_texts(topology: Deployment) -> str:
    files = [Path("/proc") / str(pid) / "cmdline" for pid, _ in all_pids(topology)]
    return " ".join(path.read_text() for path in files if path.exists())


@pytest.mark.slow
def test_reports_are_counted_and_are_there_after_the_next_start(
    folder: Path, tmp_path: Path
) -> None:
    code, out = run("up", "--data-set", f"films={write_visits(tmp_path)}", folder=folder)
    assert code == 0, out
    topology = running(folder)
    tokens = topology.paths.tokens.read_text()
    passwords = (topology.paths.data("stream-store") / "passwords").read_text()
    secrets = [line.split()[-1] for text in (tokens, passwords) for line in text.splitlines()]
    key = topology.paths.signing_key.read_text()
    secrets.append(key.split()[1])
    for text in (out, topology.paths.state.read_text(), argument_texts(topology)):
        assert not any(secret in text for secret in secrets)
    for path in (topology.paths.tokens, topology.paths.signing_key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.split()[1] not in Path(f"{topology.paths.signing_key}.pub").read_text()
    assert str(topology.paths.tokens) in out
    example = next(line for line in out.splitlines() if "/requests" in line)
    assert subprocess.run(  # noqa: S602  it is printed for a shell
        example, shell=True, capture_output=True, check=True
    ).stdout

    assert report(topology) == 200
    wait(lambda: topology.waiting() == 0)
    code, fields = status(folder)
    assert (code, fields["is_ready"], fields["is_conserved"]) == (0, True, True)
    assert fields["verdict"] == "READY, CONSERVED."
    assert (fields["conservation"]["accepted"], fields["conservation"]["counted"]) == (2, 2)
    assert (fields["durability"]["setting"], fields["durability"]["unkept"]) == ("disk", [])
    assert fields["durability"]["promise"].startswith("A report that was acknowledged is on disk")
    assert [one["data_set"] for one in fields["ledger"]] == ["films"]
    assert (fields["ledger"][0]["spent_epsilon"], fields["ledger"][0]["left_epsilon"]) == (0, 10)
    assert {one["waiting"] for one in fields["processes"]} == {0, None}
    assert all(one["memory_bytes"] > 2**20 for one in fields["processes"])
    code, shown = run("status", folder=folder)
    assert (code, "2 counted" in shown, "READY, CONSERVED." in shown) == (0, True, True)

    published_by_command(folder, tmp_path)
    code, refused = run("up", folder=folder)
    assert code == 1
    assert "run in" in refused
    assert "noisefloor down" in refused

    code, out = run("down", folder=folder)
    assert code == 0, out
    assert "everything that was accepted is counted" in out
    assert not any(pids.is_running(*one) for one in all_pids(topology))
    assert run("status", folder=folder)[0] == 2
    assert run("down", folder=folder)[0] == 2
    with pytest.raises(NotRunning, match="noisefloor up"):
        running(folder)

    again = start(folder)
    assert again.paths.tokens.read_text() == tokens
    assert again.paths.signing_key.read_text() == key
    assert (
        not again.paths.log("create-ledger").stat().st_mtime
        > again.processes["stream-store"].since
    )
    assert status(folder)[1]["conservation"]["counted"] == 2
    killed_one_by_one(again, folder)


def published_by_command(folder: Path, out: Path) -> None:
    """Publish from a data set of the operator with the tokens and the key of the folder."""
    at = ("--services", str(folder))
    counts = ("--method", "histogram", "--set", "columns=country", "--epsilon", "0.25")
    made = publishing_runs.run("publish", "films", *counts, "--id", "f-1", *at)
    assert made.code == 0, made.error
    assert publishing_runs.run("fetch", "f-1", "--out", str(out), *at).code == 0
    assert "films: every link holds" in publishing_runs.run("ledger", "verify", *at).out


def killed_one_by_one(topology: Deployment, folder: Path) -> None:
    """Kill the aggregator and a store's own process; status, repair and down report it."""
    for name in ("aggregator", "stream-store"):
        os.kill(topology.processes[name].pid, signal.SIGKILL)
    wait(lambda: topology.gone == ("stream-store", "aggregator"))
    code, fields = status(folder)
    seen = {one["name"]: one for one in fields["processes"]}
    assert (code, fields["is_ready"], fields["conservation"]) == (1, False, None)
    assert (seen["aggregator"]["state"], seen["aggregator"]["why"]) == (
        "gone",
        "killed by signal 9",
    )
    assert seen["stream-store"]["why"] == "killed by signal 9; its server still runs"
    assert seen["ad-server"]["state"] == "ready"
    repaired = repaired_by_command(topology, folder)
    os.kill(repaired.processes["aggregator"].pid, signal.SIGKILL)
    wait(lambda: repaired.gone == ("aggregator",))
    code, out = run("down", folder=folder)
    assert code == 1
    assert "aggregator: was gone before (killed by signal 9)" in out
    assert "ad-server: stopped\n" in out
    assert not any(pids.is_running(*one) for one in (*all_pids(topology), *all_pids(repaired)))


def repaired_by_command(topology: Deployment, folder: Path) -> Deployment:
    """Start the two again: on their ports, with the data, and nobody else is touched."""
    code, out = run("up", "--repair", folder=folder)
    assert code == 0, out
    lines = out.splitlines()
    assert [line.split("; ")[0] for line in lines] == [
        "stream-store: killed by signal 9",
        "aggregator: killed by signal 9",
    ]
    repaired = running(folder)
    for name, process in repaired.processes.items():
        before = topology.processes[name]
        assert process.port == before.port
        assert (process.pid == before.pid) == (name not in ("stream-store", "aggregator"))
    assert report(repaired) == 200
    wait(lambda: status(folder)[1]["verdict"] == "READY, CONSERVED.")
    wait(lambda: status(folder)[1]["conservation"]["counted"] == 3)
    assert run("up", "--repair", folder=folder) == (0, "nothing to repair: every process runs\n")
    return repaired


def test_a_repair_needs_something_that_runs_and_the_server_that_is_used(folder: Path) -> None:
    assert run("up", "--repair", folder=folder) == (2, "")
    assert run("up", "--repair", "--foreground", folder=folder)[0] == 1
    with pytest.raises(NotRunning):
        repair(folder)
    lives = a_process("ad-server", folder, "sleep", "60")
    dead = a_process("aggregator", folder, "true")
    wait(lambda: not dead.is_running)
    state = DeploymentState("redis://127.0.0.1:1/0", "disk", processes=(lives, dead))
    states.write(DeploymentPaths.of(folder), state)
    for wrong in (None, "redis://127.0.0.1:2/0"):
        with pytest.raises(BadParameter, match="redis"):
            repair(folder, redis_url=wrong)
    states.write(DeploymentPaths.of(folder), replace(state, processes=(lives,)))
    assert repair(folder)[1] == ()
    assert lives.is_running


@pytest.mark.slow
def test_a_server_of_ones_own_in_the_foreground(folder: Path, tmp_path: Path) -> None:
    settings = {"requirepass": PASSWORD}
    login = ("default", PASSWORD)
    with EmbeddedServer(tmp_path / "redis", settings=settings, login=login) as redis:
        with pytest.raises(BadParameter, match="it wants a password") as caught:
            start(folder, redis_url=redis.url)
        with pytest.raises(BadParameter, match="it refuses the user or the password"):
            start(folder, redis_url=redis.url_for("default", "wrong"))
        assert not folder.exists()
        command = [sys.executable, "-m", "noisefloor_sim.cli", "up", "--foreground"]
        process = subprocess.Popen(
            [*command, "--folder", str(folder)],
            env=os.environ | {"NOISEFLOOR_REDIS_URL": redis.url_for(*login)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            wait(lambda: "to stop" in process.stdout.readline())  # type: ignore[union-attr]
            topology = running(folder)
            assert topology.state.redis == f"redis://127.0.0.1:{redis.port}/0"
            assert PASSWORD not in topology.paths.state.read_text()
            assert PASSWORD not in argument_texts(topology)
            assert report(topology) == 200
            code, seen = status(folder)
            assert (code, seen["durability"]["unkept"]) == (0, [])
            assert len(seen["processes"]) == 3
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()
        assert not any(pids.is_running(*one) for one in all_pids(topology))
        assert not topology.paths.state.exists()
    assert PASSWORD not in str(caught.value)


@pytest.mark.slow
def test_a_full_disk_ends_the_start_before_anything_is_started(tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk") as disk:
        with pytest.raises(BadParameter, match="No space left on device"):
            start(disk / "noisefloor")
        assert not list(disk.glob("*/run/*"))


def test_a_process_that_does_not_come_up_is_named_and_nothing_is_left(folder: Path) -> None:
    with pytest.raises(StartFailed, match="NOISEFLOOR_RATE has to be a number") as caught:
        start(folder, settings={"rate": "fast"})
    assert caught.value.name in ("stream-store", "ledger-store")
    paths = DeploymentPaths.of(folder)
    assert not paths.state.exists()
    assert not paths.ledgers.exists()
    for path in (folder / "run").glob("*.pid"):
        assert pids.birth(int(path.read_text())) is None
    with pytest.raises(NotRunning):
        running(folder)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        (f"http://:{PASSWORD}@127.0.0.1", "begin with redis://"),
        (f"redis://:{PASSWORD}@", "name a host"),
        ("unix://", "name a socket"),
        (f"redis://:{PASSWORD}@127.0.0.1:99999", "a port"),
        ("redis://127.0.0.1:6379/films", "by its number"),
        (f"redis://:{PASSWORD}@127.0.0.1:1", "nobody listens there"),
        (f"rediss://:{PASSWORD}@127.0.0.1:1", "nobody listens there"),
        ("unix:///nowhere/at/all", "nobody listens there"),
    ],
)
def test_a_bad_address_is_refused_before_anything_starts(
    folder: Path, url: str, rule: str
) -> None:
    with pytest.raises(BadParameter, match=rule) as caught:
        start(folder, redis_url=url)
    assert PASSWORD not in str(caught.value)
    assert not folder.exists()


def test_other_bad_input_is_refused_before_anything_starts(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="a folder that can be written"):
        start(Path(__file__))
    with pytest.raises(BadParameter, match="disk, memory"):
        start(folder, durability="paper")
    (tmp_path / "text").write_text("no JSON")
    for name in ("text", "missing"):
        with pytest.raises(BadParameter, match="a file of JSON"):
            start(folder, collection=tmp_path / name)
    assert not folder.exists()


def test_missing_libraries_are_named_with_the_cure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "LIBRARIES", ("no_such_library",))
    cure = r"no_such_library, not installed here: pip install 'noisefloor\[services\]'"
    with pytest.raises(ServicesMissing, match=cure):
        start(folder)
    assert not folder.exists()


def test_nobody_starts_or_stops_what_somebody_else_does(folder: Path) -> None:
    paths = DeploymentPaths.of(folder)
    paths.make()
    with paths.locked():
        with pytest.raises(FolderBusy, match="somebody else"):
            start(folder)
        with pytest.raises(FolderBusy, match="somebody else"):
            Deployment(paths, DeploymentState("embedded", "disk")).stop()


def a_process(name: str, folder: Path, *command: str) -> Process:
    paths = DeploymentPaths.of(folder)
    paths.make()
    return launch(name, paths, command, os.environ)


def test_stale_state_is_recognised_and_cleared(folder: Path) -> None:
    paths = DeploymentPaths.of(folder)
    gone = a_process("aggregator", folder, "/bin/sh", "-c", "exit 3")
    wait(lambda: not gone.is_running)
    states.write(paths, DeploymentState("embedded", "disk", 0, (gone,)))
    with pytest.raises(StaleState, match=r"any more \(aggregator ended with exit code 3\)"):
        running(folder)
    code, fields = status(folder)
    assert (code, fields["is_ready"], fields["processes"]) == (2, False, [])
    code, out = run("down", folder=folder)
    assert code == 1
    assert "aggregator: was gone before (ended with exit code 3)" in out
    assert not paths.state.exists()


def test_a_number_that_is_used_again_gets_no_signal(folder: Path) -> None:
    """Somebody else's process that has the number of ours is neither counted nor stopped."""
    other = a_process("other", folder, "sleep", "60")
    ours = replace(other, name="aggregator", born="another boot:1")
    try:
        states.write(DeploymentPaths.of(folder), DeploymentState("embedded", "disk", 0, (ours,)))
        with pytest.raises(StaleState):
            running(folder)
        pids.send(ours.pid, ours.born, signal.SIGKILL)
        assert run("down", folder=folder)[0] == 1
        assert other.is_running
    finally:
        pids.send(other.pid, other.born, signal.SIGKILL)
    wait(lambda: not other.is_running)


def test_a_process_that_does_not_stop_is_killed_and_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noisefloor_sim.deploy.deployment.SERVICE_S", 0.3)
    deaf = a_process("ad-server", folder, "/bin/sh", "-c", "trap '' TERM; echo; sleep 60 & wait")
    wait(lambda: DeploymentPaths.of(folder).log("ad-server").stat().st_size > 0)
    states.write(DeploymentPaths.of(folder), DeploymentState("embedded", "disk", 0, (deaf,)))
    code, out = run("down", folder=folder)
    assert (code, not deaf.is_running) == (1, True)
    assert "ad-server: did not stop in time and was killed" in out


def test_state_that_cannot_be_read_is_no_licence_to_start(folder: Path) -> None:
    paths = DeploymentPaths.of(folder)
    paths.make()
    for text in ("", "[]", "{}", '{"version": 1}', '{"version": 2}', '{"version": 1, "x": 1}'):
        paths.state.write_text(text)
        for act in (running, start):
            with pytest.raises(BadState, match=r"topology\.json"):
                act(folder)


def test_a_child_that_waits_to_be_collected_is_gone() -> None:
    child = subprocess.Popen(["/bin/sh", "-c", "exit 0"])
    wait(lambda: pids.birth(child.pid) is None)
    child.wait()
    assert pids.birth(os.getpid()) == pids.birth(os.getpid()) is not None
    assert pids.memory_bytes(os.getpid()) > 2**20
    assert pids.memory_bytes(child.pid) == 0


def test_how_processes_end_is_said_in_words() -> None:
    assert describe_exit(0) == "ended with exit code 0"
    assert describe_exit(137) == "killed by signal 9"
    assert describe_exit(None) == "gone, nobody knows how"


def test_names_that_are_not_there_are_refused(folder: Path) -> None:
    topology = Deployment(DeploymentPaths.of(folder), DeploymentState("embedded", "disk"))
    with pytest.raises(BadParameter):
        topology.url("aggregator")
    with pytest.raises(BadParameter):
        topology.token("owner")
    with pytest.raises(BadState):
        topology.token("read")
    assert topology.waiting() is None


def test_addresses_are_read_and_shown_without_what_is_secret() -> None:
    address = RedisAddress.read("rediss://ann:a%2Fb@example.org:7000/2")
    assert (address.login, str(address)) == (("ann", "a/b"), "rediss://example.org:7000/2")
    plain = RedisAddress.read("redis://example.org")
    assert (plain.port, plain.database, plain.login) == (6379, "0", ())
    assert str(RedisAddress.read("unix://:x@/run/redis?db=3")) == "unix:///run/redis?db=3"


def test_numbers_are_summed_over_their_labels() -> None:
    text = '# HELP x\nnoisefloor_a{k="x"} 1\nnoisefloor_a{k="y"} 2.5\nnoisefloor_b 4\nother 9\n'
    assert read(text) == {"a": 3.5, "b": 4.0}
