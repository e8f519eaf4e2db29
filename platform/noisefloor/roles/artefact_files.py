"""Stored artefacts of a single machine: a folder with one file for each, written once.

A file is written under another name, synced, and then given its own name in one step that fails
where the name is taken: so a release is there whole or not at all, and the first one stays.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor.synced_files import file_lock, sync_folder, write_synced

_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_ENDING = ".release"


class FileArtefactStore:
    """Artefacts in a folder; only its owner can read them.

    Args:
        folder: Made with the first artefact.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Store the content unless something is stored already; return what is stored."""
        path = self._path(spend_id)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return write_once(path, content)

    def published(self, spend_id: str) -> bytes | None:
        """Return what is stored, or None."""
        try:
            return self._path(spend_id).read_bytes()
        except FileNotFoundError:
            return None

    def ids(self) -> list[str]:
        """Return the ids that something is stored of, sorted."""
        return sorted(path.stem for path in self._folder.glob(f"*{_ENDING}"))

    @contextmanager
    def locked(self, spend_id: str) -> Iterator[None]:
        """Let one process at a time make an artefact: the others get what it stored."""
        self._path(spend_id)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(self._folder / f".{spend_id}.lock"):
            yield

    def checkpoint(self, spend_id: str) -> Path:
        """Return where the checkpoint of a release under way is kept."""
        return self._path(spend_id).with_name(f".{spend_id}.checkpoint")

    def _path(self, spend_id: str) -> Path:
        if not _NAME.fullmatch(spend_id):
            raise BadParameter("id", "<text>", f"to match {_NAME.pattern}")
        return self._folder / f"{spend_id}{_ENDING}"


def write_once(path: Path, content: bytes) -> bytes:
    """Write a file that only its owner can read, whole or not at all; return what is there."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        write_synced(draft, content, os.O_EXCL)
        os.link(draft, path)  # never replaces what is there
    except FileExistsError:
        return path.read_bytes()
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return content
