"""The ledger's anchor: a small file beside the server that says what was spent at least.

A server that was set back to an old backup looks like one where less was spent. So what it held is
also written to a file that its backups do not reach, with every spend and before the release. The
file can only be raised. It holds, for each data set, how many entries there are, what they cost
and their ids; and how many spends are settled, for a lost release must not be drawn anew.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noisefloor.accounting import Amount
from noisefloor_services.ledger_errors import BadAnchor
from noisefloor_services.ledger_holdings import Held, Holdings
from noisefloor_services.ledger_terms import Terms

VERSION = 1


class Anchor:
    """The file; safe to share between threads and between processes of one machine.

    Args:
        path: Where it lies: on another disk than the server's data, or at least outside of what
            is backed up and restored together with them.
        name: Of the ledger.
        terms: Of the ledger.
    """

    __slots__ = ("_name", "_path", "_terms")

    def __init__(self, path: Path, name: str, terms: Terms) -> None:
        self._path = path
        self._name = name
        self._terms = terms.content.decode("ascii")

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        return self._path.exists()

    def read(self) -> Holdings:
        """Return what it says, or raise BadAnchor."""
        try:
            body, checksum = self._path.read_bytes().split(b"\n")[:2]
            told = json.loads(body)
            ids = {name: frozenset(listed) for name, listed in told.get("ids", {}).items()}
            parts = {
                name: Held(entries, Amount(epsilon, delta), ids.get(name, frozenset()))
                for name, (entries, epsilon, delta) in told["subjects"].items()
            }
            holdings = Holdings(parts, told["settled"])
        except FileNotFoundError:
            rule = "there is no anchor; restore-ledger makes it"
            raise BadAnchor(f"{self._path}: {rule}.") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadAnchor(f"{self._path}: the ledger's anchor cannot be read.") from None
        if checksum.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            raise BadAnchor(f"{self._path}: the ledger's anchor is damaged.")
        if [told["version"], told["ledger"], told["terms"]] != [VERSION, self._name, self._terms]:
            raise BadAnchor(
                f"{self._path}: the anchor of another ledger, or of another budget or relation."
            )
        return holdings

    def create(self) -> None:
        """Make the file with nothing in it, unless it is there."""
        with self._locked():
            if not self.is_there:
                self._write(Holdings())

    def raise_to(self, holdings: Holdings) -> None:
        """Raise what it says to at least this much; it is on disk when this returns."""
        with self._locked():
            held = self.read()
            raised = held.joined(holdings)
            if raised != held:
                self._write(raised)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others out: two that read, join and write at once would lose one of them."""
        try:
            with open(self._path.with_name(self._path.name + ".lock"), "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError:
            raise BadAnchor(f"{self._path}: the ledger's anchor cannot be written.") from None

    def _write(self, holdings: Holdings) -> None:
        body = json.dumps(
            {
                "version": VERSION,
                "ledger": self._name,
                "terms": self._terms,
                "settled": holdings.settled,
                "subjects": {name: list(held.numbers) for name, held in holdings.subjects.items()},
                "ids": {name: sorted(held.ids) for name, held in holdings.subjects.items()},
            },
            sort_keys=True,
        ).encode("ascii")
        draft = self._path.with_name(self._path.name + ".new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name is on disk as well
        finally:
            os.close(folder)
