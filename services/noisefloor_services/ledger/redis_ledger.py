"""The privacy ledger on a Redis or Valkey server: chained records for many processes.

A spend is decided as in memory (``accounting.ChainedLedger``) and appended in one atomic script,
if the end of the chain is still the one that it was decided on. Beside every spend the server
keeps the bytes that were released for it: they are written once, and a retry gets the same bytes.

Nothing here expires, and nothing is ever changed. What was acknowledged is as durable as the
server is set up to be: use ``appendonly yes`` with ``appendfsync always`` and no eviction, or a
crash may forget a spend whose release is already out.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

from redis import Redis

from noisefloor import accounting
from noisefloor.accounting import AppendStatus, LedgerTerms
from noisefloor.checks import check_count
from noisefloor.errors import (
    BadParameter,
    BadSnapshot,
    BrokenChain,
    LedgerAbsent,
    SpendConflict,
    UnlikeTerms,
)
from noisefloor_services.ledger import scripts as scripts
from noisefloor_services.ledger.terms import (
    BEHIND,
    LedgerBehind,
    LedgerKeys,
    LedgerTotals,
    ReleaseSealed,
    ReleaseUnspent,
    SubjectTotals,
)

MOST_RELEASE_BYTES = 64 << 20
"""A released artefact is at most this long."""

_HASH = 64
_SCRIPTS = ("APPEND", "PUBLISH", "READ", "FIND", "SEAL", "SETTLE")
_MENDING = ("SEAL", "SETTLE")
"""Scripts that take no notice of how much the client has seen: what is missing may come back."""


class RedisLedger(accounting.ChainedLedger):
    """Budgets of many subjects under one relation and one model, kept by a server.

    Made by ``create`` or by ``open``.
    """

    __slots__ = ("_client", "_id", "_keys", "_scripts", "_seen")

    def __init__(
        self,
        client: "Redis",
        keys: LedgerKeys,
        terms: LedgerTerms,
        ledger_id: bytes,
        seen: int,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(terms, clock)
        self._client = client
        self._keys = keys
        self._id = ledger_id
        self._seen = seen
        # register_script sends a script again to a server that has forgotten it.
        self._scripts = {name: client.register_script(getattr(scripts, name)) for name in _SCRIPTS}

    @classmethod
    def create(
        cls,
        client: "Redis",
        name: str,
        terms: LedgerTerms,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Make a ledger where there is none, or open the one that has the same terms.

        The operator calls it once: on a server that lost its data it would give full budgets
        again. Services call ``open``.
        """
        return cls._opened(client, name, terms, secrets.token_hex(16), 0, clock)

    @classmethod
    def open(
        cls,
        client: "Redis",
        name: str,
        terms: LedgerTerms,
        seen: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open a ledger that is there: LedgerAbsent or UnlikeTerms otherwise.

        Args:
            client: One that returns bytes.
            name: Of the ledger.
            terms: What its terms have to be.
            seen: How many entries it had when it was last seen (``entries_seen``, kept wherever
                the server's own backups do not reach). A server that was set back to fewer
                answers with LedgerAbsent to everything, until the missing ones are restored.
            clock: Unix time in seconds.
        """
        return cls._opened(client, name, terms, "", check_count(seen, "seen", least=0), clock)

    @classmethod
    def _opened(
        cls,
        client: "Redis",
        name: str,
        terms: LedgerTerms,
        new_id: str,
        seen: int,
        clock: Callable[[], float],
    ) -> Self:
        if client.get_connection_kwargs().get("decode_responses"):
            raise BadParameter("client", "<client>", "one that returns bytes")
        _check_no_eviction(client)
        keys = LedgerKeys(name)
        create = client.register_script(scripts.CREATE)
        if client.exists(keys.terms_of_1) and not client.exists(keys.terms):
            raise UnlikeTerms(f"Ledger {name} is of format 1: run migrate-ledger.")
        arguments: list[bytes | str] = [terms.content, new_id]
        ledger_id, stored = cast(list[bytes | None], create(keys=[keys.terms], args=arguments))
        if ledger_id is None:
            raise LedgerAbsent(f"There is no ledger {name} on this server: create or restore it.")
        if stored != terms.content:
            raise UnlikeTerms(f"Ledger {name} has another budget, relation or model.")
        return cls(client, keys, terms, ledger_id, seen, clock=clock)

    @property
    def entries_seen(self) -> int:
        """How many entries there were at least; it can only grow."""
        return self._seen

    def subjects(self) -> list[str]:
        """Return the subjects that have an entry, sorted."""
        names = cast(set[bytes], self._client.smembers(self._keys.subjects))
        return sorted(name.decode() for name in names)

    def contents(self, subject: str, first: int = 0) -> list[bytes]:
        """Return the chained records of a subject as they are stored, without the first ones."""
        return [_content(stored) for stored in self._read(subject, first)]

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Keep what was released for a spend, once; return what is kept.

        The first writer wins: all others get the first one's bytes and have to send those.

        Raises:
            ReleaseUnspent: Nothing was spent under this id.
            ReleaseSealed: The spend was restored without its release.
        """
        accounting.check_text(spend_id, "spend_id")
        if not isinstance(content, bytes) or len(content) > MOST_RELEASE_BYTES:
            raise BadParameter("content", "<release>", f"at most {MOST_RELEASE_BYTES} bytes")
        keys = [self._keys.terms, self._keys.places, self._keys.sealed]
        keys += [self._keys.kept(spend_id), self._keys.settled]
        answer, *kept = self._run("PUBLISH", keys, spend_id, content, self._least().settled)
        if answer == b"unspent":
            raise ReleaseUnspent(f"Nothing was spent under {spend_id}: nothing is released.")
        if answer == b"sealed":
            raise ReleaseSealed(
                f"Spend {spend_id} was restored without what it released. That may be out; "
                "a second draw would not be paid for. Use a new spend."
            )
        return kept[0] if kept else content

    def published(self, spend_id: str) -> bytes | None:
        """Return what was released for a spend, or None while nothing was."""
        kept = self._client.get(self._keys.kept(accounting.check_text(spend_id, "spend_id")))
        return cast(bytes | None, kept)

    def restore(self, data: bytes, released: Mapping[str, bytes] | None = None) -> int:
        """Take over a backup: the union by spend id. What was spent can only grow.

        Args:
            data: A snapshot, of this ledger or of one with the same terms.
            released: What was released for its spends, by spend id. A spend that is new here and
                comes without is sealed: what it released may be out, so it is not drawn again.

        Returns:
            How many entries were new.

        Raises:
            BadSnapshot: Damaged, or of another ledger; nothing changes.
            SpendConflict: An id stands for another spend or another release; nothing changes.
        """
        theirs = accounting.decode_ledger(data)
        for name in ("budget", "neighbours", "model"):
            if getattr(theirs, name) != getattr(self, name):
                raise BadSnapshot(f"Ledger snapshot: {name} is that of another ledger.")
        entries = sorted(theirs.entries, key=lambda one: (not one.is_carried, one.spend_id))
        # Opened anew: what this client has seen, and what an anchor says, may be missing here.
        raw = RedisLedger(self._client, self._keys, self.terms, self._id, 0, clock=self._clock)
        raw._check_restorable(entries, released or {})
        return sum(raw._restored(one, (released or {}).get(one.spend_id)) for one in entries)

    def ledger_totals(self, subjects: Iterable[str] = ()) -> LedgerTotals:
        """Return what the server says of all subjects that have an entry, and of the given ones.

        Nothing of it is checked: an anchor is compared with it.
        """
        names = sorted({*self.subjects(), *subjects})
        raw = RedisLedger(self._client, self._keys, self.terms, self._id, 0, clock=self._clock)
        tails = {name: raw._tail_after(name, raw._last(name)) for name in names}
        parts = {name: SubjectTotals.of(tail) for name, tail in tails.items()}
        return LedgerTotals(parts, self._client.scard(self._keys.settled))

    def head_at(self, subject: str, position: int) -> str:
        """Return the hash of the record at a position, or nothing where there is none."""
        stored = self._client.lindex(self._keys.log(subject), position - 1)
        return "" if stored is None else cast(bytes, stored)[:_HASH].decode("ascii", "replace")

    def seal(self) -> int:
        """Seal every spend that has no release, and return how many there were."""
        keys = self._keys
        return int(self._run("SEAL", [keys.terms, keys.places, keys.sealed, keys.settled])[1])

    def _least(self) -> LedgerTotals:
        """Return what the server has to hold for anything to be spent or released."""
        return LedgerTotals()

    def _append(
        self, tail: accounting.ChainTail, record: accounting.ChainedRecord
    ) -> accounting.Appended:
        subject, spend_id = record.entry.subject, record.entry.spend_id
        keys = self._keys
        named = [keys.terms, keys.places, keys.log(subject), keys.subjects]
        stored = record.digest.encode("ascii") + record.content
        least = self._least().of(subject)
        answer, *rest = self._run(
            "APPEND",
            named,
            *(spend_id, tail.position, tail.head, stored, least.position, least.head, subject),
        )
        if answer == b"appended":
            self._seen = max(self._seen, int(rest[0]))
            return accounting.Appended(AppendStatus.APPENDED)
        known = _content(rest[0]) if rest else None
        return accounting.Appended(AppendStatus(answer.decode()), known)

    def _last(self, subject: str) -> bytes | None:
        found = self._read(subject, -1)
        return _content(found[0]) if found else None

    def _record_of(self, spend_id: str) -> bytes | None:
        answer, *found = self._run("FIND", [self._keys.terms, self._keys.places], spend_id)
        return None if answer == b"none" else _content(found[0])

    def _read(self, subject: str, first: int) -> list[bytes]:
        keys = [self._keys.terms, self._keys.places, self._keys.log(subject)]
        return self._run("READ", keys, first)[1:]

    def _check_restorable(
        self, entries: list[accounting.LedgerEntry], released: Mapping[str, bytes]
    ) -> None:
        """Refuse a backup as a whole, before the first entry is booked."""
        totals: dict[str, accounting.LossTotal] = {}
        for entry in entries:
            known = self.entry(entry.spend_id)
            kept, content = self.published(entry.spend_id), released.get(entry.spend_id)
            is_redrawn = content is not None and kept is not None and kept != content
            if (known is not None and known != entry) or is_redrawn:
                raise SpendConflict(accounting.conflict(entry.spend_id))
            if known is None:
                before = totals.get(entry.subject) or self.total(entry.subject)
                totals[entry.subject] = accounting.followed(self.terms, before, entry)

    def _restored(self, entry: accounting.LedgerEntry, content: bytes | None) -> bool:
        keys = self._keys
        named = [keys.terms, keys.places, keys.sealed, keys.settled, keys.kept(entry.spend_id)]
        kept = b"" if content is None else b"+" + content
        if self._run("SETTLE", named, entry.spend_id, kept)[0] == b"redrawn":
            raise SpendConflict(accounting.conflict(entry.spend_id))
        return self.append_unchecked(entry)

    def _run(self, name: str, keys: list[str], *arguments: str | bytes | int) -> list[bytes]:
        seen = 0 if name in _MENDING else self._seen
        # Any: the library types one answer for its blocking and its asynchronous clients.
        answer: Any = self._scripts[name](keys=keys, args=[self._id, seen, *arguments])
        if answer[0] == b"lost":
            raise LedgerAbsent(
                "The server no longer holds what it held of this ledger. Restore a backup; until "
                "then nothing is spent and nothing is released."
            )
        if answer[0] == b"behind":
            raise LedgerBehind(BEHIND)
        return cast(list[bytes], answer)


def _content(stored: bytes) -> bytes:
    """Return a record without the hash before it; ``replay`` checks the chain itself."""
    if len(stored) <= _HASH:
        raise BrokenChain("A record of the ledger is gone or damaged.")
    return stored[_HASH:]


def _check_no_eviction(client: "Redis") -> None:
    """Refuse a server that may throw spends away when its memory is full."""
    memory = client.info("memory")
    if str(memory.get("maxmemory_policy", "noeviction")).startswith("allkeys"):
        raise UnlikeTerms(
            "This server evicts keys when it is full: set maxmemory-policy noeviction."
        )
