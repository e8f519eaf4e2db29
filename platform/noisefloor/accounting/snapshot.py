"""A ledger as bytes: versioned JSON with a checksum, the same bytes for the same ledger.

The checksum finds damage, not forgery: who can write the bytes can write the checksum.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from noisefloor.accounting.entries import Amount, LedgerEntry
from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadSnapshot
from noisefloor.privacy import Neighbours, TrustModel

VERSION = 2

_OUTER = ("body", "checksum")
_BODY = ("budget", "entries", "model", "neighbours", "version")
_ENTRY_OF_1 = ("count", "debited", "proved", "reason", "release", "spend_id", "subject")
_COUNTS = ("failure", "order", "renyi")
_ENTRY = (*_ENTRY_OF_1, *_COUNTS, "is_carried")


@dataclass(frozen=True, slots=True)
class LedgerContents:
    """What a snapshot holds."""

    budget: Amount
    neighbours: Neighbours
    model: TrustModel
    entries: tuple[LedgerEntry, ...]


def encode_ledger(contents: LedgerContents) -> bytes:
    """Write the contents; entries are sorted by spend id, so that history leaves no trace."""
    body = {
        "version": VERSION,
        "budget": _pair(contents.budget),
        "neighbours": contents.neighbours.value,
        "model": contents.model.value,
        "entries": [
            entry_fields(entry)
            for entry in sorted(contents.entries, key=lambda entry: entry.spend_id)
        ],
    }
    return canonical_json({"body": body, "checksum": _checksum(body)})


def entry_fields(entry: LedgerEntry) -> dict[str, Any]:  # Any: JSON
    """Write an entry as JSON has it."""
    return {
        "spend_id": entry.spend_id,
        "subject": entry.subject,
        "release": entry.release,
        "count": entry.count,
        "debited": _pair(entry.debited),
        "proved": "inf" if entry.proved is None else _pair(entry.proved),
        "reason": entry.reason,
        "order": entry.order,
        "renyi": entry.renyi,
        "failure": entry.failure,
        "is_carried": entry.is_carried,
    }


def decode_ledger(data: bytes) -> LedgerContents:
    """Read a snapshot, or refuse it with BadSnapshot, which names the field."""
    outer = _fields(_parsed(data), _OUTER, "snapshot")
    body = outer["body"]
    if not isinstance(body, dict):
        _refuse("body", "is not an object")
    # The version first: another version may have other fields.
    if body.get("version") != VERSION or isinstance(body["version"], bool):
        older = "; migrate the ledger first" if body.get("version") == 1 else ""
        _refuse("version", f"is not {VERSION}{older}")
    if outer["checksum"] != _checksum(body):
        _refuse("checksum", "does not fit the body")
    _fields(body, _BODY, "body")
    contents = LedgerContents(
        budget=_amount(body["budget"], "budget"),
        neighbours=_neighbours(body["neighbours"]),
        model=_model(body["model"]),
        entries=tuple(_entries(body["entries"])),
    )
    if encode_ledger(contents) != data:
        _refuse("snapshot", "is not in canonical form")
    return contents


def _entries(value: object) -> Iterable[LedgerEntry]:
    if not isinstance(value, list):
        _refuse("entries", "is not a list")
    seen: set[str] = set()
    for place, item in enumerate(value):
        entry = read_entry(item, f"entries[{place}]")
        if entry.spend_id in seen:
            _refuse(f"entries[{place}].spend_id", "occurs twice")
        seen.add(entry.spend_id)
        yield entry


def read_entry(value: object, where: str, version: int = VERSION) -> LedgerEntry:
    """Read an entry of a format, or raise BadSnapshot that names the field."""
    fields = _fields(value, _ENTRY if version == VERSION else _ENTRY_OF_1, where)
    for name in ("spend_id", "subject", "release"):
        if not isinstance(fields[name], str) or not fields[name]:
            _refuse(f"{where}.{name}", "is not a text of at least one sign")
    reason, proved = fields["reason"], fields["proved"]
    if not isinstance(reason, str) or (proved == "inf" and not reason):
        _refuse(f"{where}.reason", "is not a text that says why")
    try:
        count = check_count(fields["count"], "count")
    except BadParameter:
        _refuse(f"{where}.count", "is not a positive whole number")
    return LedgerEntry(
        spend_id=fields["spend_id"],
        subject=fields["subject"],
        release=fields["release"],
        count=count,
        debited=_amount(fields["debited"], f"{where}.debited"),
        proved=None if proved == "inf" else _amount(proved, f"{where}.proved"),
        reason=reason,
        **({} if version == 1 else _counts(fields, where)),
    )


def _counts(fields: dict[str, Any], where: str) -> dict[str, Any]:  # Any: JSON
    for name in _COUNTS:
        if type(fields[name]) is not int or fields[name] < 0:
            _refuse(f"{where}.{name}", "is not a whole number, zero or more")
    if not isinstance(fields["is_carried"], bool):
        _refuse(f"{where}.is_carried", "is not true or false")
    return {name: fields[name] for name in (*_COUNTS, "is_carried")}


def _amount(value: object, where: str) -> Amount:
    if not isinstance(value, list) or len(value) != 2:
        _refuse(where, "is not a pair of epsilon and delta")
    for number in value:
        if type(number) is not int or number < 0:  # a bool is an int, but not an amount
            _refuse(where, "is not in whole units, zero or more")
    return Amount(value[0], value[1])


def _neighbours(value: object) -> Neighbours:
    try:
        return Neighbours(value)
    except ValueError:
        _refuse("neighbours", "is not a known relation")


def _model(value: object) -> TrustModel:
    try:
        return TrustModel(value)
    except ValueError:
        _refuse("model", "is not a known model")


def _fields(value: object, names: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return an object with exactly these fields (Any: each is checked where it is used)."""
    if not isinstance(value, dict):
        _refuse(where, "is not an object")
    for name in names:
        if name not in value:
            _refuse(name, f"is missing in {where}")
    if len(value) != len(names):
        _refuse(where, f"has other fields than {', '.join(names)}")
    return value


def _parsed(data: bytes) -> object:
    if not isinstance(data, bytes):
        _refuse("snapshot", "is not bytes")
    try:
        parsed: object = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        _refuse("snapshot", "is not JSON in ASCII")
    return parsed


def _pair(amount: Amount) -> list[int]:
    return [amount.micro_epsilon, amount.delta_units]


def _checksum(body: object) -> str:
    return hashlib.sha256(canonical_json(body)).hexdigest()


def _refuse(field: str, problem: str) -> NoReturn:
    raise BadSnapshot(f"Ledger snapshot: {field} {problem}.")
