"""The privacy ledger on a Redis or Valkey server: ``accounting.Ledger`` for many processes.

The same answers as the ledger in memory, each in one atomic script: the cap is checked before
anything is spent, a retry with the same id is free, whole units only. Beside every spend it keeps
the bytes that were released for it: they are written once, and a retry gets the same bytes.

Nothing here expires. What was acknowledged is as durable as the server is set up to be: use
``appendonly yes`` with ``appendfsync always`` and no eviction, or a crash may forget a spend whose
release is already out.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self, cast

from redis import Redis

from noisefloor import accounting
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadSnapshot, BudgetExceeded, SpendConflict
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_services.ledger import scripts as scripts
from noisefloor_services.ledger.terms import (
    BEHIND,
    EXACT,
    LedgerAbsent,
    LedgerBehind,
    LedgerKeys,
    LedgerTerms,
    LedgerTotals,
    ReleaseSealed,
    ReleaseUnspent,
    SpendPreview,
    SubjectTotals,
    UnlikeTerms,
    check_text,
)

MOST_RELEASE_BYTES = 64 << 20
"""A released artefact is at most this long."""


class RedisLedger:
    """Budgets of many subjects under one relation and one model, kept by a server.

    Made by ``create`` or by ``open``. The methods that ``accounting.Ledger`` has also mean the
    same here; those that read (``what_spent``, ``why``, ...) are answered by a ``Ledger`` that is
    filled with the subject's entries, so that both give one statement.
    """

    __slots__ = ("_client", "_id", "_keys", "_scripts", "_seen", "_terms", "_unit")

    def __init__(
        self, client: "Redis", keys: LedgerKeys, terms: LedgerTerms, ledger_id: bytes, seen: int
    ) -> None:
        self._client = client
        self._keys = keys
        self._terms = terms
        self._id = ledger_id
        self._seen = seen
        self._unit = Guarantee(0.0, terms.neighbours, model=terms.model)
        # register_script sends a script again to a server that has forgotten it.
        self._scripts = {
            name: client.register_script(getattr(scripts, name))
            for name in ("SPEND", "PUBLISH", "READ", "READ_TOTALS", "SEAL", "MERGE")
        }

    @classmethod
    def create(cls, client: "Redis", name: str, terms: LedgerTerms) -> Self:
        """Make a ledger where there is none, or open the one that has the same terms.

        The operator calls it once: on a server that lost its data it would give full budgets
        again. Services call ``open``.
        """
        return cls._opened(client, name, terms, secrets.token_hex(16), 0)

    @classmethod
    def open(cls, client: "Redis", name: str, terms: LedgerTerms, seen: int = 0) -> Self:
        """Open a ledger that is there: LedgerAbsent or UnlikeTerms otherwise.

        Args:
            client: One that returns bytes.
            name: Of the ledger.
            terms: What its terms have to be.
            seen: How many entries it had when it was last seen (``entries_seen``, kept wherever
                the server's own backups do not reach). A server that was set back to fewer
                answers with LedgerAbsent to everything, until the missing ones are restored.
        """
        return cls._opened(client, name, terms, "", check_count(seen, "seen", least=0))

    @classmethod
    def _opened(
        cls, client: "Redis", name: str, terms: LedgerTerms, new_id: str, seen: int
    ) -> Self:
        if client.get_connection_kwargs().get("decode_responses"):
            raise BadParameter("client", "<client>", "one that returns bytes")
        _check_no_eviction(client)
        keys, budget = LedgerKeys(name), terms.budget
        create = client.register_script(scripts.CREATE)
        arguments: list[bytes | str | int] = [
            terms.content,
            new_id,
            budget.micro_epsilon,
            budget.delta_units,
        ]
        ledger_id, stored = cast(list[bytes | None], create(keys=[keys.terms], args=arguments))
        if ledger_id is None:
            raise LedgerAbsent(f"There is no ledger {name} on this server: create or restore it.")
        if stored != terms.content:
            raise UnlikeTerms(f"Ledger {name} has another budget, relation or model.")
        return cls(client, keys, terms, ledger_id, seen)

    @property
    def entries_seen(self) -> int:
        """How many entries there were at least; it can only grow."""
        return self._seen

    @property
    def budget(self) -> accounting.Amount:
        """What each subject may spend."""
        return self._terms.budget

    @property
    def neighbours(self) -> Neighbours:
        """The relation of everything that is spent here."""
        return self._terms.neighbours

    @property
    def model(self) -> TrustModel:
        """The model of everything that is spent here."""
        return self._terms.model

    def spend(
        self,
        subject: str,
        spend_id: str,
        cost: Guarantee,
        release: str,
        proved: Guarantee | None = None,
        count: int = 1,
    ) -> accounting.LedgerEntry:
        """Debit ``count`` times the cost, or refuse and change nothing; see ``Ledger.spend``."""
        for name, text in (("subject", subject), ("spend_id", spend_id), ("release", release)):
            check_text(text, name)
        entry = accounting.entry_of(
            self._unit, spend_id, subject, release, cost, proved, count, self.left
        )
        debited = entry.debited
        # At EXACT no budget suffices; the server then looks for a retry only.
        taken = [min(EXACT, part) for part in (debited.micro_epsilon, debited.delta_units)]
        keys, written = self._subject_keys(subject), self._written(entry)
        answer, *totals = self._run(
            "SPEND", keys, spend_id, subject, written, *taken, *self._least().of(subject).numbers
        )
        if answer == b"conflict":
            raise SpendConflict(_conflict(spend_id))
        if answer == b"refused":
            left = accounting.Amount(*map(int, totals)).left_of(self.budget)
            raise BudgetExceeded(subject, debited.short_of(left))
        self._seen = max(self._seen, int(totals[0]))
        stored = replace(SubjectTotals.of(*totals[1:]), ids=frozenset({spend_id}))
        self._note(LedgerTotals({subject: stored}))
        return entry

    def would_spend(self, subject: str, cost: Guarantee, count: int = 1) -> SpendPreview:
        """Return what a new spend would do; nothing is spent."""
        left = self.left(check_text(subject, "subject"))
        try:
            debited = accounting.debit_of(self._unit, subject, cost, count, self.left)
        except BudgetExceeded:
            return SpendPreview(is_allowed=False, requested=None, left=left)
        return SpendPreview(self._fits(subject, debited), debited, left)

    def can_spend(self, subject: str, cost: Guarantee, count: int = 1) -> bool:
        """Tell whether a new spend would be accepted; nothing is spent."""
        return self.would_spend(subject, cost, count).is_allowed

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Keep what was released for a spend, once; return what is kept.

        The first writer wins: all others get the first one's bytes and have to send those.

        Raises:
            ReleaseUnspent: Nothing was spent under this id.
            ReleaseSealed: The spend was restored without its release.
        """
        check_text(spend_id, "spend_id")
        if not isinstance(content, bytes) or len(content) > MOST_RELEASE_BYTES:
            raise BadParameter("content", "<release>", f"at most {MOST_RELEASE_BYTES} bytes")
        keys = [self._keys.terms, self._keys.entries, self._keys.sealed]
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
        kept = self._client.get(self._keys.kept(check_text(spend_id, "spend_id")))
        return cast(bytes | None, kept)

    def entry(self, spend_id: str) -> accounting.LedgerEntry | None:
        """Return what was spent under an id, or None."""
        written = self._client.hget(self._keys.entries, check_text(spend_id, "spend_id"))
        return None if written is None else _entry(cast(bytes, written))

    def subjects(self) -> list[str]:
        """Return the subjects that have an entry, sorted."""
        names = cast(list[bytes], self._client.hkeys(self._keys.epsilons))
        return sorted(name.decode() for name in names)

    def spent(self, subject: str) -> accounting.Amount:
        """Return what was debited; after a merge it may lie above the budget."""
        return self._read(subject, "")[0]

    def left(self, subject: str) -> accounting.Amount:
        """Return what is left, never below zero."""
        return self.spent(subject).left_of(self.budget)

    def entries(self, subject: str) -> list[accounting.LedgerEntry]:
        """Return the entries of one subject, sorted by spend id."""
        return self.account(subject).entries(subject)

    def proved(self, subject: str) -> Guarantee:
        """Return what was proved of all that the subject spent; infinite if a part is."""
        return self.account(subject).proved(subject)

    def what_spent(self, subject: str) -> list[accounting.StatementLine]:
        """List what the budget went into, by release, the most expensive first."""
        return self.account(subject).what_spent(subject)

    def why(self, subject: str) -> str:
        """Answer "why did this budget run out?" in one paragraph."""
        return self.account(subject).why(subject)

    def account(self, subject: str) -> accounting.Ledger:
        """Return a ledger in memory with the entries of one subject."""
        total, entries = self._read(subject, "entries")
        ledger = accounting.Ledger.restore(self._snapshot_of(entries))
        if ledger.spent(subject) != total:
            raise BadSnapshot(f"Ledger on the server: the entries of {subject} miss its total.")
        return ledger

    def snapshot(self) -> bytes:
        """Write the ledger as bytes, the bytes of ``Ledger.snapshot``; releases are not in it."""
        stored = cast(dict[bytes, bytes], self._client.hgetall(self._keys.entries))
        return self._snapshot_of([_entry(written) for written in stored.values()])

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
        keys = [*self._subject_keys("")[:-1], self._keys.sealed, self._keys.settled]
        arguments: list[str | bytes | int] = []
        for entry in theirs.entries:
            keys += [self._keys.ids(entry.subject), self._keys.kept(entry.spend_id)]
            arguments += self._merged(entry, (released or {}).get(entry.spend_id))
        answer, *rest = self._run("MERGE", keys, *arguments)
        if answer in (b"conflict", b"redrawn"):
            raise SpendConflict(_conflict(rest[0].decode()))
        if answer == b"overflow":
            raise BadSnapshot("Ledger snapshot: entries add up to more than 64 bits hold.")
        return int(rest[0])

    def ledger_totals(self, subjects: Iterable[str] = ()) -> LedgerTotals:
        """Return the totals of all subjects that have an entry, and of the given ones."""
        names = sorted({*self.subjects(), *subjects})
        keys = [*self._subject_keys("")[:-1], self._keys.settled]
        keys += [self._keys.ids(name) for name in names]
        _, settled, *rest = self._run("READ_TOTALS", keys, *names)
        parts = {
            name: SubjectTotals.of(*rest[3 * at : 3 * at + 3]) for at, name in enumerate(names)
        }
        return LedgerTotals(parts, int(settled))

    def seal(self) -> int:
        """Seal every spend that has no release, and return how many there were."""
        keys = self._keys
        return int(self._run("SEAL", [keys.terms, keys.entries, keys.sealed, keys.settled])[1])

    def _least(self) -> LedgerTotals:
        """Return what the server has to hold for anything to be spent or released."""
        return LedgerTotals()

    def _note(self, ledger_totals: LedgerTotals) -> None:
        """Take note of what the server holds, before anything can be released for it."""

    def _merged(
        self, entry: accounting.LedgerEntry, content: bytes | None
    ) -> list[str | bytes | int]:
        for name in ("spend_id", "subject", "release"):
            check_text(getattr(entry, name), name)
        epsilon, delta = entry.debited.micro_epsilon, entry.debited.delta_units
        if max(epsilon, delta) >= EXACT:
            raise BadSnapshot("Ledger snapshot: an entry is larger than any budget can be.")
        kept = b"" if content is None else b"+" + content
        return [entry.spend_id, entry.subject, self._written(entry), epsilon, delta, kept]

    def _fits(self, subject: str, debited: accounting.Amount) -> bool:
        return (self.spent(subject) + debited).fits(self.budget)

    def _read(
        self, subject: str, what: str
    ) -> tuple[accounting.Amount, list[accounting.LedgerEntry]]:
        keys = self._subject_keys(subject)
        _, epsilon, delta, *entries = self._run("READ", keys, subject, what)
        return accounting.Amount(int(epsilon), int(delta)), [
            _entry(written) for written in entries
        ]

    def _written(self, entry: accounting.LedgerEntry) -> bytes:
        """Write an entry as a snapshot of itself alone, with a checksum of its own."""
        return self._snapshot_of([entry])

    def _snapshot_of(self, entries: list[accounting.LedgerEntry]) -> bytes:
        contents = accounting.LedgerContents(
            self.budget, self.neighbours, self.model, tuple(entries)
        )
        return accounting.encode_ledger(contents)

    def _subject_keys(self, subject: str) -> list[str]:
        keys = self._keys
        return [keys.terms, keys.entries, keys.epsilons, keys.deltas, keys.ids(subject)]

    def _run(self, name: str, keys: list[str], *arguments: str | bytes | int) -> list[bytes]:
        is_mending = name in ("MERGE", "READ_TOTALS", "SEAL")
        seen = 0 if is_mending else self._seen  # what is missing may be brought back
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


def _entry(written: bytes) -> accounting.LedgerEntry:
    return accounting.decode_ledger(written).entries[0]


def _conflict(spend_id: str) -> str:
    return (
        f"Spend {spend_id} was booked before with another subject, release, cost, proof, count or "
        "content. A retry has to repeat them; a new spend needs a new id."
    )


def _check_no_eviction(client: "Redis") -> None:
    """Refuse a server that may throw spends away when its memory is full."""
    memory = client.info("memory")
    if str(memory.get("maxmemory_policy", "noeviction")).startswith("allkeys"):
        raise UnlikeTerms(
            "This server evicts keys when it is full: set maxmemory-policy noeviction."
        )
