"""Local hashing: hash the value into few cells with a hash of one's own, answer the cell."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.distributions import ONE
from noisefloor.mechanisms import base
from noisefloor.mechanisms.randomised_response import KaryResponse
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source, Words

REPORT = np.dtype([("seed", "<u4"), ("cell", "<u4")])
"""One report: which hash function was used, and the protected cell."""

_HALF = np.uint64(32)
_USERS = 1 << 12
"""Users aggregated at once: their running hashes stay in the innermost cache."""

_LISTED_SEEDS = 64


@dataclass(frozen=True, slots=True)
class LocalHashing:
    """Hash the value into about e**epsilon + 1 cells, then answer the cell by k-ary response.

    Guarantee:  pure DP, that of the k-ary response over the cells: the hash function is drawn
                before the value is looked at. It does not rest on the quality of the hash.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     integers in range(size), size >= 2; anything else is refused.
    Reference:  Wang, Blocki, Li, Jha 2017, arXiv 1705.04421 (OLH).
    """

    size: int
    epsilon: float
    response: KaryResponse = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=1 << 31)
        epsilon = check_epsilon(self.epsilon)
        # Past 2**16 cells a hash collides so rarely that more cells buy nothing.
        cells = min(round(math.exp(min(epsilon, 12.0))) + 1, 1 << 16)
        object.__setattr__(self, "response", KaryResponse(cells, epsilon))

    @property
    def cells(self) -> int:
        """The number of cells that values are hashed into."""
        return self.response.size

    def randomise(self, values: object, source: Source) -> NDArray[Any]:
        """Return one (seed, cell) per user."""
        symbols = check_integers(values, 0, self.size - 1)
        seeds, respond = source.stage("seed"), self.response.sampler(source)
        reports = np.empty(len(symbols), dtype=REPORT)
        for rows in blocks(len(symbols)):
            some = symbols[rows]
            drawn = seeds.halves_of(len(some))[: len(some)]
            reports["seed"][rows] = drawn
            reports["cell"][rows] = respond(hash_cell(drawn, some, self.cells))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the response over the cells."""
        return self.response.guarantee(neighbours)

    def log_likelihood(self, reports: base.Reports, value: Any) -> Floats:
        """Return ln P(seed, cell | value): the seed is uniform, the cell a response."""
        cells = hash_cell(reports["seed"], np.full(len(reports), value), self.cells)
        same, other = base.log_of(self.response.keep, ONE), math.log(self.response.lie / ONE)
        return np.where(reports["cell"] == cells, same, other) - 32 * math.log(2)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return, for each value, how many reports support it.

        A report supports a value if its hash puts the value into the reported cell, that is if
        ``a * value + b`` lies in the cell's interval. From one value to the next the left side
        grows by ``a``: so the whole table costs an addition and a comparison per entry.
        """
        supports = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(reports), _USERS):
            some = reports[start : start + _USERS]
            step, place = _multipliers(some["seed"])
            cell = some["cell"].astype(np.uint64)
            low = _cell_start(cell, self.cells)
            width = _cell_start(cell + np.uint64(1), self.cells) - low
            place -= low
            for value in range(self.size):
                supports[value] += np.count_nonzero(place < width)
                place += step
        return supports

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the share of users who hold each value."""
        return base.response_estimate(
            tally,
            base.check_reports_counted(n),
            hold=self.response.keep / ONE,
            lack=1 / self.cells,
        )

    def outputs(self) -> base.Reports:
        """Return all reports of the first seeds: no seed depends on the value, all are alike."""
        listed = np.empty((_LISTED_SEEDS, self.cells), dtype=REPORT)
        listed["seed"] = np.arange(_LISTED_SEEDS)[:, None]
        listed["cell"] = np.arange(self.cells)
        return listed.reshape(-1)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return one pair; some of the listed seeds put its two values into different cells."""
        return [(0, self.size - 1)]


def hash_cell(
    seeds: NDArray[np.unsignedinteger], values: NDArray[np.integer], cells: int
) -> NDArray[np.uint64]:
    """Return the cell of each value under the function of its seed.

    Multiply and shift, (a * value + b) mod 2**64, of which the high 32 bits choose the cell:
    strongly universal for values below 2**32 (Dietzfelbinger 1996), up to the mixing of a, b.
    """
    factor, offset = _multipliers(seeds)
    high = (factor * values.astype(np.uint64) + offset) >> _HALF
    return (high * np.uint64(cells)) >> _HALF


def _cell_start(cell: Words, cells: int) -> Words:
    """Return the least 64-bit hash whose high half falls into the cell (2**64 wraps to 0)."""
    whole = (cell << _HALF) + np.uint64(cells - 1)
    return (whole // np.uint64(cells)) << _HALF


def _multipliers(seeds: NDArray[np.unsignedinteger]) -> tuple[Words, Words]:
    """Return the factor and the offset of each seed's hash function."""
    state = seeds.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return _mixed(state + np.uint64(0xD1B54A32D192ED03)), _mixed(state)


def _mixed(state: Words) -> Words:
    """Mix 64 bits so that each depends on all: two rounds of xor-shift and multiply."""
    state = (state ^ (state >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    state = (state ^ (state >> np.uint64(29))) * np.uint64(0xA0761D6478BD642F)
    return state ^ (state >> np.uint64(32))
