"""Uploaded data sets: registered on the server for ever, their rows in this process alone.

A name is used once. Its schema, budget and purpose never change, and when it is dropped its name
is used up: with the same name again, the same people could be published from under a new budget.
Rows are never written to disk or to the server, and are never logged.
"""

import hashlib
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from fastapi import HTTPException
from redis import Redis

from noisefloor.cards import SigningKey
from noisefloor.errors import BadTable
from noisefloor.roles import Audit, ModelPublisher, PublicationMethod, methods_of
from noisefloor.tables import DataRecords, DataSchema, TextRecords, data_schema_of, decode_data
from noisefloor.wire.messages import DataSetMessage
from noisefloor_services.ledger import LedgerKeys, RedisLedger
from noisefloor_services.publisher.ledgers import LedgerPlace
from noisefloor_services.settings import Settings

MOST_DATA_SETS = 64
"""Uploaded data sets at one time."""

MOST_CELLS = 1 << 26
"""Rows times columns of all uploaded data sets: half a gigabyte in memory."""

_CELL_BYTES = 8

_REGISTER = """
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 'dropped' end
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then return known == ARGV[2] and 'same' or 'other' end
if redis.call('HLEN', KEYS[1]) - redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[3]) then
  return 'full'
end
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return 'new'
"""
"""KEYS: documents, dropped names. ARGV: name, document, how many there may be."""

_DROP = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('SADD', KEYS[2], ARGV[1])
"""
"""KEYS: documents, dropped names. ARGV: name."""

_REFUSED = {
    b"dropped": "The name was used for a data set that was dropped: take another.",
    b"other": "The name stands for a data set of another schema, budget or purpose.",
    b"full": f"There are {MOST_DATA_SETS} uploaded data sets: drop one.",
}
NO_EXPERIMENTS = (
    "This publisher takes no experiments: start one with NOISEFLOOR_EXPERIMENTS=on "
    "(noisefloor up --experiments)."
)


@dataclass(frozen=True, slots=True, eq=False)
class UploadedDataSet:
    """A data set as this process has it.

    Attributes:
        name: Of the data set.
        message: Declaration, budget and purpose.
        schema: What is declared.
        ledger: Of its own.
        version: Of its rows; 0 while there are none.
        digest: Of the bytes that were uploaded.
        cells: Rows times columns.
        methods: Made for this version of the rows.
        signer: Signs the cards, if there is a key.
    """

    name: str
    message: DataSetMessage
    schema: DataSchema
    ledger: RedisLedger
    version: int = 0
    digest: str = ""
    cells: int = 0
    methods: Mapping[str, PublicationMethod] = field(default_factory=dict)
    signer: SigningKey | None = None

    def publisher(self) -> ModelPublisher:
        """Return the role on this version of the rows, or answer 409 while there are none."""
        if not self.methods:
            detail = f"Its records are not here: PUT /data-sets/{self.name}/records/VERSION."
            raise HTTPException(409, detail)
        return ModelPublisher(
            self.ledger,
            self.ledger,
            self.methods.values(),
            data_sets=[self.name],
            is_experiment=self.message.experiment,
            signer=self.signer,
        )


class UploadedDataSets:
    """The uploaded data sets of a publisher.

    Args:
        settings: Of the service.
        client: Of the server that keeps the ledgers.
        taken: The names of the operator's data sets.
        audit: Plays the games of cards, if there is an auditor.
        signer: Signs the cards, if there is a key.
    """

    def __init__(
        self,
        settings: Settings,
        client: "Redis",
        taken: Collection[str],
        audit: Audit | None,
        signer: SigningKey | None = None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._taken = frozenset(taken)
        self._audit = audit
        self._signer = signer
        keys = LedgerKeys(settings.ledger)
        self._keys = [keys.data_sets, keys.dropped]
        self._register = client.register_script(_REGISTER)
        self._drop = client.register_script(_DROP)
        self._lock = threading.RLock()
        self._loaded: dict[str, UploadedDataSet] = {}

    def register(self, name: str, message: DataSetMessage) -> None:
        """Register a data set, once or again; HTTPException says why not."""
        if name in self._taken:
            raise HTTPException(409, "The name stands for a data set of the operator.")
        if message.experiment and not self._settings.experiments:
            raise HTTPException(409, NO_EXPERIMENTS)
        schema = _schema(message)
        place = LedgerPlace.of_data_set(self._settings, name, message.budget)
        arguments: list[str | int] = [name, message.model_dump_json(), MOST_DATA_SETS]
        # Locked from the first look to the last change: a drop in between would be undone.
        with self._lock:
            if not self._client.hexists(self._keys[0], name):
                place.check_anchor()  # a server that was emptied gets no larger budget
            answer = self._register(keys=self._keys, args=arguments)
            if answer in _REFUSED:
                raise HTTPException(409, _REFUSED[answer])
            if place.anchor_path is not None:
                place.anchor_path.parent.mkdir(mode=0o700, exist_ok=True)
            place.create(self._client)
            if name not in self._loaded:
                ledger = place.open(self._client)
                self._loaded[name] = UploadedDataSet(
                    name, message, schema, ledger, signer=self._signer
                )

    def upload(self, name: str, version: int, data: bytes) -> None:
        """Replace the rows of a data set by a later version, or answer why not."""
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            found = self.find(name)
            if found is None:
                raise HTTPException(404, "There is no such data set.")
            if (version, digest) == (found.version, found.digest):
                return
            if version <= found.version:
                raise HTTPException(409, "The records are of this version or a later one.")
            self._loaded[name] = self._updated(found, version, digest, data)

    def find(self, name: str) -> UploadedDataSet | None:
        """Return a data set that was not dropped; after a restart it has no rows."""
        with self._lock:
            if self._client.sismember(self._keys[1], name):  # perhaps by another process
                self._loaded.pop(name, None)
                return None
            found = self._loaded.get(name) or self._registered(name)
            if found is not None:
                self._loaded[name] = found
            return found

    def ledger(self, name: str) -> RedisLedger | None:
        """Return the ledger of a data set, dropped or not."""
        found = self._loaded.get(name) or self._registered(name)
        return None if found is None else found.ledger

    def names(self) -> list[str]:
        """Return the names of the data sets that were not dropped."""
        listed, dropped = self._client.hkeys(self._keys[0]), self._client.smembers(self._keys[1])
        return sorted(name.decode() for name in cast(set[bytes], {*listed} - {*dropped}))

    def drop(self, name: str) -> bool:
        """Forget the rows of a data set, and use its name up; its ledger stays for ever."""
        with self._lock:
            self._loaded.pop(name, None)
            return bool(self._drop(keys=self._keys, args=[name]))

    def _registered(self, name: str) -> UploadedDataSet | None:
        """Return what the server has of a data set."""
        document = self._client.hget(self._keys[0], name)
        if document is None:
            return None
        message = DataSetMessage.model_validate_json(document)
        place = LedgerPlace.of_data_set(self._settings, name, message.budget)
        ledger = place.open(self._client)
        return UploadedDataSet(name, message, _schema(message), ledger, signer=self._signer)

    def _updated(
        self, found: UploadedDataSet, version: int, digest: str, data: bytes
    ) -> UploadedDataSet:
        """Return a data set with other rows; its methods are new, since plans depend on rows."""
        try:
            records = decode_data(data, found.schema)
        except BadTable as error:
            raise HTTPException(422, str(error)) from None
        cells = _cells(records, data)
        others = sum(one.cells for one in self._loaded.values()) - found.cells
        if others + cells > MOST_CELLS:
            raise HTTPException(409, "The uploaded data sets are too large together: drop one.")
        audit = self._audit if found.message.audit else None
        methods = methods_of({found.name: records}, audit, is_experiment=found.message.experiment)
        return replace(found, version=version, digest=digest, cells=cells, methods=methods)


def _cells(records: DataRecords, data: bytes) -> int:
    """Return the share of memory that rows take: cells, or as many as a text has bytes."""
    if isinstance(records, TextRecords):
        return len(data) // _CELL_BYTES
    return records.count * len(records.schema.columns)


def _schema(message: DataSetMessage) -> DataSchema:
    try:
        return data_schema_of(message.declaration, "declaration")
    except BadTable as error:
        raise HTTPException(422, str(error)) from None
