import os
from pathlib import Path

import pytest

from fake_archives import TABLE, data_set, write_wheel
from noisefloor.errors import DamagedData, FetchFailed, MissingData
from noisefloor.tables import cache
from noisefloor.tables.cache import CacheState
from noisefloor.tables.data_sets import DataSet

OTHER = b"a,b\n1,2\n"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Return a data set of two files, with an empty cache."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    contents = {"fake/one.csv": TABLE, "fake/two.csv": OTHER}
    return data_set(write_wheel(tmp_path, contents), contents)


def keep(fake: DataSet, one: bytes = TABLE, two: bytes = OTHER) -> None:
    """Put both files into the cache."""
    cache.write_cached(fake, dict(zip(fake.members, (one, two), strict=True)))


def files(folder: Path) -> list[str]:
    """Return all files below a folder, hidden ones too."""
    return sorted(str(it.relative_to(folder)) for it in folder.rglob("*") if it.is_file())


def test_what_is_kept_is_read_back(fake: DataSet, tmp_path: Path) -> None:
    assert cache.cache_state(fake) is CacheState.MISSING
    keep(fake)
    assert cache.cache_state(fake) is CacheState.CACHED
    assert cache.read_cached(fake, fake.members[1]) == OTHER
    assert files(tmp_path / "cache") == ["fake/one.csv", "fake/two.csv"]


def test_a_missing_data_set_names_the_command_that_fetches_it(fake: DataSet) -> None:
    with pytest.raises(MissingData, match=r"noisefloor data fetch fake$"):
        cache.read_cached(fake, fake.members[0])


def test_half_of_a_data_set_is_missing(fake: DataSet) -> None:
    keep(fake)
    cache.cached_path(fake, fake.members[1]).unlink()
    assert cache.cache_state(fake) is CacheState.MISSING


@pytest.mark.parametrize("damage", [b"", TABLE[:-1], TABLE + b"\n", TABLE.replace(b"5", b"4")])
def test_damage_is_found_on_load_and_the_error_says_what_to_do(
    fake: DataSet, damage: bytes
) -> None:
    keep(fake)
    path = cache.cached_path(fake, fake.members[0])
    path.write_bytes(damage)
    assert cache.cache_state(fake) is CacheState.DAMAGED
    with pytest.raises(DamagedData) as caught:
        cache.read_cached(fake, fake.members[0])
    assert str(path) in str(caught.value)
    assert "noisefloor data fetch fake" in str(caught.value)


def test_a_folder_in_a_files_place_is_damage(fake: DataSet) -> None:
    cache.cached_path(fake, fake.members[0]).mkdir(parents=True)
    with pytest.raises(DamagedData, match="cannot be read"):
        cache.read_cached(fake, fake.members[0])


def test_one_wrong_file_and_none_is_kept(fake: DataSet, tmp_path: Path) -> None:
    with pytest.raises(DamagedData, match=r"fake==1\.0: fake/two\.csv .* not kept"):
        keep(fake, two=b"other")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_what_was_there(
    fake: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    keep(fake)
    path = cache.cached_path(fake, fake.members[0])
    path.write_bytes(b"old")

    def interrupted(*_: object) -> None:
        raise stop

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises((KeyboardInterrupt, FetchFailed)):
        keep(fake)
    assert path.read_bytes() == b"old"
    assert files(tmp_path / "cache") == ["fake/one.csv", "fake/two.csv"]


def test_a_cache_that_cannot_be_written_is_named(fake: DataSet, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(FetchFailed, match=r"cannot be written: .* NOISEFLOOR_DATA"):
        keep(fake)
    with pytest.raises(MissingData):
        cache.read_cached(fake, fake.members[0])


def test_the_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NOISEFLOOR_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    at_home = tmp_path / ".cache" / "noisefloor" / "data"
    assert cache.cache_folder() == at_home
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache.cache_folder() == at_home
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "noisefloor" / "data"
    monkeypatch.setenv("NOISEFLOOR_DATA", "")
    assert cache.cache_folder() == tmp_path / "xdg" / "noisefloor" / "data"
    monkeypatch.setenv("NOISEFLOOR_DATA", "~/mine")
    assert cache.cache_folder() == tmp_path / "mine"
