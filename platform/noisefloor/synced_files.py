"""Files that are on disk before the next step, that only their owner can read, and their locks."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o600


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process at the latest."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes, flags: int) -> None:
    """Write to a file, made if need be; on disk when this returns.

    Args:
        path: The file.
        content: What is written.
        flags: ``os.O_APPEND``, ``os.O_TRUNC``, or ``os.O_EXCL`` for a file that has to be new.
    """
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | flags, OWNER_ONLY), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names of new files on disk as well."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
