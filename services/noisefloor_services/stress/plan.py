"""The send plan of one step: which request is due when, fixed before the first one is sent.

Arrivals are a Poisson process by the plan's own clock, whose rate is constant or changes along a
line within each phase. Times follow from unit-rate arrivals through the inverse of the expected
number of arrivals. The plan depends on the seed and the step alone, and never on how many
processes send it: each makes the whole plan and sends every n-th request of it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

MOST_PLANNED = 1 << 20
"""Requests of a step. A plan takes 29 bytes a request in each process; what an open epoch counts
is bounded by the same number of frames."""

RECENT = 256
"""A duplicate is of one of so many requests before it: a device repeats what it sent last."""

ORIGINAL = -1

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a step: the rate goes from one value to another along a line.

    Attributes:
        rate: Requests a second at its start.
        end_rate: At its end; the same for a constant rate.
        seconds: How long it lasts.
        is_measured: Whether it counts; a warm-up does not.
    """

    rate: float
    end_rate: float
    seconds: float
    is_measured: bool = True

    def __post_init__(self) -> None:
        if not (self.rate >= 0 and self.end_rate >= 0 and self.rate + self.end_rate > 0):
            raise BadParameter("rate", self.rate, "above 0 at the start or the end of a phase")
        if not self.seconds > 0:
            raise BadParameter("seconds", self.seconds, "> 0")

    @property
    def expected(self) -> float:
        """Arrivals that are expected in it."""
        return (self.rate + self.end_rate) / 2 * self.seconds

    def times_s(self, arrivals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when an expected number of arrivals is reached, since the start of the phase."""
        slope = (self.end_rate - self.rate) / self.seconds
        # Of the two forms of the root, this one is exact as well where the slope is 0.
        root = np.sqrt(np.maximum(self.rate**2 + 2 * slope * arrivals, 0.0))
        return 2 * arrivals / (self.rate + root)


@dataclass(frozen=True, slots=True)
class RequestMix:
    """What is sent, in shares.

    Attributes:
        templates: How many request templates there are of each class.
        weights: The share of each class among the requests that are no duplicates.
        duplicates: The share of requests that repeat the bytes of an earlier one.
    """

    templates: tuple[int, ...]
    weights: tuple[float, ...]
    duplicates: float = 0.0

    def __post_init__(self) -> None:
        if len(self.templates) != len(self.weights) or not sum(self.weights) > 0:
            raise BadParameter("weights", self.weights, "one for each class, not all of them 0")
        if any(weight > 0 and not size for weight, size in self._pairs()):
            raise BadParameter("templates", self.templates, "at least one of a class that is sent")
        if not 0 <= self.duplicates < 1:
            raise BadParameter("duplicates", self.duplicates, "in [0, 1)")

    def _pairs(self) -> Iterator[tuple[float, int]]:
        return zip(self.weights, self.templates, strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class SendPlan:
    """Every request of a step, in the order of their times.

    Attributes:
        key: Of the step; batch ids follow from it and the number of a request.
        due_us: When each is due, since the start of the step.
        templates: Which template each has, counted over all classes.
        originals: The number of the request whose bytes it repeats; ``ORIGINAL`` if it is new.
        measured_from_us: Where the warm-up ends.
        end_us: Where the step ends.
    """

    key: tuple[int, ...]
    due_us: Times
    templates: Times
    originals: Times
    measured_from_us: int
    end_us: int

    def __len__(self) -> int:
        return len(self.due_us)

    def share(self, process: int, of: int) -> Times:
        """Return the numbers of the requests that one of several processes sends."""
        return np.arange(process, len(self), of, dtype=np.int64)

    def distinct(self, taken: Times, has_id: NDArray[np.bool_]) -> Times:
        """Return the numbers of requests that have to count, of those that were accepted.

        Args:
            taken: The numbers of requests that were accepted.
            has_id: By template, whether it has a batch id; what has none counts at each sending.
        """
        originals, with_id = self.originals[taken], has_id[self.templates[taken]]
        counts_as = np.where((originals == ORIGINAL) | ~with_id, taken, originals)
        found: Times = np.unique(counts_as)
        return found

    def batch_id(self, number: int) -> bytes:
        """Return the batch id of a request in hexadecimal; a duplicate has that of its original.

        Ids follow from the plan, so that what is sent does not depend on who sends it.
        """
        original = int(self.originals[number])
        place = number if original == ORIGINAL else original
        path = ",".join(map(str, (*self.key, place)))
        return blake2b(path.encode(), digest_size=16).hexdigest().encode()


def make_plan(phases: Sequence[Phase], mix: RequestMix, seed: int, *step: int) -> SendPlan:
    """Make the plan of a step.

    Args:
        phases: In order; a warm-up stands first.
        mix: What is sent.
        seed: Of everything random.
        step: Numbers that tell the step from every other of the run.

    Raises:
        BadParameter: There is no phase, or there are more requests than a plan can hold.
    """
    check_plannable(phases)
    source = SeededSource(seed, "stress", *step)
    parts, start_s = [], 0.0
    for place, phase in enumerate(phases):
        parts.append(start_s + _arrivals(phase, source.child("arrivals", place)))
        start_s += phase.seconds
    due_us = (1e6 * np.concatenate(parts)).astype(np.int64)
    warm_s = sum(phase.seconds for phase in phases if not phase.is_measured)
    originals = _originals(len(due_us), mix.duplicates, source.child("duplicates"))
    return SendPlan(
        (seed, *step),
        due_us,
        _templates(mix, originals, source.child("templates")),
        originals,
        round(1e6 * warm_s),
        round(1e6 * start_s),
    )


def check_plannable(phases: Sequence[Phase]) -> None:
    """Raise BadParameter if a step has no phase, or more requests than a plan can hold."""
    if not any(phase.is_measured for phase in phases):
        raise BadParameter("phases", len(phases), "at least one that is measured")
    expected = sum(phase.expected for phase in phases)
    if _most(expected) > MOST_PLANNED:
        rule = f"at most {MOST_PLANNED:,} requests in a step, which is what a plan can hold"
        raise BadParameter("requests", round(expected), rule)


def _most(expected: float) -> float:
    """Return a number of arrivals that a Poisson process exceeds less than once in 1e15 times."""
    return expected + 8 * math.sqrt(expected) + 32


def _arrivals(phase: Phase, source: SeededSource) -> NDArray[np.float64]:
    """Return the times of a Poisson process in a phase."""
    gaps = source.generator().standard_exponential(int(_most(phase.expected)) + 1)
    reached = np.cumsum(gaps)
    return phase.times_s(reached[reached < phase.expected])


def _originals(count: int, share: float, source: SeededSource) -> Times:
    """Return which request each one repeats, never one that is a duplicate itself."""
    found: Times = np.full(count, ORIGINAL, np.int64)
    if not share or not count:
        return found
    generator = source.generator()
    is_again = generator.random(count) < share
    is_again[0] = False
    fresh = np.flatnonzero(~is_again)
    before = np.cumsum(~is_again)[is_again]  # how many new ones there are up to each
    back = generator.integers(0, np.minimum(before, RECENT))
    found[is_again] = fresh[before - 1 - back]
    return found


def _templates(mix: RequestMix, originals: Times, source: SeededSource) -> Times:
    """Return the template of each request; a duplicate has that of its original."""
    generator, count = source.generator(), len(originals)
    weights = np.asarray(mix.weights) / sum(mix.weights)
    sizes = np.asarray(mix.templates)
    classes = generator.choice(len(weights), count, p=weights)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    drawn = starts[classes] + (generator.random(count) * sizes[classes]).astype(np.int64)
    found: Times = np.where(originals == ORIGINAL, drawn, drawn[originals])
    return found
