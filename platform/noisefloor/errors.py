"""Every error raised on purpose.

    NoisefloorError
    ├── BadParameter            a constructor argument breaks its rule (also a ValueError)
    ├── OutOfDomain             a value lies outside a mechanism's domain (also a ValueError)
    ├── StreamReopened          a random stream would repeat coins that were already used
    ├── ForkedStream            a random stream crossed a fork
    ├── UnlikeNeighbours        guarantees under different relations were to be added
    ├── BudgetExceeded          a ledger was asked for more than it has; nothing was spent
    ├── SpendConflict           a spend id came back with another cost or release
    ├── BadSnapshot             a ledger snapshot cannot be read
    ├── UnresolvedRate          a sample is too small for the rate that was asked of it
    └── UnknownMechanism        a name that the audit's line-up does not have

Errors name parameters, domains and types. They never contain a user's value: a log line must not
become a release.
"""


class NoisefloorError(Exception):
    """Base of every error that this package raises on purpose."""


class BadParameter(NoisefloorError, ValueError):
    """A constructor argument breaks its rule.

    Args:
        name: The parameter.
        value: What was given; a parameter is public, so it may be shown.
        rule: What it has to satisfy, read after the value: ``> 0``.
    """

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(f"Expected {name}={value!r} {rule}.")
        self.name = name
        self.value = value
        self.rule = rule

    def __reduce__(self) -> tuple[type, tuple[str, object, str]]:
        return type(self), (self.name, self.value, self.rule)


class OutOfDomain(NoisefloorError, ValueError):
    """A value lies outside the domain; the text names the domain, never the value."""


class StreamReopened(NoisefloorError):
    """A stream that already gave coins in this run was opened again."""


class ForkedStream(NoisefloorError):
    """A seeded stream was used in another process than the one that made it."""


class UnlikeNeighbours(NoisefloorError):
    """Guarantees under unlike relations or models cannot be added as they are."""


class BudgetExceeded(NoisefloorError):
    """The ledger refused: the spend would pass the budget. Nothing was spent."""

    def __init__(self, subject: str, asked: str, left: str) -> None:
        super().__init__(
            f"Budget of {subject} exceeded: asked for {asked}, {left} left; nothing was spent. "
            "Ask the ledger what spent it, lower the cost, or wait for the next budget."
        )
        self.subject = subject
        self.asked = asked
        self.left = left

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.subject, self.asked, self.left)


class SpendConflict(NoisefloorError):
    """A spend id was used before for a different spend."""


class BadSnapshot(NoisefloorError):
    """A ledger snapshot is damaged or of another ledger."""


class UnresolvedRate(NoisefloorError):
    """The sample cannot resolve the rate that was asked of it."""


class UnknownMechanism(NoisefloorError):
    """No mechanism of that name stands in the line-up."""
