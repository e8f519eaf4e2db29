"""What ``noisefloor ledger`` and ``noisefloor cards`` do, behind the command line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noisefloor.accounting import Amount, ChainedLedger, ChainedRecord, explained
from noisefloor.cards import check_card
from noisefloor.errors import BadParameter, BrokenChain
from noisefloor.roles import Artefact, has_failed
from noisefloor_sim.cli.publication_targets import PublicationTarget, found_publication
from noisefloor_sim.cli.published_data import PublishedData, budget_terms, relation_of


def show(target: PublicationTarget, name: str | None, *, as_json: bool) -> int:
    """Print budgets and what spent them, and return the exit code."""
    found = {one: target.ledger(one) for one in _names(target, name)}
    if as_json:
        listed = [_statement(one, ledger) for one, ledger in found.items()]
        print(json.dumps(listed, indent=2))
        return 0
    for one, ledger in found.items():
        print(ledger.why(one))
    if not found:
        print(f"{target.where}: no data set has a budget yet")
    return 0


def explain(target: PublicationTarget, entry_id: str, *, data_set: str | None) -> int:
    """Say of one entry which release it is, when it was, and what it cost by every count."""
    for name in _names(target, data_set):
        ledger = target.ledger(name)
        record = ledger.record(entry_id)
        if record is not None:
            print(explained(ledger.terms, record))
            return 0
    rule = f"of an entry of {target.where}. See: noisefloor cards"
    raise BadParameter("id", entry_id, rule)


def verify(target: PublicationTarget, name: str | None, kept: Sequence[Path]) -> int:
    """Replay every chain, and compare it with the cards that name its records.

    Args:
        target: Where the ledger is.
        name: Of one data set; all without.
        kept: Cards that were fetched before, out of reach of whoever keeps the ledger.
    """
    for path in kept:
        _check_kept(target, path)
    for one in _names(target, name):
        records, tail = target.ledger(one).verify(one)
        cards = sum(_check_card(target, one, record) for record in records)
        known = {record.entry.spend_id for record in records}
        unpaid = [stored for stored in target.stored_ids(one) if stored not in known]
        if unpaid:
            rule = "is stored and has no record: the ledger was cut off. Restore it"
            raise BrokenChain(f"Ledger of {one}: {unpaid[0]} {rule}.")
        print(
            f"{one}: every link holds, entries: {len(records)}, cards that agree: {cards}, "
            f"last hash: {tail.head}"
        )
    return 0


def budget(
    target: PublicationTarget,
    named: str,
    *,
    epsilon: float | None,
    delta: float,
    neighbours: str,
    publisher: str,
) -> int:
    """Set the budget of a data set, once, or show it."""
    data = PublishedData(named)
    if epsilon is not None:
        data.check_file()  # a budget never changes: not for a name that was mistyped
        terms = budget_terms(epsilon, delta, relation_of(neighbours))
        target.set_budget(data, terms, publisher)
    ledger = target.ledger(data.name)
    print(
        f"{data.name} ({target.where}): a budget of {ledger.budget}, {ledger.neighbours.value}; "
        f"{ledger.left(data.name)} is left"
    )
    return 0


def cards(
    target: PublicationTarget, publication_id: str | None, *, data_set: str | None, as_json: bool
) -> int:
    """List what was published, or print one card."""
    if publication_id is not None:
        _, made = found_publication(target, publication_id, data_set)
        print(json.dumps(made.card, indent=2))
        return 0
    found = [
        (name, record, target.artefact(name, record.entry.spend_id))
        for name in _names(target, data_set)
        for record in target.ledger(name).verify(name)[0]
    ]
    if as_json:
        print(json.dumps([_line_fields(*one) for one in found], indent=2))
        return 0
    for name, record, stored in found:
        entry = record.entry
        print(
            f"{entry.spend_id}  {name}  {entry.release}  {entry.debited}  {record.time}  "
            f"{_state(stored)}"
        )
    if not found:
        print(f"{target.where}: nothing was published yet")
    return 0


def _names(target: PublicationTarget, name: str | None) -> list[str]:
    return target.data_sets() if name is None else [PublishedData(name).name]


def _state(made: Artefact | None) -> str:
    if made is None:
        return "charged, not stored: the same request makes it"
    return "failed" if has_failed(made) else "stored"


def _line_fields(name: str, record: ChainedRecord, made: Artefact | None) -> dict[str, Any]:
    entry = record.entry
    return {
        "publication_id": entry.spend_id,
        "data_set": name,
        "method": entry.release,
        "cost": _fields(entry.debited),
        "at": record.time,
        "state": _state(made),
        "card": None if made is None else made.card,
    }


def _fields(amount: Amount) -> dict[str, float]:
    return {"epsilon": amount.epsilon, "delta": amount.delta}


def _statement(name: str, ledger: ChainedLedger) -> dict[str, Any]:  # Any: JSON
    records, tail = ledger.verify(name)
    return {
        "data_set": name,
        "neighbours": ledger.neighbours.value,
        "budget": _fields(ledger.budget),
        "spent": _fields(ledger.spent(name)),
        "left": _fields(ledger.left(name)),
        "entries": len(records),
        "head": tail.head,
        "what_spent_it": [
            {
                "release": one.release,
                "count": one.count,
                **_fields(Amount(one.micro_epsilon, one.delta_units)),
                "share": one.share,
            }
            for one in ledger.what_spent(name)
        ],
    }


def _check_kept(target: PublicationTarget, path: Path) -> None:
    """Refuse a ledger that does not have the record that a fetched card names."""
    try:
        document = path.read_bytes()
    except OSError as error:
        raise BadParameter("card", str(path), f"a file of a card ({error.strerror})") from None
    card = check_card(document, target.key or (), unsigned=target.key is None)
    name, place = str(card.get("data_set")), card.get("ledger")
    position = place.get("position") if isinstance(place, dict) else None
    if not isinstance(place, dict) or type(position) is not int:
        raise BadParameter("card", str(path), "a card that names its record of the ledger")
    heads = [record.digest for record in target.ledger(name).verify(name)[0]]
    if not 0 < position <= len(heads) or heads[position - 1] != place.get("head"):
        raise BrokenChain(
            f"Ledger of {name}: {path} names record {position}, which the ledger with its "
            f"{len(heads)} records does not have: it was set back or written anew. Restore it."
        )


def _check_card(target: PublicationTarget, name: str, record: ChainedRecord) -> bool:
    """Compare a record with the card of its release; False where there is none to compare."""
    made = target.artefact(name, record.entry.spend_id)
    place = None if made is None else made.card.get("ledger")
    if not place or not place.get("head"):
        return False
    if (place.get("position"), place.get("head")) != (record.position, record.digest):
        raise BrokenChain(
            f"Ledger of {name}: record {record.position} is another than the card of "
            f"{record.entry.spend_id} names: the ledger or the card was changed."
        )
    return True
