"""The ledger with its anchor: every spend is on file beside the server before its release."""

from typing import Self

from redis import Redis

from noisefloor_services.ledger import RedisLedger
from noisefloor_services.ledger_anchor import Anchor
from noisefloor_services.ledger_errors import BEHIND, LedgerBehind
from noisefloor_services.ledger_holdings import Holdings
from noisefloor_services.ledger_terms import Terms


class AnchoredLedger(RedisLedger):
    """A ledger that notices when its server was set back, and then refuses."""

    __slots__ = ("_anchor",)

    _anchor: Anchor

    @classmethod
    def open_at(cls, client: "Redis", name: str, terms: Terms, anchor: Anchor) -> Self:
        """Open a ledger that is there and holds at least what its anchor says.

        Raises:
            LedgerBehind: It holds less.
            BadAnchor: The anchor is missing, damaged, or of another ledger.
        """
        ledger = cls.open(client, name, terms)
        ledger._anchor = anchor
        ledger.check_anchor()
        return ledger

    def check_anchor(self) -> None:
        """Raise LedgerBehind if the server holds less than the anchor says."""
        anchored = self._anchor.read()
        if anchored.exceeds(self.holdings(anchored.subjects)):
            raise LedgerBehind(f"{self._anchor.path}: {BEHIND}")

    def publish(self, spend_id: str, content: bytes) -> bytes:
        """Keep what was released for a spend, once; return what is kept and on file."""
        kept = super().publish(spend_id, content)
        self._note_settled()
        return kept

    def published(self, spend_id: str) -> bytes | None:
        """Return what was released for a spend, or None while nothing was."""
        kept = super().published(spend_id)
        if kept is not None:
            self._note_settled()  # whoever stored it may have died before it was on file
        return kept

    def _note_settled(self) -> None:
        self._note(Holdings(settled=self._client.scard(self._keys.settled)))

    def _least(self) -> Holdings:
        return self._anchor.read()

    def _note(self, holdings: Holdings) -> None:
        self._anchor.raise_to(holdings)
