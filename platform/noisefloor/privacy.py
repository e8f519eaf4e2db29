"""Privacy values: what is distinguished, what is guaranteed, what is claimed, proved and audited.

These are plain frozen values. How guarantees add up is the business of ``accounting``; how an
adversary reaches a lower bound is that of ``adversary``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from noisefloor.errors import BadParameter, IncompatibleGuarantees


class Neighbours(Enum):
    """Which two inputs a guarantee makes hard to tell apart."""

    BIT = "bit"  # one bit of a user's vector flips
    MOVE_ONE = "move-one"  # one click moves to another ad: two bits flip, their number stays
    ITEM = "item"  # one entry of a user's data changes
    RECORD_ADD_REMOVE = "record-add-remove"  # one record is there or not
    RECORD_SUBSTITUTE = "record-substitute"  # one record becomes another
    DOCUMENT = "document"  # one text is there or not
    USER = "user"  # everything one user holds becomes anything else


class TrustModel(Enum):
    """Who is trusted: nobody (noise on the device) or a curator (noise on the result)."""

    LOCAL = "local"
    CENTRAL = "central"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta) differential privacy under a stated relation.

    "No guarantee" is a value too: epsilon is infinite, and the reason says why.
    """

    epsilon: float
    neighbours: Neighbours
    delta: float = 0.0
    model: TrustModel = TrustModel.LOCAL
    reason: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise BadParameter("epsilon", self.epsilon, ">= 0")
        if not 0 <= self.delta <= 1:
            raise BadParameter("delta", self.delta, "in [0, 1]")
        if math.isinf(self.epsilon) and not self.reason:
            raise BadParameter("reason", self.reason, "to say why there is no guarantee")

    @classmethod
    def none(
        cls, reason: str, neighbours: Neighbours, model: TrustModel = TrustModel.LOCAL
    ) -> "Guarantee":
        """Make the value that promises nothing, with its reason."""
        return cls(math.inf, neighbours, delta=0.0, model=model, reason=reason)

    @property
    def is_finite(self) -> bool:
        """Whether anything is guaranteed."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True, slots=True)
class LowerBound:
    """An epsilon that an adversary reached, and how far the figure can be relied upon.

    Attributes:
        epsilon: The true epsilon is at least this, unless the sample was freakish.
        confidence: One minus the probability of such a sample.
        trials: Held-out runs on each of the two inputs.
        ceiling: The largest bound that n trials can reach at that confidence.
    """

    epsilon: float
    confidence: float
    trials: int
    ceiling: float

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise BadParameter("epsilon", self.epsilon, ">= 0")
        if not 0 <= self.confidence <= 1:
            raise BadParameter("confidence", self.confidence, "in [0, 1]")

    def could_contradict(self, epsilon: float) -> bool:
        """Whether anything was found, and the trials can show more than this epsilon."""
        return self.epsilon > 0 and self.ceiling > epsilon

    @property
    def reading(self) -> str:
        """Say what was found; of nothing, how much could have been found."""
        if self.epsilon:
            return f"epsilon is at least {math.floor(100 * self.epsilon) / 100:g}"
        most = f"{math.ceil(100 * self.ceiling) / 100:g}"
        return f"nothing found; {self.trials:,} trials could have shown epsilon {most} at most"


class ClaimVerdict(StrEnum):
    """What was found about a claim, a flow of reports or by an audit, the worst first."""

    BROKEN = "broken"  # an attack reached more than is proved: proof or code is wrong
    MISFIT = "misfit"  # reports do not follow the distribution that is declared of them
    UNACCOUNTED = "unaccounted"  # wire, server and ledger disagree, or a frame carries more
    OVERCLAIMED = "overclaimed"  # less is proved, or more was reached, than is claimed
    UNPROTECTED = "unprotected"  # an infinite epsilon is claimed: nothing is promised
    BLIND = "blind"  # this detector raised a false alarm or misses its planted fault
    UNDECIDED = "undecided"  # the audit found nothing, or could not have contradicted the claim
    CONSISTENT = "consistent"  # the detector could have contradicted the claim, and did not
    HOLDS = "holds"  # what is proved is within what is claimed, and nothing contradicts it

    @property
    def is_fatal(self) -> bool:
        """Whether a run in which it is found has failed, whatever its gates say."""
        return self in (ClaimVerdict.BROKEN, ClaimVerdict.MISFIT, ClaimVerdict.UNACCOUNTED)


def worst_verdict(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Return the worst of some verdicts; of none, that nothing contradicts."""
    order = list(ClaimVerdict)
    return min(verdicts, key=order.index, default=ClaimVerdict.HOLDS)


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """What was seen of one flow of a run: whether its reports fit, and whether sums agree.

    Attributes:
        flow: The name of the flow.
        rows: Reports that were read where they arrived, each once.
        tests: Exact tests of their fit to the declared distribution.
        p_value: The smallest of the tests, times their number; 1 if there was none.
        misfit: The rejected test in words, with its figures; empty if none was rejected.
        faults: Where wire, server and ledger disagree; in words, with figures.
        is_blind: Whether the tests would have missed noise a quarter too small.
    """

    flow: str
    rows: int = 0
    tests: int = 0
    p_value: float = 1.0
    misfit: str = ""
    faults: tuple[str, ...] = ()
    is_blind: bool = False

    @property
    def verdict(self) -> ClaimVerdict:
        """Say in one word what was found."""
        if self.misfit:
            return ClaimVerdict.MISFIT
        if self.faults:
            return ClaimVerdict.UNACCOUNTED
        is_blind = self.is_blind or not self.tests
        return ClaimVerdict.BLIND if is_blind else ClaimVerdict.CONSISTENT

    @property
    def causes(self) -> tuple[str, ...]:
        """What is wrong with the flow, each in words with figures."""
        return (*((self.misfit,) if self.misfit else ()), *self.faults)


@dataclass(frozen=True, slots=True)
class Claim:
    """One epsilon three times: claimed, proved, audited; all under one relation.

    Attributes:
        claimed: What the paper or the configuration says.
        proved: What follows from the parameters as rounded and used.
        audited: What an attack reached, if there was one.
        null: What the same attack reached where there is nothing to be found.
        planted: What it reached on the same inputs, randomised at a third more epsilon.
        evidence: What was seen of the flows that the claim is about.
    """

    claimed: Guarantee
    proved: Guarantee
    audited: LowerBound | None = None
    null: LowerBound | None = None
    planted: LowerBound | None = None
    evidence: tuple[FlowEvidence, ...] = ()

    def __post_init__(self) -> None:
        said, shown = self.claimed, self.proved
        if said.neighbours is not shown.neighbours or said.model is not shown.model:
            raise IncompatibleGuarantees(
                f"A claim for {said.neighbours.value} neighbours in the {said.model.value} model "
                f"cannot be set beside a proof for {shown.neighbours.value} neighbours in the "
                f"{shown.model.value} model."
            )

    @property
    def verdict(self) -> ClaimVerdict:
        """Say in one word what the three numbers mean together.

        ``holds`` rests on the proof: an audit can contradict a claim and never confirm it, so
        what an audit was worth is said by ``audit_verdict``. A proof is about the declared
        distribution: where reports do not follow it, no proof speaks of them.
        """
        seen = worst_verdict(one.verdict for one in self.evidence if one.verdict.is_fatal)
        return worst_verdict((self._figures_verdict, seen))

    @property
    def _figures_verdict(self) -> ClaimVerdict:
        if self._reached > self.proved.epsilon:
            return ClaimVerdict.BROKEN
        if not self.claimed.is_finite:
            return ClaimVerdict.UNPROTECTED
        if max(self._reached, self.proved.epsilon) > self.claimed.epsilon:
            return ClaimVerdict.OVERCLAIMED
        if self.proved.delta > self.claimed.delta:
            return ClaimVerdict.OVERCLAIMED
        return ClaimVerdict.HOLDS

    @property
    def audit_verdict(self) -> ClaimVerdict | None:
        """Say what the audit alone shows; None if there was none.

        Silence is ``consistent`` with the claim only if the audit reached something and could
        have reached more than is claimed and proved; otherwise it is ``undecided``. An audit
        that raised an alarm where nothing is to be found, or missed the fault that was planted
        for it, is ``blind``.
        """
        if self.audited is None:
            return None
        if self._reached > self.proved.epsilon:
            return ClaimVerdict.BROKEN
        if self._reached > self.claimed.epsilon:
            return ClaimVerdict.OVERCLAIMED
        has_alarm = self.null is not None and self.null.epsilon > 0
        if has_alarm or (self.planted is not None and not self._finds_planted(self.planted)):
            return ClaimVerdict.BLIND
        least = min(self.claimed.epsilon, self.proved.epsilon)
        can_decide = self.audited.could_contradict(least)
        return ClaimVerdict.CONSISTENT if can_decide else ClaimVerdict.UNDECIDED

    def _finds_planted(self, planted: LowerBound) -> bool:
        return planted.epsilon > min(self.claimed.epsilon, self.proved.epsilon)

    @property
    def _reached(self) -> float:
        return self.audited.epsilon if self.audited else 0.0


def number_or_inf(value: float) -> float | str:
    """Write infinity as the string "inf": JSON has no number for it."""
    if math.isnan(value) or value == -math.inf:
        raise BadParameter("value", value, "to be a number or plus infinity")
    return "inf" if math.isinf(value) else value
