"""Every mechanism once more, small: what the tests that hold for all of them run over.

The instances are so small that all inputs and all reports can be listed.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batches import batched
from noisefloor.collection.encoding.joint_response import JointResponse
from noisefloor.collection.encoding.printed_response import PrintedUnified
from noisefloor.collection.encoding.unified_response import UnifiedResponse
from noisefloor.mechanisms import (
    ArgmaxResponse,
    AxisSigns,
    BinaryResponse,
    DirectionSigns,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Hybrid,
    KaryResponse,
    LocalHashing,
    Mechanism,
    MemoisedResponse,
    NoisyMax,
    OneBitMean,
    PermuteAndFlip,
    Piecewise,
    SampledBit,
    SquareWave,
    SubsetSelection,
    TopSetResponse,
    UnaryEncoding,
)
from noisefloor.mechanisms.faulty import (
    PrintedBinning,
    PrintedResponse,
    printed_clicks,
    printed_noisy_max,
)
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource

Values = NDArray[Any]

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def exactly(epsilon: float) -> float:
    return epsilon


@dataclass(frozen=True)
class Case:
    """One mechanism on a small domain.

    Attributes:
        name: How the test is called.
        make: The mechanism for an epsilon.
        domain: Inputs, one user's each, among which the worst pair is.
        outside: One user's input that is refused; looked for in the error's text.
        neighbours: The relation that epsilon is meant for.
        requested: The epsilon that is meant; a faulty mechanism spends more than it is given.
        reports: Shape of a report, and its dtype, for epsilon 1.
        sampled_at: The epsilon at which samples tell ten percent of it.
    """

    name: str
    make: Callable[[float], Mechanism]
    domain: Values
    outside: Any
    neighbours: Neighbours = Neighbours.USER
    requested: Callable[[float], float] = exactly
    shape: tuple[int, ...] = ()
    dtype: Any = np.uint8
    sampled_at: float = 1.0

    def values(self, n: int) -> Values:
        """Return the inputs of n users; the first ones do not depend on n."""
        places = (
            SeededSource(1, "values", self.name)
            .generator()
            .integers(len(self.domain), size=1 << 17)
        )
        return np.asarray(self.domain[places[:n]])

    def are_neighbours(self, one: Any, other: Any) -> bool:
        """Whether the relation tells the two inputs apart."""
        differing = int(np.count_nonzero(np.asarray(one) != np.asarray(other)))
        if self.neighbours is Neighbours.BIT:
            return differing == 1
        if self.neighbours is Neighbours.MOVE_ONE:
            return differing == 2 and np.count_nonzero(one) == np.count_nonzero(other)
        return True


def rows_of_bits(size: int, most_ones: int) -> Values:
    rows = np.array(list(itertools.product([False, True], repeat=size)))
    return np.asarray(rows[rows.sum(axis=1) <= most_ones])


def rows_of_scores(size: int, steps: int, high: float = 1.0) -> Values:
    return np.array(list(itertools.product(np.linspace(0.0, high, steps + 1), repeat=size)))


def rows_of_classes(*sizes: int) -> Values:
    return np.array(list(itertools.product(*(range(size) for size in sizes))))


def memoised(periods: int) -> Callable[[float], Mechanism]:
    def make(epsilon: float) -> Mechanism:
        return MemoisedResponse(epsilon + 2, epsilon, periods)

    return make


def joint_epsilon(periods: int) -> Callable[[float], float]:
    """Return the epsilon of n memoised reports, by the closed form before rounding."""

    def requested(epsilon: float) -> float:
        once, total = 1 / (1 + math.exp(epsilon + 2)), 1 / (1 + math.exp(epsilon))
        again = (total - once) / (1 - 2 * once)
        same, other = (1 - again) ** periods, again**periods
        up, down = (1 - once) * same + once * other, once * same + (1 - once) * other
        return math.log(up / down) + 1e-9  # the rounding error of this formula

    return requested


BITS = np.array([False, True])
REALS = np.array([-1.0, -0.4, 0.0, 0.3, 1.0])
SHARES = np.array([0.0, 0.25, 0.7, 1.0])
SECRET = 7.123456
DIRECTIONS = np.array(
    [[4, 2, 1], [-4, -2, -1], [4, -2, 1], [1, 2, 4], [5, 0, 0], [0, 5, 0], [0, 0, 0], [1, 1, 0]]
) / np.array([21**0.5, 21**0.5, 21**0.5, 21**0.5, 5, 5, 1, 2]).reshape(-1, 1)
"""Unit vectors, two of them opposite and without ties; one of no length, one of 0.71."""

CASES = (
    Case("binary", BinaryResponse, BITS, 7123456, dtype=np.bool_),
    Case("kary", lambda e: KaryResponse(4, e), np.arange(4), 7123456),
    Case(
        "kary in two steps",
        lambda e: KaryResponse(1025, e),
        np.array([0, 1, 512, 1024]),
        7123456,
        dtype=np.uint16,
        sampled_at=6.0,
    ),
    Case(
        "unary symmetric",
        lambda e: UnaryEncoding.symmetric(3, e),
        rows_of_bits(3, 3),
        [0, 7123456, 0],
        shape=(3,),
        dtype=np.bool_,
    ),
    Case(
        "unary for one bit",
        lambda e: UnaryEncoding.symmetric(3, e, neighbours=Neighbours.BIT),
        rows_of_bits(3, 3),
        [0, 7123456, 0],
        neighbours=Neighbours.BIT,
        shape=(3,),
        dtype=np.bool_,
    ),
    Case(
        "unary for a moved one",
        lambda e: UnaryEncoding.symmetric(4, e, most_ones=2, neighbours=Neighbours.MOVE_ONE),
        rows_of_bits(4, 2),
        [1, 1, 1, 0],
        neighbours=Neighbours.MOVE_ONE,
        shape=(4,),
        dtype=np.bool_,
    ),
    Case(
        "unary capped",
        lambda e: UnaryEncoding.symmetric(4, e, most_ones=1),
        rows_of_bits(4, 1),
        [0, 1, 1, 0],
        shape=(4,),
        dtype=np.bool_,
    ),
    Case(
        "unary capped above half",
        lambda e: UnaryEncoding.symmetric(3, e, most_ones=2),
        rows_of_bits(3, 2),
        [1, 1, 1],
        shape=(3,),
        dtype=np.bool_,
    ),
    Case(
        "unary optimised",
        lambda e: UnaryEncoding.optimised(4, e),
        rows_of_bits(4, 1),
        [1, 1, 0, 0],
        shape=(4,),
        dtype=np.bool_,
    ),
    Case(
        "local hashing",
        lambda e: LocalHashing(5, e),
        np.arange(5),
        7123456,
        dtype=[("seed", "<u4"), ("cell", "<u4")],
    ),
    Case(
        "subset selection",
        lambda e: SubsetSelection(5, e, subset=2),
        np.arange(5),
        7123456,
        shape=(5,),
        dtype=np.bool_,
    ),
    Case(
        "subset of its own size",
        lambda e: SubsetSelection(4, e),
        np.arange(4),
        7123456,
        shape=(4,),
        dtype=np.bool_,
    ),
    Case("memoised", memoised(1), BITS, 7123456, requested=joint_epsilon(1), dtype=np.bool_),
    *(
        Case(
            f"memoised for {periods} periods",
            memoised(periods),
            BITS,
            7123456,
            requested=joint_epsilon(periods),
            shape=(periods,),
            dtype=np.bool_,
        )
        for periods in range(2, 6)
    ),
    Case("piecewise", Piecewise, REALS, SECRET, dtype=np.uint32),
    Case("hybrid", Hybrid, REALS, SECRET, dtype=np.uint32),
    Case("square wave", SquareWave, SHARES, SECRET, dtype=np.uint32),
    Case("one bit", OneBitMean, REALS, SECRET, dtype=np.bool_),
    Case(
        "sampled bit",
        lambda e: SampledBit(2, e),
        np.array(list(itertools.product(REALS, repeat=2))),
        [0.0, SECRET],
        dtype=np.uint32,
    ),
    Case(
        "leaning signs",
        lambda e: DirectionSigns(3, e),
        DIRECTIONS,
        [0.0, SECRET, 0.0],
        shape=(3,),
        dtype=np.bool_,
    ),
    Case(
        "leaning axis",
        lambda e: AxisSigns(3, e),
        np.concatenate([DIRECTIONS[:4], DIRECTIONS[6:], np.ones((1, 3))]),  # one place: no axis
        [0.0, SECRET, 0.0],
        shape=(3,),
        dtype=np.bool_,
    ),
    Case(
        "noisy max, Laplace",
        lambda e: NoisyMax.laplace(3, e, steps=3),
        rows_of_scores(3, 3),
        [0.0, 0.0, SECRET],
    ),
    Case(
        "noisy max, exponential",
        lambda e: NoisyMax.exponential(3, e, steps=3),
        rows_of_scores(3, 3),
        [0.0, 0.0, SECRET],
    ),
    Case(
        "permute and flip",
        lambda e: PermuteAndFlip(3, e, steps=3),
        rows_of_scores(3, 3),
        [0.0, 0.0, SECRET],
    ),
    Case(
        "exponential mechanism",
        lambda e: ExponentialMechanism(3, e, steps=3),
        rows_of_scores(3, 3),
        [0.0, 0.0, SECRET],
    ),
    Case(
        "argmax response",
        lambda e: ArgmaxResponse(3, e),
        rows_of_scores(3, 3),
        [0.0, 0.0, SECRET],
    ),
    Case(
        "top set response",
        lambda e: TopSetResponse(4, e, top=2),
        rows_of_scores(4, 2),
        [0.0, 0.0, 0.0, SECRET],
    ),
    Case(
        "joint response",
        lambda e: JointResponse((2, 3, 2), 2, e),
        np.array(list(itertools.product(range(2), range(3), range(2), range(2)))),
        [0, 0, 0, 7123456],
        shape=(5,),
        dtype=np.uint16,
        sampled_at=2.0,
    ),
    Case(
        "joint response of a query",
        lambda e: JointResponse((3, 2), 2, e, labelled=False),
        np.array(list(itertools.product(range(3), range(2)))),
        [0, 7123456],
        shape=(4,),
        dtype=np.uint16,
    ),
    Case(
        "printed response",
        lambda e: PrintedResponse(3, e),
        np.arange(3),
        7123456,
        requested=lambda e: math.nextafter(e + math.log(3 / 2), math.inf),
        dtype=np.uint16,
    ),
    Case(
        "unified response",
        lambda e: UnifiedResponse((3, 2, 2), e),
        rows_of_classes(3, 2, 2),
        [0, 1, 7123456],
        shape=(3,),
        dtype=np.uint16,
        sampled_at=4.0,
    ),
    Case(
        "printed record, lies from the symbols",
        lambda e: PrintedUnified((3, 2), e, "symbols"),
        rows_of_classes(4, 3),
        [0, 7123456],
        requested=lambda e: e + math.log(3 / 2) + math.log(2) + 1e-9,
        shape=(2,),
        dtype=np.uint16,
        sampled_at=4.0,
    ),
    Case(
        "printed clicks",
        lambda e: printed_clicks(3, e),
        rows_of_bits(3, 3),
        [0, 7123456, 0],
        requested=lambda e: math.nextafter(3 * e, math.inf),
        shape=(3,),
        dtype=np.bool_,
    ),
)
"""All that promise an epsilon and have their reports listed (local hashing: for some seeds)."""

BINNING = Case(
    "printed binning",
    lambda e: PrintedBinning(3, e),
    np.array([-1.0, -0.9, 0.1, 1.0]),
    SECRET,
    dtype=np.uint32,
)
PRINTED_MAX = Case(
    "printed noisy max",
    lambda e: printed_noisy_max(3, e, high=2.0, steps=4),
    rows_of_scores(3, 4, high=2.0),
    [0.0, 0.0, SECRET],
)
LAPLACE = Case(
    "Laplace", lambda e: DiscreteLaplace(e, -2, 3), np.arange(-2, 4), 7123456, dtype=np.int64
)
GAUSSIAN = Case(
    "Gaussian",
    lambda e: DiscreteGaussian(e, 1e-6, -2, 3),
    np.arange(-2, 4),
    7123456,
    dtype=np.int64,
)

EVERY_CASE = (*CASES, BINNING, PRINTED_MAX, LAPLACE, GAUSSIAN)

over_every_mechanism = batched("case", EVERY_CASE, label=lambda case: case.name)


def named(name: str) -> Case:
    """Return the case of that name."""
    return next(case for case in EVERY_CASE if case.name == name)
