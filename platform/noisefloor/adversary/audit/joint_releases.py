"""Auditing several releases of one person as one: what they give away together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.adversary.audit.auditor import bound_from_reports
from noisefloor.checks import Floats, check_count
from noisefloor.mechanisms import Mechanism, Reports
from noisefloor.privacy import LowerBound
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class RepeatedRelease:
    """One kind of release, repeated with fresh draws.

    Attributes:
        mechanism: What is released.
        first: The input under one profile.
        second: The input under the other.
        times: How often it is released.
    """

    mechanism: Mechanism
    first: Any
    second: Any
    times: int = 1


def joint_ratios(part: RepeatedRelease, value: Any, trials: int, source: Source) -> Floats:
    """Run one part n times on a value, and return the log-likelihood ratios."""
    total = np.zeros(trials)
    inputs = np.repeat(np.asarray(value)[None], trials, axis=0)
    for number in range(check_count(part.times, "times", least=0)):
        reports = part.mechanism.randomise(inputs, source.child(number))
        # Only what both inputs can give is summed; a report of one alone settles the matter.
        with np.errstate(invalid="ignore"):
            total += part.mechanism.log_likelihood(reports, part.first)
            total -= part.mechanism.log_likelihood(reports, part.second)
    return total


def joint_bound(
    parts: Sequence[RepeatedRelease], trials: int, source: Source, *, alpha: float
) -> LowerBound:
    """Return the epsilon that all releases of a person prove together.

    Sees:      every release of every part.
    Knows:     the mechanisms, and both profiles.
    Guesses:   which of the two profiles a person has: releases have draws of their own, so their
               log-likelihood ratios add up.
    Reference: Neyman and Pearson 1933; Clopper and Pearson 1934.
    """
    seen = []
    for name in ("first", "second"):
        ratios = np.zeros(trials)
        for place, part in enumerate(parts):
            value = part.first if name == "first" else part.second
            ratios += joint_ratios(part, value, trials, source.child(name, place))
        seen.append(ratios)
    return bound_from_reports(_Ratio(), seen, (1.0, -1.0), alpha=alpha)


class _Ratio:
    """Reports that are log-likelihood ratios already: half for the one input, half against."""

    def log_likelihood(self, reports: Reports, value: float) -> Floats:
        return np.asarray(value * np.asarray(reports) / 2)
