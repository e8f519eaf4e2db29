"""The embedded server is a real one: it keeps what it said, through kills too."""

import os
import stat
from pathlib import Path

import pytest

from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer, ServerNotStarted
from noisefloor_services.store.errors import StoreAway
from noisefloor_services.store.server import Server


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as embedded:
        server, url, first = Server(embedded.url), embedded.url, embedded.pid
        server.atomically([("SET", f"key{number}", number) for number in range(100)])
        embedded.kill()
        assert not embedded.is_running
        with pytest.raises(StoreAway):
            server.call("PING")
        embedded.restart()
        assert (embedded.url, embedded.pid != first) == (url, True)
        assert server.call("DBSIZE") == 100
        embedded.restart()
        assert server.call("GET", "key99") == b"99"


def test_memory_forgets(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, Durability.MEMORY) as embedded:
        server = Server(embedded.url)
        server.call("SET", "key", 1)
        embedded.kill()
        embedded.start()
        assert server.call("DBSIZE") == 0


def test_it_ends_with_its_block_and_listens_here_only(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as embedded:
        server, pid = Server(embedded.url), embedded.pid
        assert server.call("CONFIG", "GET", "bind")[1] == b"127.0.0.1"
        assert stat.S_IMODE((tmp_path / "valkey.conf").stat().st_mode) == 0o600
        with pytest.raises(ServerNotStarted, match="already"):
            embedded.start()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    embedded.stop()  # once more does nothing
    with pytest.raises(ServerNotStarted, match="does not run"):
        embedded.kill()


def test_a_unix_socket_will_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("u")
    with EmbeddedServer(folder, unix_socket=folder / "s") as embedded:
        assert Server(embedded.url).call("PING") == b"PONG"
        assert Server(embedded.url).call("CONFIG", "GET", "port")[1] == b"0"


def test_a_server_that_cannot_start_says_where_to_look(tmp_path: Path) -> None:
    embedded = EmbeddedServer(tmp_path, settings={"no-such-setting": "1"})
    with pytest.raises(ServerNotStarted, match=r"valkey\.log"):
        embedded.start()
    assert not embedded.is_running


def test_a_folder_may_be_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with EmbeddedServer(Path("here")) as server:
        assert Server(server.url).call("PING") == b"PONG"
    assert (tmp_path / "here" / "valkey.log").is_file()
