"""The sliding window, over its whole grid: every cell comes from exactly the draws it should."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.distributions import ONE
from noisefloor.errors import OutOfDomain
from noisefloor.mechanisms import Hybrid, Piecewise, SquareWave
from noisefloor.mechanisms.piecewise import STEPS, Window, position_of, positions_of
from noisefloor.randomness import Bits, SeededSource, Source, Words

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class Listing(Source):
    """Gives each near cell to one user and then each far cell to one: no chance is left.

    User number i < width is near, with cell draw i; user width + j is far, with far draw j.
    """

    def __init__(self, window: Window) -> None:
        near = np.arange(window.cells) < window.width
        cell = np.where(near, np.arange(window.cells), 0)
        self.left: dict[str, NDArray[Any]] = {"near": near, "cell": cell, "far": np.arange(STEPS)}
        self.bounds = {"cell": window.width, "far": STEPS}
        self.inside = window.inside
        self.name = ""

    def stage(self, *name: str | int) -> "Listing":
        copy = object.__new__(Listing)
        copy.left, copy.bounds, copy.inside = self.left, self.bounds, self.inside
        copy.name = str(name[0])
        return copy

    def words(self, count: int) -> Words:
        raise AssertionError("Only exact draws are listed.")

    _spare = stage

    def _next(self, count: int) -> NDArray[Any]:
        taken, self.left[self.name] = np.split(self.left[self.name], [count])
        return taken

    def bernoulli(self, threshold: int, count: int, out: Bits | None = None) -> Bits:
        assert threshold == self.inside
        return self._next(count)

    def below(self, bound: int | NDArray[np.unsignedinteger], count: int) -> NDArray[np.uint32]:
        assert bound == self.bounds[self.name]
        return self._next(count).astype(np.uint32)


@pytest.mark.parametrize("kind", [Piecewise, SquareWave])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_each_cell_comes_from_one_near_or_one_far_draw(
    kind: type[Piecewise] | type[SquareWave], epsilon: float, share: float
) -> None:
    mechanism = kind(epsilon)
    window = mechanism.window
    value = share if kind is SquareWave else 2 * share - 1
    reports = mechanism.randomise(np.full(window.cells, value), Listing(window))
    assert np.array_equal(np.sort(reports), np.arange(window.cells))
    logs = mechanism.log_likelihood(reports, value)
    near = math.log(window.inside / ONE / window.width)
    far = math.log((ONE - window.inside) / ONE / STEPS)
    assert np.abs(logs[: window.width] - near).max() <= 1e-12
    assert np.abs(logs[window.width :] - far).max() <= 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_window_fits_at_both_ends(epsilon: float) -> None:
    window = Piecewise(epsilon).window
    for position in (0, STEPS):
        logs = window.log_likelihood(np.arange(window.cells), position)
        assert np.count_nonzero(logs == logs.max()) == window.width


@pytest.mark.parametrize("epsilon", [1e-9, *EPSILONS, 40.0])
@pytest.mark.parametrize("kind", [Piecewise, SquareWave])
def test_slope_and_intercept_are_the_means_of_the_distribution(
    kind: type[Piecewise] | type[SquareWave], epsilon: float
) -> None:
    window = kind(epsilon).window
    cells = np.arange(window.cells)
    means = [np.exp(window.log_likelihood(cells, place)) @ cells for place in (0, 1000, STEPS)]
    assert window.intercept == pytest.approx(means[0], rel=1e-9)
    # Three figures of the slope cancel at the smallest epsilon.
    assert window.slope == pytest.approx((means[2] - means[0]) / STEPS, rel=1e-6, abs=1e-13)
    line = means[0] + 1000 * window.slope
    assert means[1] == pytest.approx(line, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, *EPSILONS, 40.0])
@pytest.mark.parametrize("kind", [Piecewise, Hybrid, SquareWave])
def test_the_ratio_of_near_to_far_is_at_most_the_request(kind: Any, epsilon: float) -> None:
    promised = kind(epsilon).guarantee().epsilon
    assert epsilon - 1e-6 <= promised <= epsilon


def test_positions_are_the_nearest_grid_points() -> None:
    values = SeededSource(1, "positions").generator().uniform(-1, 1, 10_000)
    positions = positions_of(values, -1.0, 1.0).astype(np.float64)
    assert np.abs(positions / STEPS * 2 - 1 - values).max() <= 1 / STEPS + 1e-12
    assert positions_of(np.array([-1.0, 0.0, 1.0]), -1.0, 1.0).tolist() == [0, STEPS // 2, STEPS]
    assert all(
        position_of(value, -1.0, 1.0) == place
        for value, place in zip(values, positions, strict=True)
    )


def test_single_precision_values_have_the_likelihood_of_their_position() -> None:
    generator = SeededSource(1, "single").generator()
    values = generator.uniform(-1, 1, 100_000).astype(np.float32)
    assert np.array_equal(
        positions_of(values, -1.0, 1.0), positions_of(values.astype(float), -1.0, 1.0)
    )


@pytest.mark.parametrize("value", [1.5, -1.5, math.nan, math.inf])
def test_a_likelihood_outside_the_domain_is_refused_and_does_not_show_the_value(
    value: float,
) -> None:
    for mechanism in (Piecewise(1.0), Hybrid(1.0), SquareWave(1.0)):
        with pytest.raises(ValueError, match="Expected") as caught:
            mechanism.log_likelihood(np.arange(3), value)
        assert str(value) not in str(caught.value)


@pytest.mark.parametrize("kind", [Piecewise, Hybrid, SquareWave])
def test_a_likelihood_outside_the_domain_is_an_error_of_ours(kind: Any) -> None:
    with pytest.raises(OutOfDomain):
        kind(1.0).log_likelihood(np.arange(3), 1.5)
