"""The run directory of a reproduction that can be interrupted: one file for each finished cell.

``plan.json`` says whose cells these are: plan, texts, versions. A directory of another plan is
refused. Every file appears whole or not at all, so that after a kill -9 what is missing is
run, and nothing else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from noisefloor.errors import BadRunDirectory

Json = dict[str, Any]  # JSON

PLAN, CELLS, FROZEN = "plan.json", "cells", "frozen"
KEPT_NAMES = (PLAN, CELLS, FROZEN, f"{FROZEN}.part")


class StoredCell(Protocol):
    """What is run by itself, and found again by its key."""

    @property
    def key(self) -> str:
        """The name of its file."""


@dataclass(frozen=True, slots=True)
class CellStore:
    """Finished cells of one plan in a run directory.

    Attributes:
        folder: The run directory.
    """

    folder: Path

    def open(self, identity: Mapping[str, object], *, resume: bool) -> None:
        """Begin a new run directory, or go on with one of the same plan.

        Raises:
            BadRunDirectory: It is of another plan, data or version, or has no plan.
        """
        path = self.folder / PLAN
        said = json.loads(json.dumps(identity))
        if not resume or not self.folder.exists():
            try:
                (self.folder / CELLS).mkdir(parents=True)
            except OSError as error:
                rule = f"cannot be written: {error.strerror}."
                raise BadRunDirectory(f"{self.folder}: {rule}") from None
            write_whole(path, json.dumps(said, indent=1) + "\n")
            return
        found = _read(path, "use --force to begin anew")
        other = [name for name in said if found.get(name) != said[name]]
        if other or set(found) != set(said):
            name = other[0] if other else "plan"
            raise BadRunDirectory(
                f"{path}: field {name} is of another run; resume with the same, "
                "or use --force to begin anew."
            )

    @property
    def frozen(self) -> Path:
        """Where what all cells read is kept while cells are missing."""
        return self.folder / FROZEN

    def _path(self, cell: StoredCell) -> Path:
        return self.folder / CELLS / f"{cell.key}.json"

    def has(self, cell: StoredCell) -> bool:
        """Whether a cell is finished."""
        return self._path(cell).is_file()

    def read(self, cell: StoredCell) -> Json:
        """Return a finished cell."""
        return _read(self._path(cell), "delete it, and resume")

    def write(self, cell: StoredCell, found: Mapping[str, object]) -> None:
        """Keep a finished cell."""
        write_whole(self._path(cell), json.dumps(found, allow_nan=False) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all, also if the machine stops."""
    draft = path.with_name(f".{path.name}.part")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, path)


def _read(path: Path, cure: str) -> Json:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BadRunDirectory(f"{path}: cannot be read; {cure}.") from None
    if not isinstance(found, dict):
        raise BadRunDirectory(f"{path}: is not what was written; {cure}.")
    return found
