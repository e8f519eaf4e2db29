"""What a long release is handed by its runner: a place for its progress and for its checkpoints.

Neither changes what is released. A checkpoint holds nothing that the guarantee of the release does
not cover, so that a runner may write it to a disk; it holds no state of randomness either.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

ReleaseProgress: TypeAlias = Callable[[str, int, int], None]
"""Is called with what is under way, how much of it is done, and of how much."""


class CheckpointStore(Protocol):
    """Keeps the last checkpoint of one release."""

    @property
    def where(self) -> str:
        """Where it is kept, for errors."""

    def load(self) -> bytes | None:
        """Return the checkpoint, or None."""

    def is_due(self) -> bool:
        """Return whether a checkpoint should be written now."""

    def save(self, content: bytes) -> None:
        """Keep this checkpoint in the place of the last one."""


def no_release_progress(what: str, done: int, of: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class ReleaseRun:
    """How a release is run; by default it shows and keeps nothing.

    Attributes:
        progress: Gets how far the release is.
        checkpoints: Of this release alone, if there is a place for them.
    """

    progress: ReleaseProgress = no_release_progress
    checkpoints: CheckpointStore | None = None

    def kept(self) -> bytes | None:
        """Return the checkpoint that the release goes on from, or None."""
        return None if self.checkpoints is None else self.checkpoints.load()

    def steps(self, what: str, of: int) -> Callable[[int], None]:
        """Return what takes the number of steps that are done of something."""
        return lambda done: self.progress(what, done, of)

    def counted(self, what: str, of: int) -> Callable[[int], None]:
        """Return what takes how many more are done of something."""
        done = 0

        def add(count: int) -> None:
            nonlocal done
            done += count
            self.progress(what, done, of)

        return add


NO_RUN = ReleaseRun()
"""Shows and keeps nothing."""
