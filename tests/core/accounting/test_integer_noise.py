"""Integer Gaussian noise is no worse than the continuous noise that it is a rounding of."""

import math

import numpy as np
import pytest

from noisefloor.accounting import (
    continuous_multiplier_for,
    continuous_part,
    gaussian_delta,
    integer_guarantee,
    integer_sigma,
)
from noisefloor.accounting.integer_noise import FACTOR_COST, ROUNDING_VARIANCE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours

CELLS = 2**20


def chances(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return integers and their chances, far beyond what weights of 64 bits reach."""
    reach = math.ceil(14 * sigma) + 40
    integers = np.arange(-reach, reach + 1)
    weights = np.exp(-((integers / sigma) ** 2) / 2)
    return integers, weights / weights.sum()


def exact_delta(sigmas: tuple[float, ...], steps: tuple[int, ...], epsilon: float) -> float:
    """Sum the delta of cells with noise of their own that all move, over all outcomes."""
    joint, loss = np.ones(1), np.zeros(1)
    for sigma, step in zip(sigmas, steps, strict=True):
        integers, own = chances(sigma)
        lost = ((integers + step) ** 2 - integers**2) / (2 * sigma**2)
        joint = np.outer(joint, own).reshape(-1)
        loss = np.add.outer(loss, lost).reshape(-1)
    with np.errstate(over="ignore"):
        return float((joint * np.maximum(-np.expm1(epsilon - loss), 0)).sum())


CASES = [
    ((2.0,), (1,)),
    ((2.0,), (4,)),
    ((3.0,), (2,)),
    ((5.0,), (6,)),
    ((45.0,), (46,)),
    ((2.0, 4.0), (1, 2)),
    ((3.0, 3.0), (1, 1)),
    ((3.0, 4.5), (-2, 5)),
]


def ratios(sigmas: tuple[float, ...], steps: tuple[int, ...], rho: float) -> list[float]:
    """Compare exact deltas with those of continuous noise, over epsilons that matter."""
    least = min(sigmas)
    step = math.hypot(*(one * least / sigma for one, sigma in zip(steps, sigmas, strict=True)))
    found = []
    for epsilon in np.linspace(0, 6 * step / rho, 25):
        allowed = float(gaussian_delta(epsilon, step / rho))
        if allowed > 1e-11:
            found.append(exact_delta(sigmas, steps, epsilon) / allowed)
    assert len(found) > 5
    return found


@pytest.mark.parametrize(("sigmas", "steps"), CASES)
def test_integers_are_no_worse_than_the_continuous_noise(
    sigmas: tuple[float, ...], steps: tuple[int, ...]
) -> None:
    part = continuous_part(min(sigmas), 1.0)
    assert max(ratios(sigmas, steps, part.noise_multiplier)) < 1


@pytest.mark.parametrize(("sigmas", "steps"), CASES)
def test_without_what_rounding_takes_they_would_be_worse(
    sigmas: tuple[float, ...], steps: tuple[int, ...]
) -> None:
    assert max(ratios(sigmas, steps, min(sigmas))) > 1


def test_sums_of_the_chances_of_rounding_are_equal_up_to_the_stated_factors() -> None:
    places = np.linspace(0, 1, 201)[:, None]
    sums = np.exp(-((np.arange(-40, 41) - places) ** 2) / (2 * ROUNDING_VARIANCE)).sum(axis=1)
    assert np.ptp(sums) < 1e-14 * sums[0]
    eta = 2 * sum(math.exp(-2 * math.pi**2 * ROUNDING_VARIANCE * j**2) for j in (1, 2, 3))
    # Chances of a cell are off by (1 + eta) / (1 - eta) at most, under each of two inputs.
    assert CELLS * 4.1 * eta < FACTOR_COST
    # With less rounding the formula says what sums are seen to do.
    rough = np.exp(-((np.arange(-40, 41) - places) ** 2) / (2 * 0.5)).sum(axis=1)
    rough_eta = 2 * math.exp(-2 * math.pi**2 * 0.5)
    assert np.ptp(rough) / rough.mean() == pytest.approx(2 * rough_eta, rel=1e-3)


def test_one_undoes_the_other() -> None:
    part = continuous_part(integer_sigma(3.0 * 7.5), 7.5)
    assert part.noise_multiplier == pytest.approx(3.0, rel=1e-11)
    assert part.noise_multiplier < 3.0


def test_noise_that_rounding_would_use_up_is_refused() -> None:
    with pytest.raises(BadParameter, match=r"sigma=1\.5 above 1\.58"):
        continuous_part(1.5, 1.0)


@pytest.mark.parametrize(
    "neighbours", [Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE]
)
def test_tables_with_the_noise_that_a_cost_asks_for_keep_to_it(neighbours: Neighbours) -> None:
    whole = continuous_multiplier_for(1.0, 1e-5, 2, neighbours)
    steps = (1.0, 16.0)
    parts = [
        continuous_part(integer_sigma(whole / math.sqrt(share) * step), step)
        for share, step in zip((0.25, 0.75), steps, strict=True)
    ]
    found = integer_guarantee(parts, 1e-5, neighbours)
    assert 0.999 < found.epsilon <= 1.0
    assert found.delta == 1e-5
    # Tables with noise of their own, all of them moved, summed over all outcomes.
    sigmas = tuple(
        integer_sigma(whole / math.sqrt(share) * step)
        for share, step in zip((0.25, 0.75), steps, strict=True)
    )
    moved = 1 + (neighbours is Neighbours.RECORD_SUBSTITUTE)
    exact = exact_delta(sigmas, (moved, 16 * moved), found.epsilon)
    assert 0.9e-5 < exact < 1e-5
