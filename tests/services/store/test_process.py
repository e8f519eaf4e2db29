"""The store as a process: users of its own, the same ones next time, and an orderly end."""

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from full_disks import full_disk
from live_apps import Process, process
from noisefloor_services.__main__ import main
from noisefloor_services.security.acl import store_users
from noisefloor_services.settings import BadSetting
from noisefloor_services.store import embedded
from noisefloor_services.store.embedded import (
    PASSWORDS,
    EmbeddedServer,
    ServerNotStarted,
    kept_passwords,
)
from noisefloor_services.store.errors import StoreAway
from noisefloor_services.store.server import Server


def listening(store: Process) -> dict[str, Any]:
    """Wait until the store listens, and return what it says of itself."""
    assert store.url
    lines = [json.loads(line) for line in store.log.read_text().splitlines()]
    return next(line for line in lines if line["message"] == "listening")


def connected(folder: Path, port: int, user: str) -> Server:
    passwords = kept_passwords(folder / PASSWORDS, tuple(one.name for one in store_users()))
    return Server(f"redis://{user}:{passwords[user]}@127.0.0.1:{port}/0")


def test_it_keeps_data_and_passwords_and_admits_only_its_users(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    given = {"DATA_FOLDER": str(folder)}
    with process("store", tmp_path, given) as store:
        said = listening(store)
        assert (said["service"], said["durability"], said["unkept"]) == ("store", "disk", [])
        with pytest.raises(StoreAway):
            Server(f"redis://127.0.0.1:{said['port']}/0").call("PING")
        aggregator = connected(folder, said["port"], "aggregator")
        aggregator.call("HSET", "noisefloor:settings", "partitions", 1)
        passwords = (folder / PASSWORDS).read_text()
        assert stat.S_IMODE((folder / PASSWORDS).stat().st_mode) == 0o600
        assert not any(line.split()[1] in store.log.read_text() for line in passwords.splitlines())
        assert store.end() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(said["server_pid"], 0)
    with process("store", tmp_path, given) as store:
        said = listening(store)
        ad_server = connected(folder, said["port"], "ad-server")
        assert ad_server.call("HMGET", "noisefloor:settings", "partitions") == [b"1"]
        assert (folder / PASSWORDS).read_text() == passwords
        os.kill(said["server_pid"], signal.SIGKILL)
        assert store.process.wait(10) == 2
        assert "The embedded server ended" in store.log.read_text()


def test_it_says_what_it_does_not_keep(tmp_path: Path) -> None:
    given = {"DATA_FOLDER": str(tmp_path / "data"), "DURABILITY": "memory"}
    with process("store", tmp_path, given) as store:
        assert listening(store)["durability"] == "memory"
        assert store.end() == 0


def test_without_a_data_folder_it_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store"], {}) == 2
    assert "NOISEFLOOR_DATA_FOLDER has to be given." in capsys.readouterr().err


def test_a_full_disk_ends_the_start_with_its_cause(tmp_path: Path) -> None:
    with full_disk(tmp_path / "disk") as disk:
        given = {"DATA_FOLDER": str(disk / "data")}
        with process("store", tmp_path, given) as store:
            assert store.process.wait(20) == 2
    said = store.log.read_text().splitlines()
    assert said == ["noisefloor: cannot start: No space left on device."]


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerNotStarted, match=r"come up: Bad directive .* See .*valkey\.log"):
        EmbeddedServer(tmp_path, settings={"no-such-setting": "1"}).start()


def test_passwords_that_others_may_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / PASSWORDS
    first = kept_passwords(path, ("ann", "bob"))
    assert kept_passwords(path, ("ann", "bob")) == first
    grown = kept_passwords(path, ("ann", "bob", "eve"))
    assert {name: grown[name] for name in first} == first
    assert len(set(grown.values())) == 3
    path.chmod(0o640)
    with pytest.raises(BadSetting, match="chmod 600"):
        kept_passwords(path, ("ann",))


def test_two_servers_on_one_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LOCK_S", 0.1)
    with EmbeddedServer(tmp_path) as first:
        with pytest.raises(ServerNotStarted, match="Another server"):
            EmbeddedServer(tmp_path).start()
        first.kill()
        for _ in range(3):  # the lock goes with the server, however it went
            first.start()
            first.kill()
