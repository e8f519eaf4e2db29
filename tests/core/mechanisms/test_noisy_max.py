"""Noisy max: the published figures, an independent quadrature, and brute-force sums."""

import itertools
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from scipy import integrate

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import ExponentialMechanism, NoisyMax, PermuteAndFlip
from noisefloor.mechanisms.faulty import printed_noisy_max
from noisefloor.mechanisms.laplace import Geometric, TwoSidedGeometric
from noisefloor.mechanisms.scores import ScoreGrid

Kind = Callable[..., NoisyMax]

KINDS = (NoisyMax.laplace, NoisyMax.exponential)
FINE = 1024
SIZES = (2, 5, 10, 50)
PRINTED = {1.0: (0.965, 1.759, 1.945, 2.000), 4.0: (3.57, 5.51, 6.15, 7.37)}
"""Exact epsilon of noise Lap(1) on scores in [0, R] for 2, 5, 10, 50 ads (spec 003, audit A5)."""

CORRECTED = (0.493, 0.918, 0.992, 1.000)
"""The same for noise Lap(2 R)."""


def continuous_epsilon(size: int, lead: float) -> float:
    """Return ln(P1(lead) / P1(-lead)) for Laplace noise of scale 1, by adaptive quadrature."""

    def cdf(x: float) -> float:
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    def chance(ahead: float) -> float:
        def density(x: float) -> float:
            return float(math.exp(-abs(x)) / 2 * cdf(x + ahead) ** (size - 1))

        points = sorted({0.0, -ahead})
        total = 0.0
        for start, end in itertools.pairwise([-50.0, *points, 50.0]):
            part, _ = integrate.quad(density, start, end, epsabs=1e-14, epsrel=1e-10, limit=200)
            total += part
        return total

    return math.log(chance(lead) / chance(-lead))


@pytest.mark.parametrize("high", PRINTED)
@pytest.mark.parametrize("place", range(4))
def test_printed_noise_costs_what_the_spec_says(high: float, place: int) -> None:
    expected = PRINTED[high][place]
    worst = printed_noisy_max(SIZES[place], 1.0, high=high, steps=FINE).worst
    # Half a unit of the last printed figure, and the ties of the grid.
    assert worst == pytest.approx(expected, abs=(6e-4 if high == 1.0 else 6e-3) + 2 * high / FINE)


@pytest.mark.parametrize("high", PRINTED)
@pytest.mark.parametrize("size", SIZES)
def test_printed_noise_costs_what_quadrature_says(high: float, size: int) -> None:
    worst = printed_noisy_max(size, 1.0, high=high, steps=FINE).worst
    assert worst == pytest.approx(continuous_epsilon(size, high), abs=2 * high / FINE)


@pytest.mark.parametrize("place", range(4))
def test_quadrature_gives_the_specs_figures(place: int) -> None:
    for high, expected in ((1.0, PRINTED[1.0]), (4.0, PRINTED[4.0]), (0.5, CORRECTED)):
        rounding = 6e-3 if high == 4.0 else 6e-4
        exact = continuous_epsilon(SIZES[place], high)
        assert exact == pytest.approx(expected[place], abs=rounding)


@pytest.mark.parametrize("place", range(4))
def test_noise_of_twice_the_range_costs_at_most_epsilon(place: int) -> None:
    noise = TwoSidedGeometric(Decimal(1) / (2 * FINE))
    worst = NoisyMax(ScoreGrid(SIZES[place], steps=FINE), noise).worst
    assert worst == pytest.approx(CORRECTED[place], abs=6e-4 + 1 / FINE)
    assert worst <= 1 + 1e-6


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_calibrated_noise_is_between_the_printed_and_the_corrected_one(
    size: int, epsilon: float
) -> None:
    """The rate lies in [eps / (2 R), 1.5 eps / R): the fewer ads, the less noise is needed."""
    mechanism = NoisyMax.laplace(size, epsilon)
    rate = float(mechanism.noise.rate) * mechanism.scores.steps / epsilon
    assert 0.5 - 1e-6 <= rate < 1.5
    assert mechanism.worst <= epsilon
    assert mechanism.worst == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 2, 64])
@pytest.mark.parametrize("size", [2, 3, 20])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 16.0])
def test_calibration_meets_the_request_on_every_grid(
    kind: Kind, steps: int, size: int, epsilon: float
) -> None:
    assert kind(size, epsilon, steps=steps).worst == pytest.approx(epsilon, abs=1e-6)


def summed_chances(
    noise: Geometric | TwoSidedGeometric, row: tuple[int, ...], reach: int
) -> Floats:
    """Return each candidate's chance by a sum over all values of all noises."""
    low = -reach if isinstance(noise, TwoSidedGeometric) else 0
    support = np.arange(low, reach + 1)
    chances = np.exp(noise.log_pmf(support))
    result = np.zeros(len(row))
    grids = np.meshgrid(*[support + score for score in row], indexing="ij")
    joint = chances
    for _ in row[1:]:
        joint = joint[..., None] * chances
    winner = np.argmax(np.stack(grids), axis=0)
    np.add.at(result, winner.reshape(-1), joint.reshape(-1))
    return result


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(
    "row", [(0, 0), (0, 3), (3, 0), (1, 2, 3), (0, 3, 3), (3, 0, 0), (2, 2, 2)]
)
def test_chances_are_sums_over_all_noises(row: tuple[int, ...], two_sided: bool) -> None:
    """Ties go to the first; what lies beyond 50 has a mass of e**-25 a candidate."""
    noise = TwoSidedGeometric(Decimal("0.5")) if two_sided else Geometric(Decimal("0.5"))
    mechanism = NoisyMax(ScoreGrid(len(row), 0.0, 3.0, 3), noise)
    chances = mechanism.chances(np.array(row, dtype=float))
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert chances == pytest.approx(summed_chances(noise, row, 50), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_worst_case_is_that_of_all_rows(kind: Kind, size: int) -> None:
    mechanism = kind(size, 2.0, steps=2)
    rows = itertools.product((0.0, 0.5, 1.0), repeat=size)
    logs = np.log([mechanism.chances(row) for row in rows])
    worst = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert mechanism.worst - 2e-9 <= worst <= mechanism.worst


@pytest.mark.parametrize("size", [2, 3, 10])
def test_permute_and_flip_is_noisy_max_with_exponential_noise(size: int) -> None:
    """Ding et al. 2021: the distributions agree; on a grid up to its ties, which fall as it gets
    finer."""

    def difference(steps: int) -> float:
        flip = PermuteAndFlip(size, 1.0, steps=steps)
        rate = -Decimal(flip.accept[-1] / 2**64).ln() / steps
        noisy = NoisyMax(ScoreGrid(size, steps=steps), Geometric(rate))
        row = np.linspace(0.2, 1.0, size)
        return float(np.abs(flip.chances(row) - noisy.chances(row)).max())

    coarse, fine = difference(1024), difference(4096)
    assert coarse < 2e-3
    assert fine < 0.3 * coarse + 1e-9


@pytest.mark.parametrize(("size", "right"), [(10, 0.499), (50, 0.146)])
def test_corrected_noise_is_as_useful_as_the_spec_says(size: int, right: float) -> None:
    """Chance of the best ad, ahead by the range, with Lap(2 R / 4) (spec 003, section 7)."""
    mechanism = NoisyMax(ScoreGrid(size, steps=FINE), TwoSidedGeometric(Decimal(2) / FINE))
    best = mechanism.chances([1.0] + [0.0] * (size - 1))[0]
    assert best == pytest.approx(right, abs=2e-3)


def test_a_row_outside_the_range_has_no_chances() -> None:
    with pytest.raises(ValueError, match="Expected"):
        NoisyMax.laplace(2, 1.0).chances([0.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"size": 1}, "size"),
        ({"size": True}, "size"),
        ({"size": 2, "low": 1.0, "high": 1.0}, "high"),
        ({"size": 2, "low": math.nan}, "low"),
        ({"size": 2, "high": math.inf}, "high"),
        ({"size": 2, "steps": 0}, "steps"),
        ({"size": 2, "steps": 5000}, "steps"),
    ],
)
def test_bad_scores_are_refused(arguments: dict[str, float], name: str) -> None:
    with pytest.raises(BadParameter, match=name):
        ScoreGrid(**arguments)  # type: ignore[arg-type]  # wrong on purpose


def test_scores_are_taken_to_the_nearest_step() -> None:
    scores = ScoreGrid(3, -1.0, 1.0, 4)
    assert scores.row([-1.0, 0.2, 1.0]).tolist() == [0, 2, 4]
    assert scores.row([-0.7, 0.3, 0.8]).tolist() == [1, 3, 4]


@pytest.mark.parametrize("low", [-2.0, 0.0, 5.0])
def test_only_the_range_matters_not_where_it_lies(low: float) -> None:
    there = NoisyMax.laplace(3, 1.0, low=low, high=low + 1)
    here = NoisyMax.laplace(3, 1.0)
    assert there.worst == here.worst
    row = np.array([0.0, 0.5, 1.0])
    assert there.chances(row + low) == pytest.approx(here.chances(row))


def test_the_exponential_mechanism_is_no_noisy_max() -> None:
    """A comparison of distributions that would not tell them apart would have no power."""
    exponential = ExponentialMechanism(3, 1.0, steps=FINE)
    flip = PermuteAndFlip(3, 1.0, steps=FINE)
    row = [0.0, 0.5, 1.0]
    assert np.abs(exponential.chances(row) - flip.chances(row)).max() > 5e-3
