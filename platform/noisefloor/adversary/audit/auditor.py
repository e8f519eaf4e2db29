"""The auditor: a lower bound on epsilon from runs on two neighbouring inputs.

Half of the runs choose the event that tells the inputs apart best, by the stated likelihood or by
what was seen; the other half says how well it does, with Clopper-Pearson limits: so the choice
costs nothing and the bound holds for whatever score was used. Every audit runs beside two others:
a *null* (the same input twice: any bound above zero is a false alarm) and a *planted* fault (noise
a quarter too small: if it is not found, the audit had no power and its silence says nothing).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor import privacy
from noisefloor.adversary.audit.bayes import ReportDistribution
from noisefloor.adversary.audit.intervals import ceiling, epsilon_bound
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import FiniteMechanism, Mechanism, exact_epsilon
from noisefloor.randomness import SeededSource

FALSE_ACCUSATION = 1e-4
"""The probability that any verdict of a whole audit wrongs a correct mechanism."""

DEFAULT_TRIALS = 400_000
FEWEST_TRIALS = 1_000

PLANTED_FACTOR = 4 / 3
"""Noise a quarter too small makes epsilon a third larger."""

_CANDIDATES = 2_000
_CODE_BITS = 12
"""Up to 2**12 kinds of reports are counted one by one."""

_FLOAT_NOISE = 1e-9
"""Likelihoods are sums of logarithms: what agrees to this is the same number."""

Pair = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class AuditCase:
    """One row of the audit: a mechanism at a stated epsilon, and two inputs to be distinguished.

    Attributes:
        name: What the row is called on the command line.
        make: Builds the mechanism for an epsilon.
        epsilon: What is requested, and claimed.
        neighbours: The relation of the claim.
        pair: Two neighbouring inputs, far apart for this mechanism.
        delta: Of the claim.
        planted: The epsilon of the planted fault; 0 stands for a third more than ``epsilon``.
        faulty: Whether a paper's fault is in it on purpose.
        note: One line on what the row shows.
    """

    name: str
    make: Callable[[float], Mechanism]
    epsilon: float
    neighbours: privacy.Neighbours
    pair: Pair
    delta: float = 0.0
    planted: float = 0.0
    faulty: bool = False
    note: str = ""

    @property
    def claimed(self) -> privacy.Guarantee:
        """What the configuration or the paper says."""
        return privacy.Guarantee(self.epsilon, self.neighbours, delta=self.delta)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What an audit found for one case."""

    case: AuditCase
    claim: privacy.Claim
    exact: float | None
    null: privacy.LowerBound
    planted: privacy.LowerBound

    @property
    def audited(self) -> privacy.LowerBound:
        """The bound reached on the mechanism itself."""
        if self.claim.audited is None:
            raise BadParameter("audited", None, "to have been measured")
        return self.claim.audited

    @property
    def planted_found(self) -> bool:
        """Whether the fault that was planted showed: the audit had power."""
        limit = self.claim.claimed if self.case.faulty else self.claim.proved
        return self.planted.epsilon > limit.epsilon

    @property
    def is_broken(self) -> bool:
        """Whether the mechanism was seen to break what is proved or claimed of it."""
        reached = max(self.audited.epsilon, (self.exact or 0.0) - _FLOAT_NOISE)
        return reached > self.claim.proved.epsilon or self.overclaimed

    @property
    def overclaimed(self) -> bool:
        """Whether more was reached, or enumerated, than is claimed."""
        reached = max(self.audited.epsilon, (self.exact or 0.0) - _FLOAT_NOISE)
        return reached > self.claim.claimed.epsilon

    @property
    def verdict(self) -> privacy.ClaimVerdict:
        """One of: holds, broken, overclaimed (faulty on purpose, and found out), blind.

        ``blind``: nothing was found at all, the null raised an alarm or the planted fault was not
        found, so the audit says nothing; more trials may help. A mechanism that is faulty on
        purpose is a planted fault itself.
        """
        if self.case.faulty and self.overclaimed:
            return privacy.ClaimVerdict.OVERCLAIMED
        if self.is_broken and not self.case.faulty:
            return privacy.ClaimVerdict.BROKEN
        has_power = self.audited.epsilon > 0 and self.planted_found and not self.null.epsilon
        if self.case.faulty or not has_power:
            return privacy.ClaimVerdict.BLIND
        return privacy.ClaimVerdict.HOLDS

    def as_json(self) -> dict[str, object]:
        """Return the row as one JSON object; infinity is the string "inf"."""
        audited = self.audited
        return {
            "name": self.case.name,
            "neighbours": self.case.neighbours.value,
            "model": self.claim.proved.model.value,
            "epsilon": self.case.epsilon,
            "delta": self.case.delta,
            "claimed": privacy.number_or_inf(self.claim.claimed.epsilon),
            "proved": privacy.number_or_inf(self.claim.proved.epsilon),
            "audited": privacy.number_or_inf(audited.epsilon),
            "exact": None if self.exact is None else privacy.number_or_inf(self.exact),
            "confidence": audited.confidence,
            "trials": audited.trials,
            "ceiling": audited.ceiling,
            "found": audited.reading,
            "null": self.null.epsilon,
            "planted": self.planted.epsilon,
            "planted_epsilon": self.case.planted or PLANTED_FACTOR * self.case.epsilon,
            "planted_found": self.planted_found,
            "faulty": self.case.faulty,
            "verdict": self.verdict,
            "reason": self.claim.proved.reason,
            "note": self.case.note,
        }


def audit_mechanism(
    mechanism: Mechanism,
    pair: Pair,
    source: SeededSource,
    *,
    trials: int = DEFAULT_TRIALS,
    alpha: float = 1e-6,
    delta: float = 0.0,
    score_by: Pair | None = None,
) -> privacy.LowerBound:
    """Run the mechanism on both inputs and return the epsilon that was reached.

    Args:
        mechanism: What is audited; its likelihood gives a score, its sampler the runs.
        pair: The two inputs; the same one twice makes a null.
        source: Of the mechanism's draws, one child for each input.
        trials: Runs on each input; half of them are held out for the bound.
        alpha: The probability that the bound is wrong.
        delta: Audits (epsilon, delta) at this delta.
        score_by: The inputs whose likelihood ratio scores a report, if not ``pair``: a null needs
            a score that could tell two inputs apart.
    """
    check_count(trials, "trials", least=FEWEST_TRIALS, most=1 << 28)
    reports = []
    for name, value in zip(("first", "second"), pair, strict=True):
        repeated = np.repeat(np.asarray(value)[None], trials, axis=0)
        reports.append(mechanism.randomise(repeated, source.child(name)))
    return bound_from_reports(mechanism, reports, score_by or pair, alpha=alpha, delta=delta)


def bound_from_reports(
    mechanism: ReportDistribution,
    reports: Sequence[NDArray[Any]],
    pair: Pair,
    *,
    alpha: float,
    delta: float = 0.0,
) -> privacy.LowerBound:
    """Return the epsilon that reports on two inputs prove, as many on the one as on the other.

    Args:
        mechanism: Whose likelihood scores the reports.
        reports: Those of the first input, and those of the second.
        pair: The two inputs.
        alpha: The probability that the bound is wrong.
        delta: Audits (epsilon, delta) at this delta.
    """
    trials = len(reports[0])
    if len(reports[1]) != trials:
        raise BadParameter("reports", len(reports[1]), f"as many as of the first input, {trials}")
    # A quarter fits the scores, a quarter chooses the event, and the rest measures it: choices
    # that are made on other runs cost no confidence.
    learn, half = trials // 4, trials // 2
    scores = [[_likelihood_score(mechanism, some, pair) for some in reports]]
    scores += _learned_scores(reports, learn)
    events = [
        (*_best_event(first[learn:half], second[learn:half], alpha=alpha, delta=delta), place)
        for place, (first, second) in enumerate(scores)
    ]
    _, sign, threshold, place = max(events)
    inside, outside = (score[half:] for score in scores[place][::sign])
    hits = int(np.count_nonzero(sign * inside >= threshold))
    false_hits = int(np.count_nonzero(sign * outside >= threshold))
    held_out = trials - half
    bound = float(epsilon_bound(hits, false_hits, held_out, alpha=alpha, delta=delta))
    return privacy.LowerBound(
        max(0.0, bound), 1 - alpha, held_out, ceiling(held_out, alpha=alpha, delta=delta)
    )


def _likelihood_score(
    mechanism: ReportDistribution, reports: NDArray[Any], pair: Pair
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio, rounded so that equal ratios compare as equal."""
    score = mechanism.log_likelihood(reports, pair[0]) - mechanism.log_likelihood(reports, pair[1])
    return np.round(score, 9)


def _learned_scores(
    reports: Sequence[NDArray[Any]], learn: int
) -> list[list[NDArray[np.float64]]]:
    """Return the log-ratio of how often each report was seen in the first runs, if few differ.

    The likelihood score believes the stated distribution; this one believes the sample, and so
    finds a sampler that strays from its distribution (draws used twice, say).
    """
    codes = _codes(np.concatenate(reports))
    if codes is None:
        return []
    first, second = np.split(codes, 2)
    seen = [np.bincount(some[:learn], minlength=int(codes.max()) + 1) for some in (first, second)]
    score = np.log(seen[0] + 0.5) - np.log(seen[1] + 0.5)
    return [[score[first], score[second]]]


def _codes(reports: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return small integers that name the reports, or nothing where there are too many kinds."""
    if reports.ndim == 2 and reports.dtype == np.bool_ and reports.shape[1] <= _CODE_BITS:
        return np.asarray(reports @ (1 << np.arange(reports.shape[1], dtype=np.int64)))
    if reports.ndim != 1 or reports.dtype.kind not in "biu":
        return None
    codes = reports.astype(np.int64)
    codes -= codes.min()
    return codes if codes.max() < 1 << _CODE_BITS else None


def _best_event(
    first: NDArray[np.float64], second: NDArray[np.float64], *, alpha: float, delta: float
) -> tuple[float, int, float]:
    """Return bound, sign and threshold of the score whose event bounds epsilon best."""
    levels = np.unique(np.concatenate([first, second]))
    if len(levels) > _CANDIDATES:
        levels = levels[np.linspace(0, len(levels) - 1, _CANDIDATES).astype(np.intp)]
    best = (-math.inf, 1, math.inf)
    for sign, inside, outside in ((1, first, second), (-1, second, first)):
        edges = np.sort(sign * levels)
        hits = len(inside) - np.searchsorted(np.sort(sign * inside), edges)
        false_hits = len(outside) - np.searchsorted(np.sort(sign * outside), edges)
        bounds = epsilon_bound(hits, false_hits, len(inside), alpha=alpha, delta=delta)
        place = int(bounds.argmax())
        best = max(best, (float(bounds[place]), sign, float(edges[place])))
    return best


def audit_case(case: AuditCase, source: SeededSource, *, trials: int, alpha: float) -> AuditRow:
    """Audit one case beside its null and its planted fault."""
    mechanism = case.make(case.epsilon)
    planted = case.make(case.planted or PLANTED_FACTOR * case.epsilon)

    def reached(what: Mechanism, pair: Pair, name: str) -> privacy.LowerBound:
        return audit_mechanism(
            what,
            pair,
            source.child(case.name, name),
            trials=trials,
            alpha=alpha,
            delta=case.delta,
            score_by=case.pair,
        )

    proved = mechanism.guarantee(case.neighbours)
    audited = reached(mechanism, case.pair, "audit")
    exact = (
        exact_epsilon(mechanism, case.neighbours)
        if isinstance(mechanism, FiniteMechanism)
        else None
    )
    return AuditRow(
        case,
        privacy.Claim(case.claimed, proved, audited),
        exact,
        null=reached(mechanism, (case.pair[0], case.pair[0]), "null"),
        planted=reached(planted, case.pair, "planted"),
    )


def audit(
    cases: Sequence[AuditCase], *, seed: int, trials: int, family: int
) -> Iterator[AuditRow]:
    """Audit the cases one after the other.

    Args:
        cases: What to audit.
        seed: Of all draws.
        trials: Runs on each input.
        family: How many cases share the probability of a false accusation; at least all of them.
    """
    if family < len(cases):
        raise BadParameter("family", family, f">= the number of cases, {len(cases)}")
    # Two bounds a case may accuse wrongly: the mechanism's own and the null.
    alpha = FALSE_ACCUSATION / (2 * family)
    source = SeededSource(seed, "audit")
    for case in cases:
        yield audit_case(case, source, trials=trials, alpha=alpha)


def any_broken(rows: Iterable[AuditRow]) -> bool:
    """Whether a mechanism that is not marked as faulty broke what is proved of it."""
    return any(row.verdict is privacy.ClaimVerdict.BROKEN for row in rows)
