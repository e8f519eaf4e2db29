"""The square wave mechanism for a distribution, with expectation maximisation and smoothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_reals
from noisefloor.distributions import ONE, exp, in_sixty_digits, ratio
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.piecewise import STEPS, Window, position_of, positions_of
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_MOST_ROUNDS = 10_000


@dataclass(frozen=True, slots=True)
class SquareWave:
    """Report a cell of a line, mostly from a window centred on the value.

    Guarantee:  pure DP, epsilon = the exact log-ratio of a near to a far cell, per release.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     reals in [0, 1], taken to the nearest of 2**16 + 1 grid points; others refused.
    Reference:  Li et al. 2020, "Estimating numerical distributions under local differential
                privacy", SIGMOD (SW and EMS).

    Attributes:
        epsilon: As requested.
        bins: Bins of the estimated distribution; a power of two.
    """

    epsilon: float
    bins: int = 64
    window: Window = field(init=False)

    def __post_init__(self) -> None:
        epsilon = check_epsilon(self.epsilon)
        check_count(self.bins, "bins", least=2, most=1024)
        if STEPS % self.bins:
            raise BadParameter("bins", self.bins, "to be a power of two")
        object.__setattr__(self, "window", Window.of(epsilon, 2 * half_width(epsilon)))

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return one cell per user."""
        reals = check_reals(values, 0.0, 1.0)
        draw = self.window.sampler(source)
        reports = np.empty(len(reals), dtype=np.uint32)
        for rows in blocks(len(reals)):
            reports[rows] = draw(positions_of(reals[rows], 0.0, 1.0))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the window as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        return Guarantee(self.window.epsilon, neighbours)

    def log_likelihood(self, reports: Reports, value: float) -> Floats:
        """Return ln P(cell | value)."""
        return self.window.log_likelihood(reports, position_of(value, 0.0, 1.0))

    def tally(self, reports: Reports) -> Tally:
        """Return the histogram of the cells, in groups as wide as a bin."""
        groups = -(-self.window.cells // self._group)
        counts = np.zeros(groups, dtype=np.int64)
        for rows in blocks(len(reports)):
            some = np.asarray(reports[rows], dtype=np.int64) // self._group
            counts += np.bincount(some, minlength=groups)
        return counts

    @property
    def _group(self) -> int:
        return STEPS // self.bins

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the share of users in each bin, smoothed (EMS)."""
        count = check_reports_counted(n)
        observed = np.asarray(tally, dtype=np.float64) / count
        response, smoother = self.response(), smoothing(self.bins)
        shares = _fixed_point(observed, response, smoother)
        return Estimate(shares, _standard_error(shares, observed, response, smoother, count))

    def response(self) -> Floats:
        """Return P(group of cells | bin), for values spread evenly over each bin."""
        inside, width, group = self.window.inside / ONE, self.window.width, self._group
        edges = np.minimum(
            np.arange(-(-self.window.cells // group) + 1) * group, self.window.cells
        )
        # Cells below x that lie in the window from L on: clip(x - L, 0, width).
        starts = np.arange(STEPS).reshape(self.bins, group) + 0.5
        covered = np.empty((len(edges), self.bins))
        for place, edge in enumerate(edges):
            covered[place] = np.clip(edge - starts, 0, width).mean(axis=1)
        near = np.diff(covered, axis=0)
        far = np.diff(edges)[:, None] - near
        return np.asarray(near * inside / width + far * (1 - inside) / STEPS)

    def outputs(self) -> Reports:
        """Return every cell."""
        return np.arange(self.window.cells)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the two ends of the range."""
        return [(0.0, 1.0)]


@in_sixty_digits
def half_width(epsilon: float) -> Decimal:
    """Return b, half the window for a value in [0, 1], that tells most about the value."""
    exact, power = Decimal(epsilon), exp(epsilon)
    if epsilon < 1e-6:
        return Decimal("0.5")  # the limit; 60 digits would cancel away
    return ratio(exact * power - power + 1, 2 * power * (power - 1 - exact))


def smoothing(bins: int) -> Floats:
    """Return the matrix that averages each bin with its neighbours, weights 1, 2, 1.

    An outer bin is its own neighbour: so shares keep their sum, and an even population stays even.
    """
    kernel = np.diag(np.full(bins, 2.0)) + np.eye(bins, k=1) + np.eye(bins, k=-1)
    kernel[0, 0] = kernel[-1, -1] = 3.0
    return np.asarray(kernel / 4)


def _step(shares: Floats, observed: Floats, response: Floats, smoother: Floats) -> Floats:
    """Do one round: attribute what was observed to the bins, then smooth."""
    expected = response @ shares
    return np.asarray(smoother @ (shares * (response.T @ (observed / expected))))


def _fixed_point(observed: Floats, response: Floats, smoother: Floats) -> Floats:
    shares = np.full(response.shape[1], 1 / response.shape[1])
    for _ in range(_MOST_ROUNDS):
        after = _step(shares, observed, response, smoother)
        if np.abs(after - shares).max() < 1e-10:
            break
        shares = after
    return after


def _standard_error(
    shares: Floats, observed: Floats, response: Floats, smoother: Floats, n: int
) -> Floats:
    """Carry the multinomial error of the histogram through the fixed point.

    At a fixed point shares = step(shares, observed); so a small change of what was observed moves
    the shares by (1 - d step / d shares)**-1 (d step / d observed).
    """
    expected = response @ shares
    by_observed = smoother @ (shares[:, None] * response.T / expected)
    back = response.T @ (observed / expected)
    coupled = shares[:, None] * (response.T * (observed / expected**2)) @ response
    by_shares = smoother @ (np.diag(back) - coupled)
    reach = np.linalg.solve(np.eye(len(shares)) - by_shares, by_observed)
    spread = (reach**2) @ observed - (reach @ observed) ** 2
    return np.sqrt(np.maximum(spread, 0.0) / n)
