"""The error of a count follows exactly from the noise that is drawn."""

import numpy as np
import pytest
from scipy import stats

from labelled_tables import ADD, SCHEMA, SWAP, a_cost
from noisefloor.publication.cell_error import cell_error
from noisefloor.publication.cell_noise import GaussianCells, LaplaceCells
from noisefloor.publication.histogram import Histogram


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 8.0])
def test_laplace_counts_have_the_closed_form(epsilon: float) -> None:
    noise = LaplaceCells(epsilon, ADD)
    found = cell_error(noise, noise.mechanism.noise.variance)
    exact = stats.dlaplace(epsilon)
    assert found.standard_error == pytest.approx(exact.std(), rel=1e-4)
    reach = found.half_width
    assert exact.cdf(reach) - exact.cdf(-reach - 1) >= 0.95 - 1e-9
    assert not reach or exact.cdf(reach - 1) - exact.cdf(-reach) < 0.95


def test_gaussian_counts_are_within_two_deviations_or_so() -> None:
    noise = GaussianCells(0.25, 1e-6, SWAP)
    found = cell_error(noise, noise.table.variance)
    assert found.half_width == pytest.approx(1.96 * found.standard_error, abs=1)
    assert "with 95% confidence" in str(found)


def test_noise_too_wide_to_be_summed_has_the_tail_of_its_distribution() -> None:
    noise = LaplaceCells(1e-5, ADD)
    found = cell_error(noise, noise.mechanism.noise.variance)
    assert found.half_width == pytest.approx(stats.dlaplace(1e-5).ppf(0.975), rel=1e-3)


def test_less_noise_than_is_drawn_would_show() -> None:
    plan = Histogram.of(SCHEMA, {"columns": "country"}, a_cost(0.5, delta=0.0))
    found = cell_error(plan.noise, float(plan.noise.facts["standard_deviation"]) ** 2)
    less = cell_error(LaplaceCells(0.5 / 0.75, ADD), 1.0)
    assert less.half_width < found.half_width
    assert np.isfinite(found.standard_error)
