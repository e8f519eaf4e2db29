"""The unified mechanism on a whole record: every value answers as one of its classes.

This is the corrected form; ``printed`` has the one that follows the paper to the letter.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.collection.encoding.discretisation import MOST_CLASSES, Codes
from noisefloor.distributions import ONE, epsilon_of, in_sixty_digits
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

MOST_VALUES = 4097
"""Of a record: attributes and label."""

_LISTABLE = 1 << 16
"""This many reports can be enumerated; of larger records they are refused."""


@dataclass(frozen=True, slots=True)
class UnifiedResponse:
    """Answer each value of a record on its own, by one of its classes, with equal budgets.

    Guarantee:  pure DP, epsilon = the sum over the values of ln(keep / lie), per release. Proof:
                given the record the answers are independent, so the ratio for two records is the
                product of the ratios of single answers, each at most keep / lie, and a pair of
                records that differ in every value reaches it.
    Neighbours: item: one value to any other; user: the whole record (local model).
    Domain:     rows of classes, value j in range(sizes[j]); anything else is refused.
    Reference:  SUP.ML paper, algorithm 5 (WALDP), with a label of two classes.

    Attributes:
        sizes: Classes of each value; a label, where there is one, is the last and has 2.
        epsilon: Of the whole record.
    """

    sizes: tuple[int, ...]
    epsilon: float
    responses: tuple[mechanisms.KaryResponse, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = check_sizes(self.sizes)
        share = share_of(self.epsilon, len(sizes))
        by_size = {size: mechanisms.KaryResponse(size, share) for size in set(sizes)}
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "responses", tuple(by_size[size] for size in sizes))

    def randomise(self, values: object, source: Source) -> Codes:
        """Return one row of classes per user."""
        codes = check_codes(values, self.sizes)
        steps = [(at, _responder(self.responses[at[0]], source)) for at in _alike(self.sizes)]
        reports = np.empty(codes.shape, dtype=np.uint16)
        for rows in blocks(len(codes), len(self.sizes)):
            some, out = codes[rows], reports[rows]
            for at, respond in steps:
                places = _slice(at)
                part = np.ascontiguousarray(some[:, places])
                out[:, places] = respond(part.reshape(-1)).reshape(part.shape)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weights as rounded; an item is one value of the record."""
        if neighbours is Neighbours.ITEM:
            parts = (one.guarantee(neighbours).epsilon for one in self.responses)
            return Guarantee(max(parts), neighbours)
        if neighbours is not Neighbours.USER:
            return mechanisms.unsupported(self, neighbours)
        return Guarantee(_product_epsilon(self.responses), neighbours)

    def log_likelihood(
        self, reports: mechanisms.Reports, value: Any
    ) -> Floats:  # Any: a row of classes
        """Return ln P(row | record)."""
        rows = np.asarray(reports)
        logs = np.zeros(len(rows))
        for place, (one, true) in enumerate(zip(self.responses, value, strict=True)):
            logs += one.log_likelihood(rows[:, place], true)
        return logs

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return how often each value was answered by each class, one value after the other."""
        return count_classes(reports, self.sizes)

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the share of users in each class of each value."""
        count, parts = mechanisms.check_reports_counted(n), parts_of(tally, self.sizes)
        return joined(
            [one.estimate(part, count) for one, part in zip(self.responses, parts, strict=True)]
        )

    def outputs(self) -> mechanisms.Reports:
        """Return every row, if they can be listed."""
        return listed_rows([range(size) for size in self.sizes])

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two records that differ in every value, or in each value alone for an item."""
        first = np.zeros(len(self.sizes), dtype=np.int64)
        last = np.array(self.sizes) - 1
        if neighbours is not Neighbours.ITEM:
            return [(first, last)]
        return [(first, np.where(np.arange(len(last)) == at, last, 0)) for at in range(len(last))]


def share_of(epsilon: float, parts: int) -> float:
    """Return an equal part of epsilon: the parts together are never more than the whole."""
    whole = check_epsilon(epsilon, parts=parts)
    share = whole / parts
    return share if Decimal(share) * parts <= Decimal(whole) else math.nextafter(share, 0.0)


def check_codes(values: object, sizes: Sequence[int]) -> NDArray[Any]:
    """Return rows of classes, each below its own size; refuse, never clip."""
    codes = check_integers(values, 0, max(sizes) - 1, width=len(sizes))
    if min(sizes) < max(sizes) and len(codes):
        for place, most in enumerate(codes.max(axis=0).tolist()):
            if most >= sizes[place]:
                raise OutOfDomain(
                    f"Expected value {place} of a record in range({sizes[place]}); one is outside."
                )
    return codes


def count_classes(reports: mechanisms.Reports, sizes: Sequence[int]) -> mechanisms.Tally:
    """Count each class of each value, in blocks."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.zeros(int(starts[-1]), dtype=np.int64)
    for rows in blocks(len(reports), len(sizes)):
        places = np.asarray(reports[rows], dtype=np.int64) + starts[:-1]
        counts += np.bincount(places.reshape(-1), minlength=len(counts))
    return counts


def joined(parts: Sequence[mechanisms.Estimate]) -> mechanisms.Estimate:
    """Return the estimates of all values as one."""
    return mechanisms.Estimate(
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.standard_error for part in parts]),
    )


def listed_rows(options: Sequence[Sequence[int]]) -> mechanisms.Reports:
    """Return every row that takes one of the options at each place."""
    if math.prod(len(some) for some in options) > _LISTABLE:
        raise BadParameter(
            "sizes", f"<{len(options)} values>", f"at most {_LISTABLE} rows to list"
        )
    return np.array(list(itertools.product(*options)), dtype=np.uint16)


@in_sixty_digits
def _product_epsilon(responses: Sequence[mechanisms.KaryResponse]) -> float:
    """Return the logarithm of the product of all ratios, rounded up once."""
    kept = math.prod(one.keep * (one.size - 1) for one in responses)
    return epsilon_of(kept, math.prod(ONE - one.keep for one in responses))


def check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a record's values, each of them at least 2."""
    check_count(len(sizes), "len(sizes)", most=MOST_VALUES)
    return tuple(check_count(size, "size", least=2, most=MOST_CLASSES) for size in sizes)


def _alike(sizes: Sequence[int]) -> list[list[int]]:
    """Return the places of each size: they answer together, by one distribution."""
    return [
        [place for place, one in enumerate(sizes) if one == size] for size in dict.fromkeys(sizes)
    ]


def _slice(places: list[int]) -> slice | list[int]:
    """Return neighbouring places as a slice, which needs no copy."""
    start, stop = places[0], places[-1] + 1
    return slice(start, stop) if stop - start == len(places) else places


def _responder(response: mechanisms.KaryResponse, source: Source) -> mechanisms.KarySampler:
    """Return the step of one size, with streams of its own."""
    size = response.size
    return mechanisms.KarySampler(response, source.stage("keep", size), source.stage("lie", size))


def parts_of(tally: mechanisms.Tally, sizes: Sequence[int]) -> list[mechanisms.Tally]:
    """Return the tally of each value."""
    return np.split(np.asarray(tally), np.cumsum(sizes)[:-1])
