"""The publisher of a single machine: budgets, ledgers and releases in one folder.

The same role as the service runs on a ledger and a store of files. A release is charged before
anything is drawn, and stored before it is handed out, so that a process that is killed in between
costs the charge; the same request then draws, once. Several processes may publish at once.

    FOLDER/store.json               the format of the folder
    FOLDER/publisher.key            signs the cards; publisher.key.pub is for recipients
    FOLDER/NAME/ledger/             terms and chained records of a data set
    FOLDER/NAME/releases/           what was released of it, and checkpoints of long trainings

Records are not kept here: they are read from their own file for each release. Whoever can write
the folder can also remove it: back it up, and do not restore an old copy over it.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from noisefloor.accounting import FileLedger, LedgerTerms, SpendPreview
from noisefloor.canonical_json import canonical_json
from noisefloor.cards import SigningKey
from noisefloor.errors import (
    BadPublicationStore,
    BadSnapshot,
    LedgerAbsent,
    PublicationFailed,
    UnlikeTerms,
)
from noisefloor.publication import ReleaseProgress, ReleaseRun, no_release_progress
from noisefloor.randomness import Source
from noisefloor.roles.artefact import Artefact, unpack_artefact
from noisefloor.roles.artefact_files import FileArtefactStore, write_once
from noisefloor.roles.checkpoint_files import EVERY_S, FileCheckpoint
from noisefloor.roles.model_publisher import ModelPublisher, ReleaseRequest
from noisefloor.roles.publication_methods import Audit, methods_of
from noisefloor.synced_files import file_lock
from noisefloor.tables import DataRecords

STORE_FORMAT = 1
"""Of the folder; terms, records and artefacts have versions of their own."""

PUBLIC_KEY = "publisher.key.pub"
"""What recipients check cards by."""

_HEAD, _KEY = "store.json", "publisher.key"
_OWN = frozenset({".lock", _KEY, PUBLIC_KEY})
"""What is in the folder before it is a store: a process may have ended in between."""

_NAME = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)


class PublicationPreview(NamedTuple):
    """What a request would do.

    Attributes:
        is_paid: Whether it was charged before, so that it costs nothing.
        spend: What the ledger would do.
    """

    is_paid: bool
    spend: SpendPreview


@dataclass(frozen=True, slots=True)
class FilePublisher:
    """Publishes from tables of this machine; made by ``create`` or by ``open``.

    Attributes:
        folder: Of budgets, ledgers and releases.
        clock: Unix time in seconds.
        checkpoint_every_s: Seconds between two checkpoints of a long training.
    """

    folder: Path
    clock: Callable[[], float] = time.time
    checkpoint_every_s: float = EVERY_S

    @classmethod
    def create(
        cls,
        folder: Path,
        clock: Callable[[], float] = time.time,
        *,
        publisher: str = "publisher",
    ) -> "FilePublisher":
        """Make the folder and its key where there is none, or open the one that is there.

        Args:
            folder: Of budgets, ledgers and releases.
            clock: Unix time in seconds.
            publisher: The name that cards give, if the key is made now.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if {one.name for one in folder.iterdir()} <= _OWN:
                with file_lock(folder / ".lock"):
                    _make_key(folder / _KEY, publisher)
                    head = canonical_json({"format": STORE_FORMAT, "what": "noisefloor store"})
                    write_once(folder / _HEAD, head)
        except OSError as error:
            rule = f"cannot be made: {error.strerror or 'output error'}"
            raise BadPublicationStore(str(folder), rule) from None
        return cls.open(folder, clock)

    @classmethod
    def open(cls, folder: Path, clock: Callable[[], float] = time.time) -> "FilePublisher":
        """Open a folder that is there, or raise BadPublicationStore with the next step."""
        if not folder.is_dir():
            rule = "there is no store; make one by: noisefloor ledger budget DATA --epsilon E"
            raise BadPublicationStore(str(folder), rule)
        found = _format_of(folder)
        if found != STORE_FORMAT:
            rule = f"is a store of format {found}, this version reads format {STORE_FORMAT}"
            raise BadPublicationStore(str(folder), f"{rule}: use the version that wrote it")
        return cls(folder, clock)

    @property
    def public_key(self) -> Path:
        """The file of the key that recipients check cards by."""
        return self.folder / PUBLIC_KEY

    def data_sets(self) -> list[str]:
        """Return the names of the data sets that have a budget, sorted."""
        return sorted(path.parent.parent.name for path in self.folder.glob("*/ledger/terms.json"))

    def set_budget(self, name: str, terms: LedgerTerms) -> FileLedger:
        """Give a data set its budget, once; another one afterwards is refused."""
        place = self._place(name) / "ledger"
        place.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            return FileLedger.create(place, terms, self.clock)
        except UnlikeTerms:
            FileLedger.open(place)  # terms that cannot be read have an error of their own
            raise UnlikeTerms(
                f"{self.folder}: {name} has another budget or relation already, and a budget "
                f"never changes. See it by: noisefloor ledger budget {name}"
            ) from None

    def ledger(self, name: str) -> FileLedger:
        """Return the ledger of a data set, or raise LedgerAbsent with the next step."""
        try:
            return FileLedger.open(self._place(name) / "ledger", clock=self.clock)
        except LedgerAbsent:
            raise LedgerAbsent(
                f"{self.folder}: {name} has no budget. Set it, once, by: "
                f"noisefloor ledger budget {name} --epsilon E --delta D"
            ) from None

    def releases(self, name: str) -> FileArtefactStore:
        """Return what was released of a data set."""
        return FileArtefactStore(self._place(name) / "releases")

    def role(
        self,
        name: str,
        records: DataRecords,
        audit: Audit | None = None,
        run: ReleaseRun | None = None,
    ) -> ModelPublisher:
        """Return the role of the publisher on a data set's own ledger and releases."""
        methods = methods_of({name: records}, audit, run=run).values()
        return ModelPublisher(
            self.ledger(name),
            self.releases(name),
            methods,
            data_sets=[name],
            signer=SigningKey.read(self.folder / _KEY),
        )

    def publish(
        self,
        request: ReleaseRequest,
        records: DataRecords,
        source: Source,
        audit: Audit | None = None,
        *,
        progress: ReleaseProgress = no_release_progress,
        tell: Callable[[str], None] = lambda line: None,
    ) -> Artefact:
        """Charge, draw and store, each once; a retry gets what is stored.

        A long training writes checkpoints: if the process ends, the same request goes on from the
        last one, and the charge stays one. Steps after that one are drawn again: nobody saw them.

        Args:
            request: What is published; its data set has a budget here.
            records: Of the data set, as they are now.
            source: Of the noise: a SecureSource where records are of real people.
            audit: Plays the games of the card.
            progress: Gets how far a long release is.
            tell: Gets a line when a checkpoint cannot be written.
        """
        releases = self.releases(request.data_set)
        place = releases.checkpoint(request.publication_id)
        checkpoint = FileCheckpoint(place, every_s=self.checkpoint_every_s, tell=tell)
        run = ReleaseRun(progress, checkpoint)
        role = self.role(request.data_set, records, audit, run)
        with releases.locked(request.publication_id):
            try:
                made = role.publish(request, source)
            except PublicationFailed:
                checkpoint.remove()  # that it failed is stored: there is nothing to go on with
                raise
            checkpoint.remove()
            return made

    def preview(self, request: ReleaseRequest, records: DataRecords) -> PublicationPreview:
        """Say what a request would cost and leave; nothing is spent."""
        role, ledger = self.role(request.data_set, records), self.ledger(request.data_set)
        role.stored(request)  # the id may stand for another request
        loss = role.loss(request)
        is_paid = ledger.entry(request.publication_id) is not None
        return PublicationPreview(
            is_paid, ledger.would_spend(request.data_set, request.cost, loss=loss)
        )

    def artefact(self, name: str, publication_id: str) -> Artefact | None:
        """Return what is stored of a publication, or None; BadSnapshot if it was changed."""
        stored = self.releases(name).published(publication_id)
        if stored is None:
            return None
        try:
            return unpack_artefact(stored)
        except BadSnapshot as error:
            where = self._place(name) / "releases" / publication_id
            raise BadSnapshot(f"{where}: {error} Restore the file.") from None

    def _place(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            rule = "is no name of a data set: lower-case letters, digits and hyphens, at most 64"
            raise BadPublicationStore(str(self.folder), rule)
        return self.folder / name


def _make_key(path: Path, publisher: str) -> None:
    """Make the key, or finish what a process that ended has begun."""
    if not path.exists():
        path.with_name(PUBLIC_KEY).unlink(missing_ok=True)
        SigningKey.create(path, publisher)
    elif not path.with_name(PUBLIC_KEY).exists():
        write_once(path.with_name(PUBLIC_KEY), SigningKey.read(path).public.line.encode("ascii"))


def _format_of(folder: Path) -> object:
    """Return the format that a folder says it has, or raise BadPublicationStore."""
    try:
        head = json.loads((folder / _HEAD).read_text(encoding="ascii"))
        if head["what"] == "noisefloor store":
            return head["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    rule = f"is not empty and no store of noisefloor ({_HEAD} is missing or damaged)"
    raise BadPublicationStore(str(folder), f"{rule}: name another folder")
