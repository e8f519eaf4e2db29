"""What every mechanism is: a frozen value that randomises, guarantees, explains and estimates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

Reports = NDArray[Any]
"""One report per user along the first axis; the dtype is the mechanism's own."""

Tally = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the tally says of the population, with the standard error of each figure."""

    value: Floats
    standard_error: Floats


@runtime_checkable
class Mechanism(Protocol):
    """Device half (``randomise``), server half (``tally``, ``estimate``), and the distribution.

    ``value`` in ``log_likelihood`` is one user's input: what one row of ``values`` holds.
    """

    def randomise(self, values: Any, source: Source) -> Reports:
        """Return one protected report per user; ``source`` serves this one call."""
        ...

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved, from the parameters as they are after rounding."""
        ...

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return the exact log-probability (or log-density) of each report, given the value."""
        ...

    def tally(self, reports: Reports) -> Tally:
        """Return the integer sums that are all the aggregator keeps; tallies add up."""
        ...

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the debiased estimate from the tally of n reports."""
        ...


@runtime_checkable
class FiniteMechanism(Protocol):
    """A mechanism whose reports can be listed."""

    def outputs(self) -> Reports:
        """Return every possible report, once."""
        ...

    def worst_pairs(self, neighbours: Neighbours = Neighbours.USER) -> Sequence[tuple[Any, Any]]:
        """Return neighbouring inputs among which the largest ratio is reached."""
        ...


def exact_epsilon(
    mechanism: Mechanism, neighbours: Neighbours = Neighbours.USER, *, chunk: int = 1 << 16
) -> float:
    """Return the largest log-ratio over all outputs and the mechanism's worst pairs.

    An output that only one of the two inputs can give makes it infinite.
    """
    if not isinstance(mechanism, FiniteMechanism):
        raise TypeError(f"{type(mechanism).__name__} has no list of outputs to enumerate.")
    outputs = mechanism.outputs()
    worst = 0.0
    for one, other in mechanism.worst_pairs(neighbours):
        for start in range(0, len(outputs), chunk):
            some = outputs[start : start + chunk]
            first = mechanism.log_likelihood(some, one)
            second = mechanism.log_likelihood(some, other)
            possible = ~(np.isneginf(first) & np.isneginf(second))
            with np.errstate(invalid="ignore"):
                ratio = np.abs(first - second)[possible]
            worst = max(worst, float(ratio.max(initial=0.0)))
    return worst


def unsupported(mechanism: object, neighbours: Neighbours) -> Guarantee:
    """Return "no guarantee" for a relation that a mechanism has no proof for."""
    name = type(mechanism).__name__
    return Guarantee.none(f"{name} has no proof for {neighbours.value} neighbours", neighbours)


def response_estimate(supports: Tally, n: int, *, hold: float, lack: float) -> Estimate:
    """Debias the share of reports that support a value.

    A report supports a value with probability ``hold`` if its sender holds it and ``lack`` if not.
    The standard error is that of the draws, given the senders' data.
    """
    value = (np.asarray(supports, dtype=np.float64) / n - lack) / (hold - lack)
    share = np.clip(value, 0.0, 1.0)
    variance = share * hold * (1 - hold) + (1 - share) * lack * (1 - lack)
    return Estimate(value, np.sqrt(variance / n) / abs(hold - lack))


def check_reports_counted(n: int) -> int:
    """Return the number of reports behind a tally; an estimate from none does not exist."""
    return check_count(n, "n", least=1, most=1 << 62)


def log_of(weight: int, whole: int) -> float:
    """Return ln(weight / whole) for big integers; minus infinity for zero."""
    return math.log(weight) - math.log(whole) if weight else -math.inf
