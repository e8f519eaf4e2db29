"""What rounding costs in tables: the bounds against exact sums over the weights themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ngram_cases import a_plan
from noisefloor.accounting import Ledger
from noisefloor.mechanisms import GaussianTable
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text.ngrams import NgramPlan
from noisefloor.publication.text.ngrams.table_rounding import TableRounding
from noisefloor.randomness import SeededSource

ONE = 1 << 64
REMOVAL = Neighbours.RECORD_ADD_REMOVE


def weights(sigma: float) -> list[int]:
    return [int(one) for one in GaussianTable(sigma).distribution.weights]


def exact_mean(drawn: list[int], shift: int) -> Fraction:
    """Return the mean of 1 / w, drawn from the table shifted, where both have weights."""
    both = zip(drawn[: len(drawn) - shift], drawn[shift:], strict=True)
    return sum((Fraction(one, ONE * other) for one, other in both), Fraction(0))


@pytest.mark.parametrize("sigma", [1.6, 3.0, 17.3, 300.0])
@pytest.mark.parametrize("far", [0.2, 0.9, 2.0])
def test_means_and_missed_chances_of_one_cell_are_within_the_bound(
    sigma: float, far: float
) -> None:
    drawn, shift = weights(sigma), max(1, math.floor(far * sigma))
    bound = TableRounding.of(sigma, sigma, 1, shift / sigma)
    exact = exact_mean(drawn, 0) + exact_mean(drawn, shift)
    assert exact_mean(drawn, 0) == Fraction(len(drawn), ONE)
    assert 1e-5 * bound.mean < exact <= bound.mean
    missed = Fraction(sum(drawn[len(drawn) - shift :]), ONE)
    assert 2 * missed <= bound.missed
    assert math.log(float(Fraction(max(drawn), ONE)) * sigma * math.sqrt(2 * math.pi)) < (
        bound.excess + 1e-12
    )


@pytest.mark.parametrize("widths", [(3.0, 6.0, 12.0), (10.0, 10.0, 10.0, 10.0)])
def test_cells_of_several_scales_are_within_the_bound_however_a_record_is_spread(
    widths: tuple[float, ...],
) -> None:
    root = 0.8
    bound = TableRounding.of(min(widths), max(widths), len(widths), root)
    draws = SeededSource(5, "directions").generator()
    for _ in range(20):
        part = np.abs(draws.standard_normal(len(widths)))
        moved = root * part / np.linalg.norm(part)
        shifts = [int(one * sigma) for one, sigma in zip(moved, widths, strict=True)]
        exact = [
            exact_mean(weights(sigma), 0) + exact_mean(weights(sigma), shift)
            for sigma, shift in zip(widths, shifts, strict=True)
        ]
        assert sum(exact, Fraction(0)) <= bound.mean
        missed = [
            Fraction(sum(weights(sigma)[len(weights(sigma)) - shift :]), ONE)
            for sigma, shift in zip(widths, shifts, strict=True)
        ]
        assert 2 * sum(missed, Fraction(0)) <= bound.missed


@pytest.mark.parametrize("order", [2, 3, 16])
def test_divergence_of_what_is_drawn_is_within_what_is_stated(order: int) -> None:
    """Where both tables have weights and the sum of 1 / w is at most eta; on one cell, exactly."""
    sigma, eta = 4.0, 1e-6
    drawn = weights(sigma)
    for shift in (1, 2, 4):
        bound = TableRounding.of(sigma, sigma, 1, shift / sigma)
        pairs = zip(drawn[: len(drawn) - shift], drawn[shift:], strict=True)
        kept = [(one, other) for one, other in pairs if 1 / one <= eta and 1 / other <= eta]
        inside = Fraction(sum(one for one, _ in kept), ONE)
        assert 1 - inside <= bound.delta(eta)
        total = sum(
            Fraction(one, ONE) * Fraction(one, other) ** (order - 1) for one, other in kept
        )
        found = math.log(total / inside**order) / (order - 1)
        continuous = order * (shift / sigma) ** 2 / 2
        assert found <= continuous + bound.cost(bound.delta(eta)) * (1 + 1e-12)


def releases(budget: float, epsilon: float, delta: float = 1e-5) -> tuple[int, NgramPlan]:
    """Return how many releases a budget of delta 1e-4 grants, and the plan of one."""
    cost = Guarantee(epsilon, REMOVAL, delta=delta, model=TrustModel.CENTRAL)
    plan = NgramPlan.of(cost, 2, 60, 30_522)
    ledger = Ledger(budget, 1e-4, neighbours=REMOVAL, model=TrustModel.CENTRAL)
    made = 0
    while ledger.can_spend("users", cost, loss=plan.loss):
        ledger.spend("users", f"release-{made}", cost, "texts", plan.guarantee, loss=plan.loss)
        made += 1
    return made, plan


def test_a_larger_budget_grants_more_releases() -> None:
    made = [releases(budget, 2.0)[0] for budget in (4.0, 8.0, 12.0, 16.0)]
    assert made == sorted(made)
    assert made[1] >= 10
    assert made[3] >= 30


def test_a_release_of_a_tiny_delta_is_charged_by_total_variation() -> None:
    plan = releases(8.0, 2.0, 1e-8)[1]
    assert plan.loss.delta == 0
    assert plan.loss.variation == plan.variation


def test_rounding_takes_little_of_what_is_charged() -> None:
    for epsilon in (0.5, 2.0, 8.0):
        plan = a_plan(epsilon)
        exact = sum(1 / one**2 for one in plan.multipliers.values())
        charged = plan.loss.renyi(2, REMOVAL) / 1e9
        assert exact < charged < 1.05 * exact


def test_a_shift_too_far_for_floats_has_no_bound() -> None:
    bound = TableRounding.of(2.0, 2.0, 1, 100.0)
    assert bound.delta(1.0) == bound.cost(0.5) == math.inf
