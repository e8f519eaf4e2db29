"""The checkpoint of a release under way: one file of its owner, replaced as a whole.

The first 32 bytes are the SHA-256 of the rest. A checkpoint that cannot be written stops nothing:
the release goes on without, and says so.
"""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from noisefloor.errors import BadSnapshot
from noisefloor.synced_files import sync_folder, write_synced

EVERY_S = 60.0
"""Between two checkpoints: one of all layers of MiniLM takes 0.2 GB."""

_DIGEST_BYTES = 32


class FileCheckpoint:
    """Keeps the last checkpoint of one release; a ``CheckpointStore``.

    Args:
        path: Of the file.
        every_s: Seconds between two checkpoints.
        tell: Gets a line when a checkpoint cannot be written.
        clock: Seconds that never go back.
    """

    __slots__ = ("_clock", "_every_s", "_is_broken", "_last", "_path", "_tell")

    def __init__(
        self,
        path: Path,
        *,
        every_s: float = EVERY_S,
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._every_s, self._tell, self._clock = path, every_s, tell, clock
        self._last = clock()
        self._is_broken = False

    @property
    def where(self) -> str:
        """The file."""
        return str(self._path)

    def load(self) -> bytes | None:
        """Return the checkpoint, or None; BadSnapshot if the file was damaged."""
        try:
            whole = self._path.read_bytes()
        except FileNotFoundError:
            return None
        content = whole[_DIGEST_BYTES:]
        if hashlib.sha256(content).digest() != whole[:_DIGEST_BYTES]:
            raise BadSnapshot(f"{self.where}: is damaged; remove it to start anew.")
        return content

    def is_due(self) -> bool:
        """Return whether the last one is old enough."""
        return not self._is_broken and self._clock() - self._last >= self._every_s

    def save(self, content: bytes) -> None:
        """Put this checkpoint in the place of the last one, in one step."""
        draft = self._path.with_name(f"{self._path.name}.new")
        try:
            write_synced(draft, hashlib.sha256(content).digest() + content, os.O_TRUNC)
            os.replace(draft, self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            self._is_broken = True
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._tell(f"no checkpoint can be written to {self._path.parent}: {error.strerror}")
        self._last = self._clock()

    def remove(self) -> None:
        """Remove it: the release is stored."""
        for path in (self._path, self._path.with_name(f"{self._path.name}.new")):
            path.unlink(missing_ok=True)
