"""Where language models lie: fetched and turned once, or a directory of the publisher's own."""

from pathlib import Path

import pytest

from fake_archives import sha256
from noisefloor.errors import BadParameter, DamagedData, FetchFailed, MissingData
from noisefloor.publication.text.language_models import (
    DEFAULT_MODEL,
    OWN_MODEL_VARIABLE,
    language_model_folder,
    model_folders,
)
from noisefloor.tables import DATA_SETS, DataSet
from noisefloor.tables.data_sets import Member

CONTENT = b"weights"


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Return a data set of one file, and count how often it is turned into a directory."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv(OWN_MODEL_VARIABLE, raising=False)
    made = DATA_SETS[DEFAULT_MODEL]
    member = Member("model.gguf", "model.gguf", sha256(CONTENT), len(CONTENT))
    found = type(made)(
        made.name, "t", made.archive, (member,), "MIT", "s", 1, 1, True, "n.", "parameters"
    )
    monkeypatch.setattr(model_folders, "find_data_set", {DEFAULT_MODEL: found}.__getitem__)
    return found


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Put a stand-in in place of what reads GGUF, and return the files that it read."""
    calls: list[Path] = []

    def write(file: Path, folder: Path) -> None:
        calls.append(file)
        assert folder.is_dir()
        (folder / "config.json").write_bytes(file.read_bytes())

    monkeypatch.setattr(model_folders, "write_model_directory", write)
    return calls


def fetch(tmp_path: Path, content: bytes = CONTENT) -> Path:
    folder = tmp_path / "cache" / DEFAULT_MODEL
    folder.mkdir(parents=True)
    (folder / "model.gguf").write_bytes(content)
    return folder


@pytest.mark.usefixtures("known")
def test_a_fetched_file_is_turned_into_a_directory_once(
    tmp_path: Path, turned: list[Path]
) -> None:
    folder = fetch(tmp_path)
    first = language_model_folder(DEFAULT_MODEL)
    assert first == language_model_folder(DEFAULT_MODEL)
    assert turned == [folder / "model.gguf"]
    assert (first / "config.json").read_bytes() == CONTENT
    assert sorted(one.name for one in folder.iterdir()) == ["model.gguf", first.name]


@pytest.mark.usefixtures("known", "turned")
def test_a_model_that_was_not_fetched_is_named_with_the_command() -> None:
    with pytest.raises(MissingData, match="noisefloor data fetch smollm2-135m"):
        language_model_folder(DEFAULT_MODEL)


@pytest.mark.usefixtures("known")
def test_a_file_that_was_not_pinned_is_not_read(tmp_path: Path, turned: list[Path]) -> None:
    fetch(tmp_path, b"other")
    with pytest.raises(DamagedData, match="SHA-256 differs"):
        language_model_folder(DEFAULT_MODEL)
    assert turned == []


@pytest.mark.usefixtures("known", "turned")
def test_a_directory_that_was_changed_is_refused(tmp_path: Path) -> None:
    fetch(tmp_path)
    (language_model_folder(DEFAULT_MODEL) / "config.json").write_bytes(b"changed")
    with pytest.raises(DamagedData, match=r"is not what was written there\. Remove it"):
        language_model_folder(DEFAULT_MODEL)


@pytest.mark.usefixtures("known")
def test_nothing_is_left_of_a_conversion_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: Path, folder: Path) -> None:
        (folder / "config.json").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folders, "write_model_directory", write)
    folder = fetch(tmp_path)
    with pytest.raises(FetchFailed, match="No space left"):
        language_model_folder(DEFAULT_MODEL)
    assert [one.name for one in folder.iterdir()] == ["model.gguf"]


@pytest.mark.usefixtures("known")
def test_who_comes_second_takes_what_the_first_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: Path, folder: Path) -> None:
        (folder / "config.json").write_bytes(CONTENT)
        first = folder.parent / folder.name[1:].rpartition(".")[0]
        first.mkdir()
        (first / "config.json").write_bytes(CONTENT)
        (first / "written.json").write_text(f'{{"config.json": "{sha256(CONTENT)}"}}')

    monkeypatch.setattr(model_folders, "write_model_directory", write)
    folder = fetch(tmp_path)
    found = language_model_folder(DEFAULT_MODEL)
    assert (found / "config.json").read_bytes() == CONTENT
    assert sorted(one.name for one in folder.iterdir()) == ["model.gguf", found.name]


def test_a_directory_of_ones_own_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MODEL_VARIABLE, str(tmp_path))
    assert language_model_folder("own") == tmp_path
    monkeypatch.delenv(OWN_MODEL_VARIABLE)
    for name in ("own", str(tmp_path), ""):
        with pytest.raises(BadParameter, match="language_model='<text>' one of smollm2-135m"):
            language_model_folder(name)
