"""Estimates, from the exact distribution: they are unbiased, and their standard error is the true
one."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mechanism_cases import Case, named
from noisefloor.checks import Floats
from noisefloor.mechanisms import (
    BinaryResponse,
    FiniteMechanism,
    Hybrid,
    KaryResponse,
    Mechanism,
    OneBitMean,
    Piecewise,
    UnaryEncoding,
)
from noisefloor.mechanisms.base import response_estimate
from noisefloor.randomness import SeededSource

MANY = 10**12
"""Reports in the tallies that are made up: rounding them to integers does not count."""


def symbol(value: Any, size: int) -> Floats:
    return np.asarray(np.eye(size)[int(value)])


TRUTHS: dict[str, Any] = {
    "binary": lambda value: np.array([float(value)]),
    "kary": lambda value: symbol(value, 4),
    "kary in two steps": lambda value: symbol(value, 1025),
    "unary symmetric": lambda row: row.astype(float),
    "unary for one bit": lambda row: row.astype(float),
    "unary for a moved one": lambda row: row.astype(float),
    "unary capped": lambda row: row.astype(float),
    "unary optimised": lambda row: row.astype(float),
    "subset selection": lambda value: symbol(value, 5),
    "subset of its own size": lambda value: symbol(value, 4),
    "memoised": lambda value: np.array([float(value)]),
    "memoised for 3 periods": lambda value: np.full(3, float(value)),
    "argmax response": lambda row: symbol(row.argmax(), 3),
    "printed response": lambda value: symbol(value, 3),
    "one bit": lambda value: np.array([np.rint(value * 2**15) / 2**15]),
    "sampled bit": lambda row: np.rint(row * 2**15) / 2**15,
}
RESPONSES = [name for name in TRUTHS if name not in ("one bit", "sampled bit")]


def single_estimates(mechanism: Mechanism) -> Floats:
    """Return what each possible report alone would say."""
    assert isinstance(mechanism, FiniteMechanism)
    outputs = mechanism.outputs()
    return np.array(
        [
            mechanism.estimate(mechanism.tally(outputs[place : place + 1]), 1).value
            for place in range(len(outputs))
        ]
    )


def distribution(mechanism: Any, value: Any) -> Floats:
    return np.asarray(np.exp(mechanism.log_likelihood(mechanism.outputs(), value)))


def moments(case: Case, mechanism: Mechanism) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of one report's estimate, and the mean tally, for each input."""
    outputs: NDArray[Any] = mechanism.outputs()  # type: ignore[attr-defined]  # all cases here list them
    singles = single_estimates(mechanism)
    tallies = np.array([mechanism.tally(outputs[i : i + 1]) for i in range(len(outputs))])
    distributions = np.array([distribution(mechanism, value) for value in case.domain])
    means = distributions @ singles
    return means, distributions @ singles**2 - means**2, distributions @ tallies


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_estimate_is_unbiased(name: str, epsilon: float) -> None:
    case = named(name)
    means, _, _ = moments(case, case.make(epsilon))
    truths = np.array([TRUTHS[name](value) for value in case.domain])
    assert np.abs(means - truths).max() < 1e-9


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_standard_error_is_that_of_the_draws_for_fixed_data(name: str, epsilon: float) -> None:
    case = named(name)
    mechanism = case.make(epsilon)
    _, variances, tallies = moments(case, mechanism)
    weights = np.arange(1, len(case.domain) + 1)
    weights = weights / weights.sum()
    tally = np.rint(MANY * (weights @ tallies)).astype(np.int64)
    exact = np.sqrt(weights @ variances / MANY)
    assert mechanism.estimate(tally, MANY).standard_error == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("name", ["one bit", "sampled bit"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_standard_error_of_a_mean_is_exact_for_equal_users(name: str, epsilon: float) -> None:
    """For unequal users it is too large, by the spread of their values."""
    case = named(name)
    mechanism = case.make(epsilon)
    _, variances, tallies = moments(case, mechanism)
    for variance, tally in zip(variances, tallies, strict=True):
        estimate = mechanism.estimate(np.rint(MANY * tally).astype(np.int64), MANY)
        exact = np.sqrt(variance / MANY)
        assert estimate.standard_error == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.61, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("value", [-1.0, -0.3, 0.0, 0.77, 1.0])
def test_piecewise_and_hybrid_are_unbiased_on_the_grid(epsilon: float, value: float) -> None:
    on_grid = np.rint((value + 1) * 2**15) / 2**15 - 1
    piecewise, hybrid = Piecewise(epsilon), Hybrid(epsilon)
    mean = distribution(piecewise, value) @ piecewise.debias(piecewise.outputs())
    assert mean == pytest.approx(on_grid, abs=1e-9)
    size = hybrid.one_bit.size
    singles = np.concatenate([piecewise.debias(piecewise.outputs()), [-size, size]])
    one_bit = np.rint(value * 2**15) / 2**15
    assert distribution(hybrid, value) @ singles[hybrid.outputs()] == pytest.approx(
        one_bit, abs=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_one_report_of_the_hybrid_says_what_its_cell_or_bit_stands_for(epsilon: float) -> None:
    hybrid = Hybrid(epsilon)
    cells, size = hybrid.piecewise.window.cells, hybrid.one_bit.size
    ends = hybrid.piecewise.debias(np.array([0, cells - 1])).tolist()
    for report, number in zip((0, cells - 1, cells, cells + 1), (*ends, -size, size), strict=True):
        tally = hybrid.tally(np.array([report]))
        assert hybrid.estimate(tally, 1).value[0] == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("name", ["piecewise", "hybrid"])
def test_the_estimate_of_a_mean_is_the_mean_of_the_single_estimates(name: str) -> None:
    case = named(name)
    mechanism = case.make(1.0)
    reports = mechanism.randomise(case.values(400), SeededSource(1, "linear"))
    tallies = [mechanism.tally(reports[place : place + 1]) for place in range(400)]
    singles = np.array([mechanism.estimate(tally, 1).value for tally in tallies])
    estimate = mechanism.estimate(mechanism.tally(reports), 400)
    assert estimate.value == pytest.approx(singles.mean(axis=0), rel=1e-9)
    assert estimate.standard_error == pytest.approx(singles.std(axis=0) / 20, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_error_of_one_bit_response_is_the_textbooks(epsilon: float, share: float) -> None:
    """Variance e**eps / (e**eps - 1)**2 / n, whatever the share (ads spec, section 2.5)."""
    power = math.exp(epsilon)
    closed = math.sqrt(power) / (power - 1) / math.sqrt(MANY)
    flip = 1 / (1 + power)
    ones = np.array([round(MANY * (share * (1 - flip) + (1 - share) * flip))])
    for mechanism in (BinaryResponse(epsilon), UnaryEncoding.symmetric(1, epsilon)):
        assert mechanism.estimate(ones, MANY).standard_error == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_error_of_optimised_unary_encoding_is_the_papers(epsilon: float) -> None:
    """Variance 4 e**eps / (e**eps - 1)**2 / n for a value that nobody holds (OUE)."""
    mechanism, power = UnaryEncoding.optimised(3, epsilon), math.exp(epsilon)
    tally = np.full(3, round(MANY / (1 + power)))
    closed = 2 * math.sqrt(power) / (power - 1) / math.sqrt(MANY)
    assert mechanism.estimate(tally, MANY).standard_error == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_error_of_kary_response_is_the_papers(epsilon: float) -> None:
    """Variance (k - 2 + e**eps) / (e**eps - 1)**2 / n for a symbol that nobody holds."""
    mechanism, power = KaryResponse(7, epsilon), math.exp(epsilon)
    tally = np.full(7, round(MANY / (power + 6)))
    closed = math.sqrt(5 + power) / (power - 1) / math.sqrt(MANY)
    assert mechanism.estimate(tally, MANY).standard_error == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_error_of_one_bit_means_is_the_closed_form(epsilon: float) -> None:
    """Variance coth(eps / 2)**2 - x**2 over n."""
    mechanism = OneBitMean(epsilon)
    ones = np.array([round(MANY * (1 + 0.4 / mechanism.size) / 2)])
    closed = math.sqrt((1 / math.tanh(epsilon / 2) ** 2 - 0.16) / MANY)
    assert mechanism.estimate(ones, MANY).standard_error == pytest.approx(closed, rel=1e-6)


def test_a_biased_estimator_is_caught() -> None:
    """The twin debiases with an epsilon ten percent off."""
    case = named("kary")
    distributions = np.array([distribution(case.make(1.0), value) for value in case.domain])
    assert np.abs(distributions @ single_estimates(case.make(1.1)) - np.eye(4)).max() > 0.01


def test_noiseless_supports_give_the_truth() -> None:
    estimate = response_estimate(np.array([30, 70]), 100, hold=1.0, lack=0.0)
    assert estimate.value == pytest.approx([0.3, 0.7])
    assert (estimate.standard_error == 0).all()
