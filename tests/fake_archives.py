"""Small archives and the data sets that they hold, for tests that need no network."""

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from noisefloor.tables.data_sets import Archive, DataSet, Member

TABLE = b"user,item,rating\n1,7,5\n2,7,1\n"

_METADATA = b"Metadata-Version: 2.1\nName: fake\nVersion: 1.0\n"
_WHEEL = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sha256(content: bytes) -> str:
    """Return the hash as the registry writes it."""
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, files: Mapping[str, bytes] | Iterable[tuple[str, bytes]]) -> Path:
    """Write a wheel that pip takes, with some files in it."""
    pairs = list(files.items() if isinstance(files, Mapping) else files)
    path = folder / "fake-1.0-py3-none-any.whl"
    names = [("METADATA", _METADATA), ("WHEEL", _WHEEL), ("RECORD", b"")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [*pairs, *((f"fake-1.0.dist-info/{n}", c) for n, c in names)]:
            archive.writestr(name, content)
    return path


def write_tar(folder: Path, files: Mapping[str, bytes], links: Mapping[str, str]) -> Path:
    """Write a source distribution with files and links."""
    path = folder / "fake-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return path


def data_set(archive: Path, contents: Mapping[str, bytes], name: str = "fake") -> DataSet:
    """Return a data set that pins an archive and some of its files."""
    whole = archive.read_bytes()
    members = tuple(
        Member(path, Path(path).name, sha256(content), len(content))
        for path, content in contents.items()
    )
    return DataSet(
        name,
        "A fake",
        Archive("fake", "1.0", sha256(whole), len(whole)),
        members,
        licence="none",
        source="tests",
        rows=2,
        columns=3,
        redistributable=True,
        note="",
    )


def with_archive(data: DataSet, archive: Path) -> DataSet:
    """Return the same data set, out of another archive whose hash is pinned rightly."""
    whole = archive.read_bytes()
    return replace(data, archive=replace(data.archive, sha256=sha256(whole), size=len(whole)))
