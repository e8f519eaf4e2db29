"""A copy of one subject's chain, read and checked: it answers everything and books nothing."""

from collections.abc import Sequence

from noisefloor.accounting.chain import ChainedRecord, ChainTail, replay
from noisefloor.accounting.chained_ledger import Appended, ChainedLedger
from noisefloor.accounting.spending import LedgerTerms
from noisefloor.errors import BrokenChain


class LedgerCopy(ChainedLedger):
    """The chain of one subject as it was handed out by whoever keeps the ledger.

    Args:
        terms: Budget, relation and model.
        subject: Whose chain.
        contents: Its records in order; BrokenChain names the first that is wrong.
    """

    __slots__ = ("_contents", "_ids", "_subject")

    def __init__(self, terms: LedgerTerms, subject: str, contents: Sequence[bytes]) -> None:
        super().__init__(terms)
        records, _ = replay(terms, subject, contents)
        self._subject = subject
        self._contents = list(contents)
        self._ids = {record.entry.spend_id: record.content for record in records}

    def subjects(self) -> list[str]:
        """Return the subject, if it has an entry."""
        return [self._subject] if self._contents else []

    def contents(self, subject: str, first: int = 0) -> list[bytes]:
        """Return the chained records of the subject, without the first ones."""
        return self._contents[first:] if subject == self._subject else []

    def _record_of(self, spend_id: str) -> bytes | None:
        return self._ids.get(spend_id)

    def _append(self, tail: ChainTail, record: ChainedRecord) -> Appended:
        raise BrokenChain("Nothing can be spent from a copy of a ledger.")
