"""Checkpoints of a release: whole, of their owner, gone on from, and charged once."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from noisefloor.accounting import Amount, LedgerTerms
from noisefloor.errors import BadSnapshot, PublicationFailed
from noisefloor.privacy import Neighbours, TrustModel
from noisefloor.publication import read_tensors
from noisefloor.publication.methods import Parameter
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import checkpoint_files
from noisefloor.roles.artefact import Artefact
from noisefloor.roles.checkpoint_files import FileCheckpoint
from noisefloor.roles.file_publisher import FilePublisher
from noisefloor.roles.model_publisher import ReleaseRequest
from text_layer_cases import RECORDS, SIZE, a_cost, tiny_machine
from tiny_backbones import write_tiny_bert

TERMS = LedgerTerms.of(
    8.0, 1e-4, neighbours=Neighbours.RECORD_ADD_REMOVE, model=TrustModel.CENTRAL
)
Progress = Callable[[str, int, int], None]


@pytest.fixture(autouse=True, scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("models")
    with tiny_machine(folder):
        yield folder


def a_store(folder: Path) -> FilePublisher:
    made = FilePublisher.create(folder)
    made.set_budget("reviews", TERMS)
    return FilePublisher(folder, checkpoint_every_s=0.0)


def a_request(trains: str, **more: Parameter) -> ReleaseRequest:
    parameters = {**SIZE, "trains": trains, **more}
    return ReleaseRequest("r-1", "reviews", "text-layers", a_cost(), parameters)


def stopped_at(step: int, error: type[BaseException] = KeyboardInterrupt) -> Progress:
    """Return a progress that ends the process, as it were, once a step of the training is done."""

    def progress(what: str, done: int, of: int) -> None:
        assert 0 <= done <= of
        if (what, done) == ("training", step):
            raise error

    return progress


def publish(
    store: FilePublisher,
    request: ReleaseRequest,
    progress: Progress = lambda *_: None,
    seed: int = 1,
    tell: Callable[[str], None] = lambda line: None,
) -> Artefact:
    with new_run():
        source = SeededSource(seed, "release")
        return store.publish(request, RECORDS, source, progress=progress, tell=tell)


def interrupted(store: FilePublisher, request: ReleaseRequest, step: int = 4) -> Path:
    with pytest.raises(KeyboardInterrupt):
        publish(store, request, stopped_at(step))
    return store.releases("reviews").checkpoint("r-1")


@pytest.mark.parametrize("trains", ["ffa-lora", "combined-rgp", "head-then-adapters"])
def test_a_training_that_was_killed_goes_on_with_the_same_bytes(
    trains: str, tmp_path: Path
) -> None:
    request, store = a_request(trains), a_store(tmp_path / "store")
    path = interrupted(store, request)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.artefact("reviews", "r-1") is None
    seen: list[tuple[str, int]] = []
    made = publish(store, request, lambda what, done, _: seen.append((what, done)))
    assert [done for what, done in seen if what == "training"] == [5, 6]
    assert not any(what == "training the head" for what, _ in seen)
    assert store.ledger("reviews").spent("reviews") == Amount(2_000_000, 10**13)
    assert len(store.ledger("reviews").entries("reviews")) == 1
    whole = publish(a_store(tmp_path / "other"), request)
    assert made.content == whole.content
    assert [one.name for one in path.parent.iterdir() if "checkpoint" in one.name] == []


def test_a_checkpoint_holds_released_numbers_and_frozen_factors_and_no_randomness(
    tmp_path: Path,
) -> None:
    store = a_store(tmp_path)
    path = interrupted(store, a_request("ffa-lora"))
    content = FileCheckpoint(path).load()
    assert content is not None
    names = set(read_tensors(content))
    weights = {name.removeprefix("weights/") for name in names if name.startswith("weights/")}
    frozen = {name for name in names if name.startswith("frozen/")}
    vectors = {name for name in names if name.startswith("vectors/")}
    assert {name.rpartition(".left.")[0] for name in weights} - {""} == {
        name.removeprefix("frozen/") for name in frozen
    }
    assert {"vectors/start", "vectors/average"} < vectors
    assert names == {"about", *frozen, *vectors, *(f"weights/{name}" for name in weights)}
    # Another source: what is left has other noise, and the right factors are those of before.
    made = publish(store, a_request("ffa-lora"), seed=2)
    tensors, kept = read_tensors(made.content), read_tensors(content)
    for name in frozen:
        place = name.removeprefix("frozen/layers.0.")
        assert (tensors[f"adapters.3.{place}.right"] == kept[name]).all()


def test_another_backbone_is_refused_and_the_right_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, store = a_request("lora"), a_store(tmp_path / "store")
    path = interrupted(store, request)
    with monkeypatch.context() as patch:
        patch.setenv("NOISEFLOOR_BACKBONE", str(write_tiny_bert(tmp_path / "other", seed=9)))
        with pytest.raises(BadSnapshot, match=r"checkpoint: is a checkpoint of another plan or"):
            publish(store, request)
    assert store.artefact("reviews", "r-1") is None and path.is_file()
    assert publish(store, request).content


def test_a_damaged_checkpoint_is_refused_until_it_is_removed(tmp_path: Path) -> None:
    request, store = a_request("lora"), a_store(tmp_path)
    path = interrupted(store, request)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BadSnapshot, match="is damaged; remove it to start anew"):
        publish(store, request)
    path.unlink()
    assert publish(store, request).content
    assert len(store.ledger("reviews").entries("reviews")) == 1


def test_a_training_that_fails_leaves_no_checkpoint(tmp_path: Path) -> None:
    request, store = a_request("lora"), a_store(tmp_path)
    with pytest.raises(PublicationFailed):
        publish(store, request, stopped_at(4, ArithmeticError))
    assert not store.releases("reviews").checkpoint("r-1").exists()


def test_a_checkpoint_that_cannot_be_written_is_reported_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes, flags: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store, lines = a_store(tmp_path), list[str]()
    monkeypatch.setattr(checkpoint_files, "write_synced", full)
    assert publish(store, a_request("lora"), tell=lines.append).content
    (line,) = lines
    assert line.startswith("no checkpoint can be written to") and "No space left" in line


def test_a_checkpoint_is_due_once_the_last_one_is_old_enough(tmp_path: Path) -> None:
    now = [0.0]
    kept = FileCheckpoint(tmp_path / "one", every_s=60.0, clock=lambda: now[0])
    assert kept.load() is None and not kept.is_due()
    now[0] = 60.0
    assert kept.is_due()
    kept.save(b"first")
    kept.save(b"second")
    assert not kept.is_due() and kept.load() == b"second"
    kept.remove()
    kept.remove()
    assert kept.load() is None
