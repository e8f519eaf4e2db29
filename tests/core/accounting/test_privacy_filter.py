"""The filter grants what is proved, and never what an exact accountant calls too much."""

import math
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from noisefloor.accounting import (
    Amount,
    GaussianNoise,
    LaplaceNoise,
    LedgerTerms,
    LossTotal,
    PrivacyFilter,
    ReleaseLoss,
    SampledGaussian,
    Spend,
    epsilon_at,
    filter_of,
    noise_multiplier_for,
)
from noisefloor.accounting.privacy_filter import overhead
from noisefloor.errors import BadParameter, BudgetExceeded
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import SeededSource
from properties import examples

ADDED, SWAPPED = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
SEQUENCES = 10_000
_MOST_PURE = 8

Floats = NDArray[np.float64]


def exact_delta(epsilon: float, pure: list[float], multipliers: list[float]) -> float:
    """Return the delta of randomised responses and Gaussian noise together, exactly.

    Randomised responses are the worst pure releases. Each of their outcomes has a loss and a
    chance; given it, the Gaussian rest is one Gaussian, whose delta is known in closed form.
    """
    losses, chances = np.zeros(1), np.ones(1)
    for one in pure:
        truth = 1 / (1 + math.exp(-one))
        losses = np.concatenate([losses + one, losses - one])
        chances = np.concatenate([chances * truth, chances * (1 - truth)])
    left = epsilon - losses
    apart = math.sqrt(sum(multiplier**-2 for multiplier in multipliers))
    if not apart:
        return float(chances @ np.maximum(0.0, -np.expm1(left)))
    first = norm.cdf(apart / 2 - left / apart)
    second = np.exp(left + norm.logcdf(-apart / 2 - left / apart))
    return float(chances @ np.maximum(0.0, first - second))


BUDGETS = [
    Amount.budget(epsilon, delta)
    for epsilon, delta in product((0.3, 1.0, 2.0, 4.0, 10.0), (1e-9, 1e-6, 1e-5, 1e-2))
]
SHARES = (0.05, 0.1, 0.25, 0.4, 0.7, 1.0)


@cache
def menu(budget: Amount) -> list[tuple[Guarantee, ReleaseLoss]]:
    """Return pure and Gaussian releases that cost shares of a budget, with their losses."""
    found = []
    for share in SHARES:
        epsilon = budget.epsilon * share
        pure = Guarantee(epsilon, ADDED, model=TrustModel.CENTRAL)
        found.append((pure, ReleaseLoss.of(pure)))
        delta = max(1e-12, budget.delta / 10)
        multiplier = noise_multiplier_for(epsilon, delta, method="rdp")
        cost = Guarantee(epsilon, ADDED, delta=delta, model=TrustModel.CENTRAL)
        found.append((cost, ReleaseLoss((GaussianNoise(multiplier),))))
    return found


def sequences(seed: int) -> list[tuple[Amount, list[int]]]:
    """Return budgets and releases in order: few kinds in each, so that long ones are tried too."""
    generator = SeededSource(seed, "filter").generator()
    found = []
    for number in range(SEQUENCES):
        budget = BUDGETS[number % len(BUDGETS)]
        kinds = generator.integers(0, 2 * len(SHARES), generator.integers(1, 4))
        found.append((budget, [int(one) for one in generator.choice(kinds, 25)]))
    return found


def granted(granting: PrivacyFilter, budget: Amount, order: list[int]) -> list[int]:
    """Return which releases of a sequence are granted, by their places in the menu."""
    total, found, pure = LossTotal(), [], 0
    for place in order:
        more = total.plus(*costs(granting, place))
        is_pure = not menu(budget)[place][1].events
        if (pure + is_pure) <= _MOST_PURE and granting.admits(more):
            total = more
            found.append(place)
            pure += is_pure
    return found


@cache
def costs(granting: PrivacyFilter, place: int) -> tuple[Amount, int, int]:
    cost, loss = menu(granting.budget)[place]
    return Amount.cost(cost), *granting.cost(loss, ADDED)


def excesses(change: float, most: int = SEQUENCES) -> tuple[int, int]:
    """Return how many sequences an exact accountant calls too much, and how many releases came.

    Args:
        change: What the filter's cap is multiplied by.
        most: How many sequences are tried.
    """
    found = releases = 0
    known: dict[tuple[Amount, tuple[int, ...]], float] = {}
    for budget, order in sequences(7)[:most]:
        honest = filter_of(budget)
        places = granted(replace(honest, cap=int(honest.cap * change)), budget, order)
        releases += len(places)
        key = budget, tuple(sorted(places))
        if key not in known:
            losses = [menu(budget)[place][1] for place in places]
            known[key] = exact_delta(
                budget.epsilon,
                [loss.epsilon for loss in losses if not loss.events],
                [event.noise_multiplier for loss in losses for event in loss.events],  # type: ignore[union-attr]  # Gaussian ones
            )
        found += known[key] > budget.delta * (1 + 1e-9)
    return found, releases


def test_an_exact_accountant_agrees_with_closed_forms() -> None:
    multiplier = noise_multiplier_for(1.0, 1e-5)
    assert exact_delta(1.0, [], [multiplier]) == pytest.approx(1e-5, rel=2e-3)
    halves = [multiplier * math.sqrt(2)] * 2
    assert exact_delta(1.0, [], halves) == pytest.approx(1e-5, rel=2e-3)
    assert exact_delta(1.0, [1.0], []) == 0
    assert exact_delta(0.0, [1.0], []) == pytest.approx(math.tanh(0.5))


def test_no_sequence_is_granted_that_an_exact_accountant_calls_too_much() -> None:
    """10,000 random sequences of pure and Gaussian releases; no chance is involved but theirs."""
    found, releases = excesses(1.0)
    assert found == 0
    assert releases > 3 * SEQUENCES
    assert excesses(1.25, 500)[0] > 10  # a cap that is a quarter too large is found


def test_fourteen_gaussian_releases_fit_where_the_plain_sum_has_four() -> None:
    cost = Guarantee(0.5, ADDED, delta=1e-6, model=TrustModel.CENTRAL)
    terms = LedgerTerms.of(2.0, 1e-5, neighbours=ADDED, model=TrustModel.CENTRAL)
    loss = ReleaseLoss((GaussianNoise(noise_multiplier_for(0.5, 1e-6)),))
    total, spent = LossTotal(), []
    spend = Spend("adult", "s", cost, "histogram", loss=loss)
    for _ in range(14):
        entry = spend.entry(terms, total)
        total = total.plus(entry.debited, entry.renyi, entry.failure)
        assert terms.filter(total).admits(total)
        spent.append(terms.spent(total).epsilon)
    assert spent[9] < 1.7  # ten of them, whose plain sum is 5
    assert spent == sorted(spent)
    assert terms.filter(total).admits(total.plus(entry.debited, entry.renyi)) is False
    together = epsilon_at(loss.events * 16, 1e-5)
    assert together.epsilon < 2 < epsilon_at(loss.events * 17, 1e-5).epsilon


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=12),
    st.sampled_from(BUDGETS),
)
def test_what_is_spent_is_within_the_budget_just_where_it_is_admitted(
    order: list[tuple[int, bool]], budget: Amount
) -> None:
    granting, total = filter_of(budget), LossTotal()
    for place, _ in order:
        total = total.plus(*costs(granting, place))
        assert granting.spent(total).fits(budget) is granting.admits(total)
        if not granting.admits(total):
            before = LossTotal()
            assert granting.shortages(total, before) or total.entries == 1


def test_a_first_release_may_take_the_whole_budget_and_is_then_the_only_one() -> None:
    terms = LedgerTerms.of(1.0, 1e-5, neighbours=ADDED, model=TrustModel.CENTRAL)
    whole = Guarantee(1.0, ADDED, delta=1e-5, model=TrustModel.CENTRAL)
    entry = Spend("adult", "s", whole, "logistic").entry(terms, LossTotal())
    total = LossTotal().plus(entry.debited, entry.renyi, entry.failure)
    granting = terms.filter(total)
    assert granting.admits(total)
    small = Spend("adult", "t", Guarantee(1e-6, ADDED, model=TrustModel.CENTRAL), "more")
    more = small.entry(terms, total)
    assert not granting.admits(total.plus(more.debited, more.renyi, more.failure))


def test_without_a_filter_the_plain_sum_has_all_of_delta() -> None:
    for budget in (Amount.budget(1e-4, 1e-12), Amount.budget(3.0, 0.0), Amount(0, 10**12)):
        granting = filter_of(budget)
        assert (granting.order, granting.reserve) == (0, budget.delta_units)
        half = Amount(budget.micro_epsilon // 2, budget.delta_units // 2)
        assert granting.admits(LossTotal(2, half + half))
        assert not granting.admits(LossTotal(2, half + half + Amount(2)))


def test_deltas_beside_the_divergence_and_cut_tails_are_charged() -> None:
    granting = filter_of(Amount.budget(1.0, 1e-5))
    noise = (GaussianNoise(1e4),)
    assert granting.cost(ReleaseLoss(noise), ADDED)[1] == 0
    own = granting.cost(ReleaseLoss(noise, delta=1e-8), ADDED)[1]
    assert own == 10**10
    moved = granting.cost(ReleaseLoss(noise, variation=1e-10), ADDED)[1]
    assert (1 + math.e) * 1e8 < moved < (1 + math.e) * 1e8 * (1 + 1e-9)
    tiny = LossTotal().plus(Amount(1, 10**13)).plus(Amount(1, 10**13), 1, granting.reserve)
    assert granting.admits(tiny)
    assert not granting.admits(replace(tiny, failure=granting.reserve + 1))
    large = filter_of(Amount.budget(1e6, 1e-5))
    assert large.cost(ReleaseLoss(noise, variation=1e-18), ADDED)[1] > large.reserve
    assert large.cost(ReleaseLoss(noise), ADDED)[1] == 0


def test_the_conversion_is_the_one_of_the_library() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as library

    for order, delta in ((2, 1e-5), (10, 1e-6), (64, 1e-9)):
        found, _ = library.compute_epsilon([order], [0.7], delta)
        assert found == pytest.approx(0.7 + overhead(order, delta), rel=1e-9)


@pytest.mark.parametrize("order", [2, 3, 10, 64])
@pytest.mark.parametrize(
    "event",
    [
        GaussianNoise(1.5, 3),
        SampledGaussian(1.0, 0.01, 100),
        SampledGaussian(2.0, 0.3, 7),
        LaplaceNoise(2.0, 2),
    ],
    ids=repr,
)
def test_divergences_are_those_of_the_library_rounded_up(
    event: GaussianNoise | SampledGaussian | LaplaceNoise, order: int
) -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([order])
    if isinstance(event, LaplaceNoise):
        noise: object = dp_accounting.LaplaceDpEvent(event.scale)
    else:
        noise = dp_accounting.GaussianDpEvent(event.noise_multiplier)
    if isinstance(event, SampledGaussian):
        noise = dp_accounting.PoissonSampledDpEvent(event.sampling_rate, noise)
    accountant.compose(noise, event.count)
    found = ReleaseLoss((event,)).renyi(order, ADDED) / 1e9
    exact = float(accountant._rdp[0])
    assert found >= exact - 1e-12
    # Laplace noise counts as the worst pure release of its epsilon.
    assert found <= (
        event.count / event.scale if isinstance(event, LaplaceNoise) else exact + 2e-9
    )


def test_a_substitution_costs_more_than_coming_or_going() -> None:
    for event in (GaussianNoise(2.0), SampledGaussian(2.0, 0.1, 5), LaplaceNoise(3.0)):
        loss = ReleaseLoss((event,))
        assert loss.renyi(5, SWAPPED) > loss.renyi(5, ADDED)
    assert ReleaseLoss((GaussianNoise(2.0),)).renyi(5, SWAPPED) == 2_500_000_001


@pytest.mark.parametrize("neighbours", [ADDED, SWAPPED])
@pytest.mark.parametrize(
    "event", [SampledGaussian(1e-3, 0.01, 100), SampledGaussian(0.3, 1e-300), GaussianNoise(1e-90)]
)
def test_an_order_that_would_overflow_is_refused_as_any_other(
    event: SampledGaussian | GaussianNoise, neighbours: Neighbours
) -> None:
    terms = LedgerTerms.of(0.01, 1e-6, neighbours=neighbours, model=TrustModel.CENTRAL)
    cost = Guarantee(8.0, neighbours, delta=1e-7, model=TrustModel.CENTRAL)
    entry = Spend("adult", "s", cost, "logistic", loss=ReleaseLoss((event,))).entry(
        terms, LossTotal()
    )
    granting, total = terms.filter(LossTotal()), LossTotal().plus(entry.debited, entry.renyi)
    assert granting.cap < entry.renyi <= 10**30
    assert not granting.admits(total)
    assert granting.shortages(total, LossTotal())


def test_divergences_are_never_rounded_to_nothing() -> None:
    assert ReleaseLoss((SampledGaussian(1e31, 0.5, 2**32),)).renyi(2, ADDED) == 1
    assert ReleaseLoss((SampledGaussian(1.5, 1e-300, 5),)).renyi(100, ADDED) == 1
    assert ReleaseLoss().renyi(2, ADDED) == 0


def test_what_is_spent_is_said_by_a_count_that_is_within_the_budget() -> None:
    granting = filter_of(Amount.budget(2.0, 1e-5))
    own = Guarantee(0.1, ADDED, delta=2e-5, model=TrustModel.CENTRAL)  # its delta is above
    total = LossTotal().plus(
        Amount.cost(own), *granting.cost(ReleaseLoss((GaussianNoise(20.0),)), ADDED)
    )
    assert granting.admits(total)
    assert granting.spent(total).fits(granting.budget)


def test_bad_losses_and_orders_are_refused() -> None:
    loss = ReleaseLoss((GaussianNoise(1.0),))
    for order in (0, 1, 4097, 2.5, True):
        with pytest.raises(BadParameter, match="order"):
            loss.renyi(order, ADDED)  # type: ignore[arg-type]  # on purpose
    for more in ({"epsilon": -1.0}, {"delta": math.nan}, {"variation": math.inf}):
        with pytest.raises(BadParameter):
            ReleaseLoss(**more)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(BadParameter, match="Gaussian noise guarantees nothing"):
        Spend("adult", "s", Guarantee(1.0, ADDED, model=TrustModel.CENTRAL), "x", loss=loss)
    with pytest.raises(BadParameter, match="the cost is above 0"):
        Spend("adult", "s", Guarantee(1.0, ADDED, 1e-6), "x", loss=ReleaseLoss())
    none = Guarantee.none("it is the truth", ADDED, TrustModel.CENTRAL)
    terms = LedgerTerms.of(1.0, neighbours=ADDED, model=TrustModel.CENTRAL)
    with pytest.raises(BudgetExceeded, match="the truth"):
        Spend("adult", "s", none, "x").entry(terms, LossTotal())
