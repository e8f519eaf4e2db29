"""After retirement nothing of a frame is left on disk, or it is said that it is."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from noisefloor.wire.frames import seal
from noisefloor_services.store.durability import Durability, server_info
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import EpochClosing
from noisefloor_services.store.log_rewriting import LogRewriting
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from stream_cases import NOTES, answered, new_store, worked

NAMES = ("counted!", "refused!", "counted?")
PLAIN = {"rdbcompression": "no"}  # what is packed cannot be searched


def note_frame(epoch: int, text: str) -> bytes:
    """Write a frame whose id and whose one row can be searched for."""
    batch = NOTES.encode({"age": [7], "note": [text]})
    return seal(NOTES, epoch, batch, (2 * text).encode())


@pytest.fixture
def embedded(tmp_path: Path, binary: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path, settings=PLAIN, binary=binary) as running:
        yield running


@pytest.fixture
def store(embedded: EmbeddedServer) -> Iterator[EpochStore]:
    server = Server(embedded.url)
    yield new_store(server)
    server.close()


def found(folder: Path) -> list[str]:
    """Return what of the frames stands in any file of the data folder: id, its hex, or row."""
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    words = {name: (name.encode(), (2 * name).encode().hex().encode()) for name in NAMES}
    return [name for name, forms in words.items() if any(form in kept for form in forms)]


def rewriting(store: EpochStore) -> LogRewriting:
    return LogRewriting(store.server, store.layout, every_s=0)


def wait(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not come to pass")


def test_a_batch_id_and_a_row_are_found_nowhere_after_retirement(
    embedded: EmbeddedServer, store: EpochStore
) -> None:
    counted, refused, other = NAMES
    assert answered(embedded.url, store, [note_frame(0, counted)]) == ["taken"]
    worked(store, []).close("notes", 0)
    assert answered(embedded.url, store, [note_frame(0, refused)]) == ["epoch-closed"]
    # Some of another epoch wait in the stream, beside entries that were deleted from it.
    waiting = [note_frame(1, f"waits--{number}") for number in range(3)]
    assert answered(embedded.url, store, [waiting[0], note_frame(1, other), *waiting[1:]])
    Worker(store, batch=2).step()
    worked(store, []).close("notes", 1)
    answered(embedded.url, store, [note_frame(2, "waits--9")])
    for epoch in (0, 1):
        store.retire("notes", epoch)
        rewriting(store).note()  # the service is killed here
    assert found(embedded.folder) == list(NAMES)
    assert rewriting(store).turn()
    wait(lambda: not found(embedded.folder))  # the server removes the old files in its own time
    assert server_info(store.server, "persistence")["aof_rewrites"] == "1"
    assert rewriting(store).turn()  # nothing is due any more
    assert server_info(store.server, "persistence")["aof_rewrites"] == "1"
    embedded.kill()
    embedded.start()
    assert worked(store, []).conservation().missing == 0


def test_a_deleted_entry_beside_one_that_waits_is_not_copied(
    embedded: EmbeddedServer, store: EpochStore
) -> None:
    first, second = note_frame(0, NAMES[0]), note_frame(1, "waits--1")
    assert answered(embedded.url, store, [first]) == ["taken"]
    with pytest.raises(EpochClosing):
        store.close("notes", 0, patience_s=0)
    assert answered(embedded.url, store, [second]) == ["taken"]
    assert Worker(store, batch=1).step() == 1  # the other one waits in the same stream
    store.close("notes", 0)
    store.retire("notes", 0)
    rewriting(store).note()
    assert rewriting(store).turn() and store.waiting() == 1
    wait(lambda: not found(embedded.folder))


def test_an_earlier_rewrite_does_not_count_and_a_failed_one_is_reported(
    embedded: EmbeddedServer, store: EpochStore, caplog: pytest.LogCaptureFixture
) -> None:
    server, acts = store.server, rewriting(store)

    def child() -> int:
        listed = Path(f"/proc/{embedded.pid}/task/{embedded.pid}/children").read_text().split()
        return int(listed[0]) if listed else 0

    server.call("CONFIG", "SET", "rdb-key-save-delay", 10_000_000)
    server.call("BGREWRITEAOF")
    acts.note()
    assert not acts.turn() and not acts.trouble()
    os.kill(child(), signal.SIGKILL)
    wait(lambda: server_info(server, "persistence")["aof_rewrite_in_progress"] == "0")
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(acts.turn()))
    thread.start()
    wait(lambda: child() != 0)
    os.kill(child(), signal.SIGKILL)
    thread.join(20)
    assert done == [False] and "failed to rewrite" in acts.trouble()
    assert next(iter(acts.samples())).value == 1
    server.call("CONFIG", "SET", "rdb-key-save-delay", 0)
    wait(acts.turn)
    assert not acts.trouble()
    assert sum("failed" in record.message for record in caplog.records) == 1


def test_a_server_that_denies_it_is_reported_once(
    embedded: EmbeddedServer, store: EpochStore, caplog: pytest.LogCaptureFixture
) -> None:
    rights = ("on", ">secret", "~*", "+@all", "-bgrewriteaof")
    store.server.call("ACL", "SETUSER", "guest", *rights)
    guest = Server(embedded.url_for("guest", "secret"))
    acts = LogRewriting(guest, store.layout, every_s=0)
    acts.note()
    assert not acts.turn() and not acts.turn()
    assert "denies BGREWRITEAOF" in acts.trouble()
    assert len(caplog.records) == 1
    guest.close()


def test_two_rewrites_keep_their_distance_and_without_a_log_none_is_needed(
    embedded: EmbeddedServer, store: EpochStore, tmp_path: Path
) -> None:
    acts = LogRewriting(store.server, store.layout)
    acts.note()
    assert acts.turn()
    acts.note()
    assert not acts.turn() and not acts.trouble()
    with EmbeddedServer(tmp_path / "memory", Durability.MEMORY) as memory:
        server = Server(memory.url)
        acts = LogRewriting(server, store.layout)
        acts.note()
        assert acts.turn()
        server.close()
