"""A disk that is full: a small file system in memory, for as long as a test needs it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system at a folder, fill it, and yield the folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True)
    except OSError:
        pytest.skip("no mount command here")
    if done.returncode:
        pytest.skip("a file system cannot be mounted here: that takes an administrator")
    try:
        with (folder / "fill").open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(bytes(4096))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607  of the system
