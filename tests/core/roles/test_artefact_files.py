"""Releases in files: whole or not at all, and the first one stays."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from forked_children import FORKS, in_forked_child
from noisefloor.errors import BadParameter
from noisefloor.roles.artefact_files import FileArtefactStore


def test_the_first_content_stays(tmp_path: Path) -> None:
    store = FileArtefactStore(tmp_path / "releases")
    assert store.published("a") is None and store.ids() == []
    assert store.publish("a", b"first") == b"first"
    assert store.publish("a", b"second") == b"first"
    assert store.published("a") == b"first" and store.ids() == ["a"]
    assert stat.S_IMODE((tmp_path / "releases" / "a.release").stat().st_mode) == 0o600


def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileArtefactStore(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            store.publish("a", b"first")
    assert os.listdir(tmp_path) == []
    assert store.publish("a", b"again") == b"again"


@FORKS
def test_one_process_at_a_time_makes_an_artefact(tmp_path: Path) -> None:
    store = FileArtefactStore(tmp_path)

    def other(name: str) -> bytes:
        with open(tmp_path / f".{name}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return b"free"

    with store.locked("b"):
        pass
    with store.locked("a"):
        assert in_forked_child(lambda: other("a")) == b"BlockingIOError"
        assert in_forked_child(lambda: other("b")) == b"free"
    assert in_forked_child(lambda: other("a")) == b"free"


def test_an_id_is_no_path(tmp_path: Path) -> None:
    store = FileArtefactStore(tmp_path)
    for name in ("../a", "", "A", "a" * 65, "a.b"):
        with pytest.raises(BadParameter):
            store.publish(name, b"")
        with pytest.raises(BadParameter):
            store.published(name)
