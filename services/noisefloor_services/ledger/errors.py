"""What the ledger on the server refuses beyond the errors of the ledger in memory.

NoisefloorError
├── LedgerAbsent            there is no ledger of that name, or it is not the one that was opened
├── LedgerBehind            the server was set back: it holds less than the anchor says
├── BadAnchor               the anchor is missing, damaged, or of another ledger
├── UnlikeTerms             the ledger has another budget, relation or model
├── ReleaseUnspent          something was to be released that nobody paid for
└── ReleaseSealed           what a restored spend released is not known, and is never redrawn
"""

from noisefloor.errors import NoisefloorError

BEHIND = (
    "The server holds less of this ledger than its anchor says: it was set back. Restore a newer "
    "backup, or run restore-ledger; until then nothing is spent and nothing is released."
)


class LedgerAbsent(NoisefloorError):
    """The server holds no such ledger; an empty server must not pass for an unspent budget."""


class LedgerBehind(NoisefloorError):
    """The server holds less than it held: it was set back to an old backup, or emptied."""


class BadAnchor(NoisefloorError):
    """The anchor cannot be read or written, or is another ledger's."""


class UnlikeTerms(NoisefloorError):
    """The ledger on the server has another budget, relation or model."""


class ReleaseUnspent(NoisefloorError):
    """Nothing was spent under this id: spend first, release afterwards."""


class ReleaseSealed(NoisefloorError):
    """The spend came from a backup without its release; drawing it again would be a second one."""
