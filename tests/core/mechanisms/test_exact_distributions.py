"""Each mechanism's distribution, enumerated through its real code, against what it says of itself.

For each epsilon: exact worst ratio <= guarantee <= request, and all three within 1e-6.
"""

import itertools
import math
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from batches import batched
from enumeration import (
    Distribution,
    distribution_by_bisection,
    enumerate_distribution,
    enumerate_with_cut,
    exact_worst,
    key_of,
    likelihoods,
    log_ratio,
)
from mechanism_cases import BINNING, CASES, EPSILONS, PRINTED_MAX, Case, named
from noisefloor.distributions import ONE, exp, floor64, ratio
from noisefloor.mechanisms import (
    BinaryResponse,
    ExponentialMechanism,
    FiniteMechanism,
    LocalHashing,
    Mechanism,
    NoisyMax,
    UnaryEncoding,
    exact_epsilon,
    piecewise,
    square_wave,
)
from noisefloor.privacy import Neighbours

CLOSE = 1e-6
FLOAT_NOISE = 1e-11
"""Of a log-likelihood in float64: its values go down to -40, with 16 digits."""

GRID = ("piecewise", "hybrid", "square wave")
UNBOUNDED = ("noisy max, Laplace", "noisy max, exponential")
LISTED = [case for case in CASES if case.name not in (*GRID, *UNBOUNDED, "local hashing")]

over_listed = batched("case", LISTED, label=lambda case: case.name)
over_promising = batched("case", CASES, label=lambda case: case.name)
over_epsilons = pytest.mark.parametrize("epsilon", EPSILONS)


def distribution_of(mechanism: Mechanism, value: Any, seed: int = 0) -> Distribution:
    """Return the exact distribution of one user's report, through the mechanism's own code."""
    values = np.asarray(value)[None]
    if isinstance(mechanism, ExponentialMechanism):
        return distribution_by_bisection(lambda source: mechanism.randomise(values, source))
    return enumerate_distribution(lambda source: mechanism.randomise(values, source), seed=seed)


@cache
def distributions_of(name: str, epsilon: float) -> list[Distribution]:
    """Return the exact distribution for each input of the case's domain."""
    mechanism = named(name).make(epsilon)
    return [distribution_of(mechanism, value) for value in named(name).domain]


def listed(mechanism: Mechanism) -> Any:
    assert isinstance(mechanism, FiniteMechanism)
    return mechanism.outputs()


def check_agreement(distribution: Distribution, stated: dict[Any, float]) -> None:
    """Fail unless the stated likelihoods are the distribution, report by report."""
    assert sum(distribution.values()) == 1
    assert distribution.keys() <= stated.keys()
    for report, log in stated.items():
        # Plain comparisons: there are thousands of reports, and pytest.approx is slow.
        exact = distribution.get(report)
        found = math.log(exact) if exact else -math.inf
        assert found == log or abs(found - log) <= FLOAT_NOISE
        assert abs(float(exact or 0) - math.exp(log)) <= 1e-12


def check_sandwich(
    mechanism: Mechanism,
    worst: Decimal,
    *,
    requested: float,
    neighbours: Neighbours = Neighbours.USER,
    noise: float = 0.0,
) -> None:
    """Fail unless worst ratio <= guarantee <= request, all three within 1e-6."""
    promised = mechanism.guarantee(neighbours).epsilon
    assert worst <= Decimal(promised) + Decimal(noise), "the law breaks the guarantee"
    assert promised <= requested, "the guarantee breaks the request"
    assert float(worst) >= requested - CLOSE, "there is more noise than was asked for"


def brute_force(case: Case, mechanism: Mechanism) -> float:
    """Return the largest log-ratio over all reports and all neighbours of the domain."""
    outputs = listed(mechanism)
    logs = [mechanism.log_likelihood(outputs, value) for value in case.domain]
    return max(
        float(np.abs(logs[one] - logs[other]).max())
        for one, other in itertools.combinations(range(len(logs)), 2)
        if case.are_neighbours(case.domain[one], case.domain[other])
    )


@cache
def stated_worst(name: str, epsilon: float) -> float:
    """Return the brute-force worst log-ratio of a case, once."""
    return brute_force(named(name), named(name).make(epsilon))


@over_listed
@over_epsilons
def test_the_enumerated_distribution_is_the_stated_likelihood(case: Case, epsilon: float) -> None:
    mechanism = case.make(epsilon)
    for value, distribution in zip(case.domain, distributions_of(case.name, epsilon), strict=True):
        check_agreement(distribution, likelihoods(mechanism, listed(mechanism), value))


@over_listed
@over_epsilons
def test_exact_ratio_guarantee_and_request_agree(case: Case, epsilon: float) -> None:
    distributions = distributions_of(case.name, epsilon)
    pairs = [
        (distributions[one], distributions[other])
        for one, other in itertools.combinations(range(len(distributions)), 2)
        if case.are_neighbours(case.domain[one], case.domain[other])
    ]
    check_sandwich(
        case.make(epsilon),
        exact_worst(pairs),
        requested=case.requested(epsilon),
        neighbours=case.neighbours,
    )


@over_promising
@over_epsilons
def test_stated_ratio_guarantee_and_request_agree(case: Case, epsilon: float) -> None:
    mechanism = case.make(epsilon)
    check_sandwich(
        mechanism,
        Decimal(stated_worst(case.name, epsilon)),
        requested=case.requested(epsilon),
        neighbours=case.neighbours,
        noise=FLOAT_NOISE,
    )


@over_promising
@over_epsilons
def test_the_named_worst_pairs_reach_the_worst_of_all_pairs(case: Case, epsilon: float) -> None:
    mechanism = case.make(epsilon)
    reached = exact_epsilon(mechanism, case.neighbours)
    assert reached == pytest.approx(stated_worst(case.name, epsilon), abs=2 * FLOAT_NOISE)


@over_promising
@over_epsilons
def test_stated_likelihoods_sum_to_one(case: Case, epsilon: float) -> None:
    mechanism = case.make(epsilon)
    outputs, expected = listed(mechanism), 1.0
    if isinstance(mechanism, LocalHashing):
        outputs, expected = outputs[: mechanism.cells], 2.0**-32  # of the first seed
    for value in case.domain:
        total = np.exp(mechanism.log_likelihood(outputs, value)).sum()
        assert total == pytest.approx(expected, rel=1e-11)


# Local hashing: the seed is given.


@pytest.mark.parametrize("epsilon", [epsilon for epsilon in EPSILONS if epsilon <= 4])
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_local_hashing_given_the_seed_is_the_stated_likelihood(epsilon: float, seed: int) -> None:
    mechanism = LocalHashing(5, epsilon)
    outputs = np.zeros(mechanism.cells, dtype=mechanism.outputs().dtype)
    outputs["seed"], outputs["cell"] = seed, np.arange(mechanism.cells)
    distributions = []
    for value in range(5):
        distributions.append(distribution_of(mechanism, value, seed))
        stated = likelihoods(mechanism, outputs, value)
        check_agreement(
            distributions[-1], {key: log + 32 * math.log(2) for key, log in stated.items()}
        )
    worst = exact_worst(itertools.combinations(distributions, 2))
    assert worst <= Decimal(mechanism.guarantee().epsilon)


# Windows: through the same code on a grid of 16 steps. The whole grid is in test_window.py.


@pytest.fixture
def coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (piecewise, piecewise, square_wave):
        monkeypatch.setattr(module, "STEPS", 16)


@pytest.mark.usefixtures("coarse_grid")
@pytest.mark.parametrize("name", GRID)
@over_epsilons
def test_the_enumerated_distribution_of_a_window_is_the_stated_likelihood(
    name: str, epsilon: float
) -> None:
    case = named(name)
    mechanism = square_wave.SquareWave(epsilon, 4) if name == "square wave" else case.make(epsilon)
    distributions = []
    for value in case.domain:
        distributions.append(distribution_of(mechanism, value))
        check_agreement(distributions[-1], likelihoods(mechanism, listed(mechanism), value))
    check_sandwich(
        mechanism, exact_worst(itertools.combinations(distributions, 2)), requested=epsilon
    )


# Noisy max: its tails have no end; what is cut off is accounted for.


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize(
    ("size", "steps", "epsilon", "deepest"), [(2, 2, 16.0, 8), (3, 1, 16.0, 8), (2, 1, 2.0, 12)]
)
def test_the_enumerated_distribution_of_noisy_max_is_the_stated_likelihood_up_to_the_cut(
    name: str, size: int, steps: int, epsilon: float, deepest: int
) -> None:
    kind = NoisyMax.laplace if "Laplace" in name else NoisyMax.exponential
    mechanism = kind(size, epsilon, steps=steps)
    for row in itertools.product(np.linspace(0, 1, steps + 1), repeat=size):
        values = np.array([row])
        distribution, cut = enumerate_with_cut(partial(mechanism.randomise, values), deepest)
        assert cut < 0.05
        for report, chance in enumerate(mechanism.chances(row)):
            least = float(distribution.get(report, 0))
            assert least - 1e-12 <= chance <= least + float(cut) + 1e-12


# Faulty mechanisms: what they really spend.


def test_printed_binning_lets_class_zero_give_the_minimum_away() -> None:
    mechanism = BINNING.make(1.0)
    distributions = [distribution_of(mechanism, value) for value in BINNING.domain]
    for value, distribution in zip(BINNING.domain, distributions, strict=True):
        check_agreement(distribution, likelihoods(mechanism, listed(mechanism), value))
    assert [0 in distribution for distribution in distributions] == [True, False, False, False]
    assert exact_worst(itertools.combinations(distributions, 2)) == Decimal("Infinity")
    assert math.isinf(exact_epsilon(mechanism))
    assert not mechanism.guarantee().is_finite
    assert mechanism.guarantee().reason


def test_printed_binning_away_from_the_minimum_is_a_response() -> None:
    mechanism = BINNING.make(1.0)
    distributions = [distribution_of(mechanism, value) for value in BINNING.domain[1:]]
    assert float(exact_worst(itertools.combinations(distributions, 2))) == pytest.approx(
        1.0, abs=CLOSE
    )


@over_epsilons
def test_printed_noisy_max_costs_more_than_it_claims_and_says_so(epsilon: float) -> None:
    mechanism = PRINTED_MAX.make(epsilon)
    worst = brute_force(PRINTED_MAX, mechanism)
    assert worst > epsilon
    assert worst == pytest.approx(exact_epsilon(mechanism), abs=2 * FLOAT_NOISE)
    assert worst <= mechanism.guarantee().epsilon <= worst + CLOSE


# The checks above have power: planted faults are caught.


def with_flip(epsilon: float, flip: int) -> BinaryResponse:
    mechanism = BinaryResponse(epsilon)
    object.__setattr__(mechanism, "flip", flip)
    return mechanism


def binary_worst(mechanism: BinaryResponse) -> Decimal:
    return exact_worst([(distribution_of(mechanism, False), distribution_of(mechanism, True))])


@over_epsilons
def test_a_threshold_rounded_to_the_wrong_side_is_caught(epsilon: float) -> None:
    planted = with_flip(epsilon, floor64(ratio(1, 1 + exp(epsilon))))
    with pytest.raises(AssertionError, match="breaks the request"):
        check_sandwich(planted, binary_worst(planted), requested=epsilon)


@pytest.mark.parametrize(("error", "text"), [(1e-5, "breaks the request"), (-1e-5, "more noise")])
@over_epsilons
def test_an_epsilon_off_by_one_in_a_hundred_thousand_is_caught(
    error: float, text: str, epsilon: float
) -> None:
    planted = with_flip(epsilon, BinaryResponse(epsilon + error).flip)
    with pytest.raises(AssertionError, match=text):
        check_sandwich(planted, binary_worst(planted), requested=epsilon)


def test_a_guarantee_that_promises_too_much_is_caught() -> None:
    mechanism = NoisyMax.laplace(3, 1.0, steps=3)
    object.__setattr__(mechanism, "worst", mechanism.worst - 1e-6)
    worst = Decimal(brute_force(named("noisy max, Laplace"), mechanism))
    with pytest.raises(AssertionError, match="breaks the guarantee"):
        check_sandwich(mechanism, worst, requested=1.0, noise=FLOAT_NOISE)


def test_a_likelihood_of_another_distribution_is_caught() -> None:
    distribution = distribution_of(BinaryResponse(1.0), True)
    stated = likelihoods(BinaryResponse(1 + 1e-9), np.array([False, True]), True)
    with pytest.raises(AssertionError):
        check_agreement(distribution, stated)


def test_a_cap_that_the_guarantee_forgets_is_caught() -> None:
    case = named("unary symmetric")
    mechanism = UnaryEncoding.symmetric(3, 1.0)
    object.__setattr__(mechanism, "most_ones", 1)
    worst = Decimal(brute_force(case, mechanism))
    with pytest.raises(AssertionError, match="breaks the guarantee"):
        check_sandwich(mechanism, worst, requested=1.0, noise=FLOAT_NOISE)


# The enumerator itself.


def test_the_enumerator_enumerates_three_bits() -> None:
    distribution = enumerate_distribution(lambda source: source.bernoulli(ONE // 4, 3)[None])
    assert len(distribution) == 8
    assert distribution[(True, True, False)] * 64 == 3


def test_the_enumerator_leaves_out_what_cannot_happen() -> None:
    assert enumerate_distribution(lambda source: source.bernoulli(ONE, 1)) == {True: 1}
    assert enumerate_distribution(lambda source: source.below(1, 1)) == {0: 1}


def test_the_enumerator_accounts_for_what_it_cuts() -> None:
    def tosses_until_tails(source: Any) -> Any:
        count = 0
        while source.bernoulli(ONE // 2, 1)[0]:
            count += 1
        return np.array([count])

    distribution, cut = enumerate_with_cut(tosses_until_tails, 5)
    assert [distribution[count] * 2 ** (count + 1) for count in range(5)] == [1] * 5
    assert cut * 32 == 1


def test_bisection_finds_the_distribution_of_a_step_function() -> None:
    def thirds(source: Any) -> Any:
        number = int(source.below_wide(np.array([3 << 40], dtype=np.uint64))[0])
        return np.array([number >> 40])

    assert [chance * 3 for chance in distribution_by_bisection(thirds).values()] == [1, 1, 1]


def test_a_log_ratio_of_what_only_one_can_give_is_infinite() -> None:
    one = enumerate_distribution(lambda source: source.below(2, 1))
    other = enumerate_distribution(lambda source: source.below(3, 1))
    assert exact_worst([(one, other)]) == Decimal("Infinity")
    assert float(log_ratio(one[0], other[0])) == pytest.approx(math.log(1.5))
    assert key_of(np.array([1, 2])) == (1, 2)
