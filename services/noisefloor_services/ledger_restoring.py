"""Raise a ledger that was set back to what its anchor says: what was spent stays spent.

Entries that are lost are replaced by entries that say so, under their ids where the anchor has
them; their cost is what the anchor has more than the server. Spends whose release may be lost are
sealed: drawing it anew would give a second release for one charge, or two under one id.
"""

import hashlib
from dataclasses import dataclass, replace

from noisefloor.accounting import Amount, Entry
from noisefloor.accounting import snapshot as snapshots
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.ledger_anchor import Anchor
from noisefloor_services.ledger_holdings import Held, Holdings

RELEASE = "restored from the anchor"
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of a ledger.

    Attributes:
        raised: By how much the spent budget of each data set was raised.
        entries: How many entries were added.
        sealed: How many spends were sealed.
    """

    raised: dict[str, Amount]
    entries: int
    sealed: int

    def __str__(self) -> str:
        if not self.entries and not self.sealed:
            return "The ledger holds what its anchor says: nothing was raised."
        parts = [f"{name} by {amount}" for name, amount in sorted(self.raised.items())]
        raised = f"Raised {', '.join(parts)}" if parts else "Raised nothing"
        return f"{raised}; {self.entries} entries added, {self.sealed} spends sealed."


def restore(ledger: RedisLedger, anchor: Anchor) -> Restored:
    """Raise a ledger to at least what its anchor says, and the anchor to the ledger.

    Nothing is ever lowered, and repeating it does nothing more. Where the anchor is missing it is
    made of what the server holds.

    Args:
        ledger: Opened without the anchor, which would refuse it.
        anchor: What was spent at least.
    """
    is_new = not anchor.is_there
    anchor.create()
    wanted = anchor.read()
    held = ledger.holdings(wanted.subjects)
    is_behind = wanted.exceeds(held)
    missing = {
        name: _missing(name, held.of(name), part, _lost(ledger, part))
        for name, part in wanted.subjects.items()
    }
    added = 0
    for entries in missing.values():
        for start in range(0, len(entries), _AT_ONCE):
            added += ledger.restore(_snapshot(ledger, entries[start : start + _AT_ONCE]))
    sealed = ledger.seal() if is_behind or is_new else 0
    anchor.raise_to(_with_ids(ledger))
    raised = {name: entries[0].debited for name, entries in missing.items() if entries}
    return Restored(raised, added, sealed)


def _with_ids(ledger: RedisLedger) -> Holdings:
    """Return what the server holds, ids and all."""
    held = ledger.holdings()
    ids = {name: frozenset(one.spend_id for one in ledger.entries(name)) for name in held.subjects}
    parts = {name: replace(part, ids=ids[name]) for name, part in held.subjects.items()}
    return replace(held, subjects=parts)


def _lost(ledger: RedisLedger, wanted: Held) -> list[str]:
    """Return the ids that the anchor has and the server has not."""
    return [spend_id for spend_id in sorted(wanted.ids) if ledger.entry(spend_id) is None]


def _missing(subject: str, held: Held, wanted: Held, lost: list[str]) -> list[Entry]:
    """Return an entry for each that is lost; the first one carries what is missing in all."""
    debited = held.spent.left_of(wanted.spent)
    count = max(wanted.entries - held.entries, int(debited != Amount(0)), len(lost))
    # The same loss gives the same ids, so that a repeated command adds nothing. No publication
    # has such an id: theirs have no colon.
    mark = hashlib.sha256(repr((subject, held.numbers, wanted.numbers)).encode()).hexdigest()[:16]
    made = [f"restored:{mark}:{place}" for place in range(count - len(lost))]
    return [
        Entry(spend_id, subject, RELEASE, 1, taken, taken, RELEASE)
        for place, spend_id in enumerate([*lost, *made])
        for taken in (debited if place == 0 else Amount(0),)
    ]


def _snapshot(ledger: RedisLedger, entries: list[Entry]) -> bytes:
    contents = snapshots.Contents(ledger.budget, ledger.neighbours, ledger.model, tuple(entries))
    return snapshots.encode(contents)
