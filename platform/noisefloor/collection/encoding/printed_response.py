"""The unified mechanism as its paper prints it, with its faults: kept to be caught.

Nothing outside audits, reproductions and comparisons may use it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.checks import Floats, blocks
from noisefloor.collection.encoding import unified_response
from noisefloor.collection.encoding.discretisation import Codes
from noisefloor.distributions import ONE, epsilon_of, exp, floor64, in_sixty_digits, ratio
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

Lies = Literal["classes", "symbols"]


@dataclass(frozen=True, slots=True)
class PrintedUnified:
    """The paper's record to the letter: class 0 for minima, and for every negative label.

    Guarantee:  none where lies come from the classes 1 to size: then class 0 is reported by
                nobody but those who hold it. Where they come from the symbols 0 to size (line 5 of
                the paper's algorithm 2), epsilon = the sum of ln(keep / lie), that is about
                ln(size / (size - 1)) more for each value than the paper claims.
    Neighbours: user: the whole record (local model).
    Domain:     rows of classes as ``PrintedDiscretiser`` gives them, 0 to size; others are
                refused.
    Reference:  SUP.ML paper, algorithms 2, 4 and 5.

    The two faults do not add up: lies that reach class 0 by mistake are what would hide it.

    Attributes:
        sizes: How many classes the response has for each value.
        epsilon: What the paper claims for the record.
        lies: What they are drawn from.
    """

    sizes: tuple[int, ...]
    epsilon: float
    lies: Lies = "classes"
    keeps: tuple[int, ...] = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        if self.lies not in ("classes", "symbols"):
            raise BadParameter("lies", self.lies, "to be classes or symbols")
        sizes = unified_response.check_sizes(self.sizes)
        power = exp(unified_response.share_of(self.epsilon, len(sizes)))
        object.__setattr__(self, "sizes", sizes)
        keeps = (floor64(ratio(power, power + size - 1)) for size in sizes)
        object.__setattr__(self, "keeps", tuple(keeps))

    def randomise(self, values: object, source: Source) -> Codes:
        """Return one row of classes per user."""
        codes = unified_response.check_codes(values, [size + 1 for size in self.sizes])
        names = [f"{step} {place}" for place in range(len(self.sizes)) for step in ("keep", "lie")]
        stages = dict(zip(names, map(source.stage, names), strict=True))
        reports = np.empty(codes.shape, dtype=np.uint16)
        for rows in blocks(len(codes), len(self.sizes)):
            for place, size in enumerate(self.sizes):
                true = codes[rows, place].astype(np.uint32)
                lie = stages[f"lie {place}"].below(self._open(true, size), len(true))
                lie += np.uint32(self.lies == "classes")
                lie += (lie >= true) & ((true > 0) | (self.lies == "symbols"))
                kept = stages[f"keep {place}"].bernoulli(self.keeps[place], len(true))
                reports[rows, place] = np.where(kept, true, lie)
        return reports

    def _open(self, true: NDArray[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
        """Return how many lies are open to each: a class 0 is not among the classes."""
        if self.lies == "symbols":
            return np.full(true.shape, size, dtype=np.uint32)
        return np.asarray(size - (true > 0), dtype=np.uint32)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return no guarantee, and why; or the exact one where lies reach class 0."""
        if self.lies == "classes":
            reason = "only a negative label or a minimum is ever reported as class 0"
            return Guarantee.none(reason, neighbours)
        if neighbours is not Neighbours.USER:
            return mechanisms.unsupported(self, neighbours)
        kept = math.prod(keep * size for keep, size in zip(self.keeps, self.sizes, strict=True))
        return Guarantee(
            epsilon_of(kept, math.prod(ONE - keep for keep in self.keeps)), neighbours
        )

    def log_likelihood(
        self, reports: mechanisms.Reports, value: Any
    ) -> Floats:  # Any: a row of classes
        """Return ln P(row | record)."""
        rows = np.asarray(reports, dtype=np.int64)
        logs = np.zeros(len(rows))
        for place, (size, keep) in enumerate(zip(self.sizes, self.keeps, strict=True)):
            true, cells = int(value[place]), rows[:, place]
            open_ = size - (true > 0) if self.lies == "classes" else size
            lie = np.full(len(rows), mechanisms.log_of(ONE - keep, ONE * open_))
            if self.lies == "classes":
                lie[cells == 0] = -math.inf
            logs += np.where(cells == true, mechanisms.log_of(keep, ONE), lie)
        return logs

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return how often each value was answered by each class, class 0 first."""
        return unified_response.count_classes(reports, [size + 1 for size in self.sizes])

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return shares of the classes 1 to size, as the paper debiases: class 0 is lost."""
        count, parts = (
            mechanisms.check_reports_counted(n),
            unified_response.parts_of(tally, [size + 1 for size in self.sizes]),
        )
        found = []
        for part, size, keep in zip(parts, self.sizes, self.keeps, strict=True):
            lack = (1 - keep / ONE) / (size - (self.lies == "classes"))
            found.append(mechanisms.response_estimate(part[1:], count, hold=keep / ONE, lack=lack))
        return unified_response.joined(found)

    def outputs(self) -> mechanisms.Reports:
        """Return every row, if they can be listed."""
        return unified_response.listed_rows([range(size + 1) for size in self.sizes])

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return minima with a negative label, and maxima with a positive one."""
        return [(np.zeros(len(self.sizes), dtype=np.int64), np.array(self.sizes))]
