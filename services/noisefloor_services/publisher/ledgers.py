"""The publisher's ledgers: one for the operator's data sets, one for each uploaded data set.

An uploaded data set has a budget of its own, so it has a ledger of its own: the same scripts and
the same anchor protect it, and its terms are fixed when it is made.
"""

from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from noisefloor.accounting import LedgerTerms
from noisefloor.privacy import TrustModel
from noisefloor.wire.messages import DataSetBudget, DataSetMessage
from noisefloor_services.ledger import (
    AnchoredLedger,
    LedgerAnchor,
    LedgerKeys,
    MigrationSummary,
    RedisLedger,
    RestorationSummary,
    migrate,
    restore,
)
from noisefloor_services.settings import BadSetting, Settings

TIMEOUT_S = 10.0


def terms(settings: Settings) -> LedgerTerms:
    """Return the terms of the ledger that the settings name."""
    return LedgerTerms.of(
        settings.ledger_epsilon,
        settings.ledger_delta,
        neighbours=settings.ledger_neighbours,
        model=TrustModel.CENTRAL,
    )


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """Where a ledger is.

    Attributes:
        name: Of the ledger on the server.
        terms: Budget, relation and model.
        anchor_path: The file of its anchor, if it has one.
    """

    name: str
    terms: LedgerTerms
    anchor_path: Path | None

    @classmethod
    def of(cls, settings: Settings) -> "LedgerPlace":
        """Return the place of the ledger of the operator's data sets."""
        return cls(settings.ledger, terms(settings), settings.ledger_anchor)

    @classmethod
    def of_data_set(cls, settings: Settings, name: str, budget: DataSetBudget) -> "LedgerPlace":
        """Return the place of the ledger of an uploaded data set."""
        agreed = LedgerTerms.of(
            budget.epsilon, budget.delta, neighbours=budget.neighbours, model=TrustModel.CENTRAL
        )
        folder = anchor_folder(settings)
        return cls(f"{settings.ledger}.{name}", agreed, None if folder is None else folder / name)

    @property
    def anchor(self) -> LedgerAnchor | None:
        """The anchor, if it has one."""
        if self.anchor_path is None:
            return None
        return LedgerAnchor(self.anchor_path, self.name, self.terms)

    def check_anchor(self) -> None:
        """Raise BadAnchor if there is an anchor, and it is another ledger's or of other terms."""
        anchor = self.anchor
        if anchor is not None and anchor.is_there:
            anchor.read()

    def create(self, client: "Redis") -> None:
        """Make the ledger where there is none, and its anchor with it.

        Where something was spent already and the anchor is missing, no anchor is made: a new one
        would forget what the old one said. ``restore`` makes it then.
        """
        ledger, anchor = RedisLedger.create(client, self.name, self.terms), self.anchor
        if anchor is not None and not ledger.subjects():
            anchor.create()

    def open(self, client: "Redis") -> RedisLedger:
        """Open the ledger with its anchor, if it has one."""
        anchor = self.anchor
        if anchor is None:
            return RedisLedger.open(client, self.name, self.terms)
        return AnchoredLedger.open_at(client, self.name, self.terms, anchor)

    def restore(self, client: "Redis") -> RestorationSummary:
        """Raise the ledger to what its anchor says.

        Where the server holds no ledger and the anchor is there, the ledger is made first: it is
        raised to the anchor before anything can be spent from it.
        """
        anchor = self.anchor
        if anchor is None:
            raise BadSetting("NOISEFLOOR_LEDGER_ANCHOR", "has to name the anchor to restore from")
        make = RedisLedger.create if anchor.is_there else RedisLedger.open
        return restore(make(client, self.name, self.terms), anchor)


def anchor_folder(settings: Settings) -> Path | None:
    """Return the folder with the anchors of uploaded data sets, beside the operator's anchor."""
    anchor = settings.ledger_anchor
    return None if anchor is None else anchor.with_name(f"{anchor.name}.data-sets")


def create_ledger(settings: Settings) -> None:
    """Make the ledger of the operator's data sets: an act of the operator, once."""
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        LedgerPlace.of(settings).create(client)


def migrate_ledger(settings: Settings) -> MigrationSummary:
    """Carry every ledger of format 1 over, with its anchor: an act of the operator."""
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        documents = client.hgetall(LedgerKeys(settings.ledger).data_sets)
        places = [LedgerPlace.of(settings)]
        for name, document in sorted(documents.items()):
            budget = DataSetMessage.model_validate_json(document).budget
            places.append(LedgerPlace.of_data_set(settings, name.decode(), budget))
        summary = MigrationSummary()
        for place in places:
            moved = migrate(client, place.name, place.terms, place.anchor_path)
            summary = summary.joined(moved)
    return summary


def restore_ledger(settings: Settings) -> RestorationSummary:
    """Raise every ledger that was set back to what its anchor says."""
    folder = anchor_folder(settings)
    listed = sorted(folder.iterdir()) if folder is not None and folder.is_dir() else []
    with Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S) as client:
        summary = LedgerPlace.of(settings).restore(client)
        for path in listed:
            if "." in path.name:  # a lock, a draft or an old one; names of data sets have no dot
                continue
            place = LedgerPlace(
                f"{settings.ledger}.{path.name}", LedgerAnchor.terms_at(path), path
            )
            summary = summary.joined(place.restore(client))
    return summary
