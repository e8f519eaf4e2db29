"""The chained ledger of a single machine: a folder with one log for each data set.

A log has a line for each record: its hash, a blank, the record. Lines are appended and synced
under a lock of the folder, so that several processes may spend. A last line without its end was
never acknowledged: it is cut off by the next append, and nothing was released for it.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from noisefloor.accounting.chain import ChainedRecord, ChainTail
from noisefloor.accounting.chained_ledger import Appended, AppendStatus, ChainedLedger
from noisefloor.accounting.spending import LedgerTerms
from noisefloor.errors import BadParameter, BrokenChain, LedgerAbsent, UnlikeTerms
from noisefloor.synced_files import file_lock, sync_folder, write_synced

_SUBJECT = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_TERMS, _LOCK = "terms.json", "lock"


class FileLedger(ChainedLedger):
    """Budgets of many subjects in a folder; made by ``create`` or by ``open``."""

    __slots__ = ("_folder",)

    def __init__(
        self, folder: Path, terms: LedgerTerms, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(terms, clock)
        self._folder = folder

    @classmethod
    def create(
        cls, folder: Path, terms: LedgerTerms, clock: Callable[[], float] = time.time
    ) -> "FileLedger":
        """Make a ledger in a folder, or open the one that is there with the same terms."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_lock(folder / _LOCK):
            path = folder / _TERMS
            if not path.exists():
                draft = folder / f"{_TERMS}.new"
                write_synced(draft, terms.content, os.O_TRUNC)
                draft.replace(path)
                sync_folder(folder)
        return cls.open(folder, terms, clock)

    @classmethod
    def open(
        cls,
        folder: Path,
        terms: LedgerTerms | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "FileLedger":
        """Open a ledger that is there: LedgerAbsent or UnlikeTerms otherwise."""
        path = folder / _TERMS
        try:
            stored = LedgerTerms.read(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            raise LedgerAbsent(f"{folder}: there is no ledger; create it first.") from None
        except (OSError, ValueError, TypeError, BadParameter):
            rule = "the ledger's terms cannot be read, or are of another format"
            raise UnlikeTerms(f"{path}: {rule}.") from None
        if terms is not None and stored != terms:
            raise UnlikeTerms(f"{path}: the ledger has another budget, relation or model.")
        return cls(folder, stored, clock)

    def subjects(self) -> list[str]:
        """Return the subjects that have an entry, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.log") if path.stat().st_size)

    def contents(self, subject: str, first: int = 0) -> list[bytes]:
        """Return the chained records of a subject as they are stored, without the first ones."""
        found = []
        for place, line in enumerate(self._lines(subject)[first:], first + 1):
            try:
                found.append(_content(line))
            except BrokenChain as error:
                raise BrokenChain(f"Ledger of {subject}: record {place}: {error}") from None
        return found

    def _last(self, subject: str) -> bytes | None:
        lines = self._lines(subject)
        return _content(lines[-1]) if lines else None

    def _record_of(self, spend_id: str) -> bytes | None:
        for subject in self.subjects():
            for content in self.contents(subject):
                if ChainedRecord.read(content).entry.spend_id == spend_id:
                    return content
        return None

    def _append(self, tail: ChainTail, record: ChainedRecord) -> Appended:
        subject = record.entry.subject
        with file_lock(self._folder / _LOCK):
            known = self._record_of(record.entry.spend_id)
            if known is not None:
                return Appended(AppendStatus.KNOWN, known)
            last = self._last(subject)
            if self._tail_after(subject, last).head != tail.head:
                return Appended(AppendStatus.CHANGED)
            self._cut_unfinished(subject)
            line = record.digest.encode("ascii") + b" " + record.content + b"\n"
            write_synced(self._path(subject), line, os.O_APPEND)
            sync_folder(self._folder)
        return Appended(AppendStatus.APPENDED)

    def _lines(self, subject: str) -> list[bytes]:
        try:
            data = self._path(subject).read_bytes()
        except FileNotFoundError:
            return []
        return data.split(b"\n")[:-1]

    def _cut_unfinished(self, subject: str) -> None:
        path = self._path(subject)
        if path.exists():
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(path, whole)

    def _path(self, subject: str) -> Path:
        if not _SUBJECT.fullmatch(subject):
            raise BadParameter("subject", "<text>", f"to match {_SUBJECT.pattern}")
        return self._folder / f"{subject}.log"


def _content(line: bytes) -> bytes:
    digest, _, content = line.partition(b" ")
    if ChainedRecord.read(content).digest.encode("ascii") != digest:
        raise BrokenChain("A record of the ledger does not have its hash: it was changed.")
    return content
