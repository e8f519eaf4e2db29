"""Ad server, aggregator and worker as processes: frames over HTTP give the sums of the role."""

import json
import signal
import threading
from pathlib import Path

import httpx
import numpy as np

from live_apps import LINES, Process, append, bearer, live, process, settled
from noisefloor.randomness import SecureSource
from noisefloor.roles import Aggregator
from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor.wire.frames import encode_frame, read_batch_id
from noisefloor_services import aggregator
from noisefloor_services.http.bodies import FRAME_TYPE
from noisefloor_services.security.credentials import Role
from noisefloor_services.settings import Settings
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server

FRAME = {"Content-Type": FRAME_TYPE}
READ, ADMIN = bearer(Role.READ), bearer(Role.ADMIN)


def the_topology(valkey: EmbeddedServer, folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    file = folder / "collection.json"
    file.write_bytes(example_collection(20).content)
    given = {"REDIS_URL": valkey.url, "PARTITIONS": "2", "TOKENS": ";".join(LINES)}
    return given, ("--collection", str(file))


def wait_ready(client: httpx.Client, url: str) -> None:
    for _ in range(500):
        if client.get(f"{url}/readyz").status_code == 200:
            return
        threading.Event().wait(0.02)
    raise AssertionError("not ready")


def wait_settled(client: httpx.Client, url: str) -> dict[str, int]:
    for _ in range(1000):
        account: dict[str, int] = client.get(f"{url}/conservation", headers=READ).json()
        if not account["pending"]:
            return account
        threading.Event().wait(0.02)
    raise AssertionError("frames wait for ever")


def test_frames_over_http_come_to_the_sums_of_the_role_and_a_stop_loses_none(
    tmp_path: Path, binary: Path
) -> None:
    kinds = example_collection(20).kinds
    source, role = SecureSource(), Aggregator(kinds.values())
    rows = (np.arange(6000 * 20).reshape(6000, 20) % 7 == 0).astype(np.int64)
    frames = [encode_frame(kinds["clicks"], 0, part, source) for part in np.array_split(rows, 300)]
    taken: list[bytes] = []
    store = EmbeddedServer(tmp_path / "valkey", binary=binary)
    with store as valkey, httpx.Client() as client:
        given, options = the_topology(valkey, tmp_path)
        with process("aggregator", tmp_path, given, *options) as counts:
            with process("ad-server", tmp_path, given, *options) as serves:
                url, reads = serves.url, counts.url
                wait_ready(client, url)
                taken += sent_until_stopped(serves, url, frames)
            assert 0 < len(taken)
            wait_ready(client, reads)
            account = wait_settled(client, reads)
            # A frame may count whose answer was never read; not the other way round.
            assert account["counted"] >= len(taken)
            assert {read_batch_id(data, kinds) for data in taken} <= seen(valkey.url)
            with process("ad-server", tmp_path, given, *options) as serves:
                url = serves.url
                wait_ready(client, url)
                for data in frames:  # all of them again: who cannot know sends the same
                    answer = client.post(f"{url}/frames", content=data, headers=FRAME)
                    assert answer.status_code == 202
                assert wait_settled(client, reads)["counted"] == len(frames)
                assert serves.end() == 0
            client.post(f"{reads}/epochs/clicks/0/close", headers=ADMIN).raise_for_status()
            released = client.get(f"{reads}/statistics/clicks/0", headers=READ).json()
            counts.process.send_signal(signal.SIGTERM)
            assert counts.process.wait(15) == 0
        for data in frames:
            role.apply(data)
        role.close("clicks", 0)
        cells, count = role.release("clicks", 0)
        assert np.array(released["cells"], dtype=np.int64).tobytes() == cells.tobytes()
        assert released["rows"] == count == 6000
        for name in ("ad-server", "aggregator"):
            lines = (tmp_path / f"{name}.log").read_text().splitlines()
            assert all(json.loads(line)["level"] in ("info", "warning") for line in lines), lines
            # A look at the readiness that was under way may end after the stop, and be logged.
            said = [json.loads(line)["message"] for line in lines]
            assert [one for one in said if not one.startswith("readiness:")][-1] == "stopped"


def seen(url: str) -> set[bytes | None]:
    """Return the ids of the batches that were counted."""
    names = [Layout(partitions=2).keys(place).seen("clicks", 0) for place in range(2)]
    server = Server(url)
    found = {bytes(one) for name in names for one in server.call("SMEMBERS", name)}
    server.close()
    return {*found}


def sent_until_stopped(serves: Process, url: str, frames: list[bytes]) -> list[bytes]:
    """Send from four clients at once, stop the service in the middle, return what it took."""
    taken: list[bytes] = []
    under_way = threading.Event()

    def work(part: list[bytes]) -> None:
        with httpx.Client() as client:
            for data in part:
                try:
                    answer = client.post(f"{url}/frames", content=data, headers=FRAME)
                except httpx.TransportError:
                    return  # it is gone, and promised nothing
                assert answer.status_code in (202, 503)
                if answer.status_code == 202:
                    taken.append(data)
                if len(taken) >= 40:
                    under_way.set()

    threads = [threading.Thread(target=work, args=(frames[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    assert under_way.wait(30)
    assert serves.end() == 0
    for thread in threads:
        thread.join(20)
    return taken


def test_a_worker_of_its_own_counts_too(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "valkey") as valkey:
        given, options = the_topology(valkey, tmp_path)
        settings = Settings.read({f"NOISEFLOOR_{key}": value for key, value in given.items()})
        collection = CollectionConfig.read(Path(options[1]))
        with process("worker", tmp_path, given, *options) as works:
            data = encode_frame(
                collection.kinds["clicks"], 0, np.ones((3, 20), dtype=int), SecureSource()
            )
            with live(aggregator.create(settings, collection)) as app:
                app.wait_ready()
                append(settings, collection, [data])
                app.wait(lambda: settled(app, 1))
            append(settings, collection, [data])
            server = Server(valkey.url)
            names = [Layout(partitions=2).keys(place).frames for place in range(2)]
            for _ in range(500):
                if not sum(server.call("XLEN", name) for name in names):
                    break
                threading.Event().wait(0.02)
            else:
                raise AssertionError("the worker does not count")
            server.close()
            assert works.end() == 0
