"""Read named files out of a wheel or a source distribution, without unpacking it.

Nothing is written where an archive says: a member is read into memory, at most as many bytes as
are expected of it. An archive with names that lead outside, with a name twice, or with a link in
a member's place is refused.
"""

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from noisefloor.errors import DamagedData

MOST_ENTRIES = 100_000
"""More than any package has; a longer listing is not searched."""

_UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, NotImplementedError, RuntimeError),
)
"""How the readers say that an archive is cut, broken, encrypted or of an unknown method."""


def read_members(path: Path, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """Return the content of the named members.

    Args:
        path: Of the archive: ``.whl`` or ``.zip``, otherwise a tar archive.
        sizes: The members to read, and the bytes that each has.

    Raises:
        DamagedData: The archive cannot be read or is not as expected.
    """
    read = _read_zip if path.suffix in (".whl", ".zip") else _read_tar
    try:
        found = read(path, sizes)
    except _UNREADABLE as error:
        raise DamagedData(f"{path.name}: cannot be read ({type(error).__name__}).") from None
    for name, size in sizes.items():
        if name not in found:
            raise DamagedData(f"{path.name}: has no file {name}.")
        if len(found[name]) != size:
            raise DamagedData(f"{path.name}: {name} does not have the expected {size} bytes.")
    return found


def _read_zip(path: Path, sizes: Mapping[str, int]) -> dict[str, bytes]:
    found = {}
    with zipfile.ZipFile(path) as archive:
        _check_names(path, archive.namelist())
        for name in sizes.keys() & set(archive.namelist()):
            with archive.open(name) as stream:
                found[name] = stream.read(sizes[name] + 1)
    return found


def _read_tar(path: Path, sizes: Mapping[str, int]) -> dict[str, bytes]:
    found = {}
    names = []
    with tarfile.open(path) as archive:
        for entry in archive:
            names.append(entry.name)
            _check_length(path, len(names))
            stream = archive.extractfile(entry) if entry.isreg() and entry.name in sizes else None
            if stream is not None:
                found[entry.name] = stream.read(sizes[entry.name] + 1)
    _check_names(path, names)
    return found


def _check_names(path: Path, names: list[str]) -> None:
    _check_length(path, len(names))
    if any(leads_outside(name) for name in names):
        raise DamagedData(f"{path.name}: has a name that leads outside of the archive.")
    if len(set(names)) < len(names):
        raise DamagedData(f"{path.name}: has a name twice.")


def _check_length(path: Path, entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise DamagedData(f"{path.name}: has more than {MOST_ENTRIES} entries.")


def leads_outside(name: str) -> bool:
    """Say whether unpacking a member of this name would leave the folder, on any system."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return not parts or parts[0].startswith("/") or ":" in parts[0] or ".." in parts
