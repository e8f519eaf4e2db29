"""One budget for all tables: its exact distribution, its account, and faults that the account
catches."""

import itertools
import math

import numpy as np
import pytest

from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.cell_noise import LEAST_DELTA, GaussianCells, LaplaceCells
from noisefloor.publication.synthesis.noise_budget import (
    GaussianEntries,
    LaplaceEntries,
    NoiseBudget,
    table_change,
)
from noisefloor.publication.synthesis.privacy_loss import (
    RecordChange,
    gaussian_table,
    loss_distribution,
)

ADD, SWAP = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE


def cost(epsilon: float, neighbours: Neighbours, delta: float = 0.0) -> Guarantee:
    return Guarantee(epsilon, neighbours, delta=delta, model=TrustModel.CENTRAL)


def exact_delta(groups: list[tuple[float, RecordChange]], epsilon: float) -> float:
    """Sum max(P - e**epsilon Q, 0) over every output, from the integer weights."""
    distributions = []
    for sigma, change in groups:
        table = gaussian_table(sigma)
        here = np.append(table.chances, np.zeros(change.step))
        there = np.append(np.zeros(change.step), table.chances)
        distributions += [(here, there)] * change.entries
    one, two = np.ones(1), np.ones(1)
    for here, there in distributions:
        one, two = np.outer(one, here).reshape(-1), np.outer(two, there).reshape(-1)
    return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())


@pytest.mark.parametrize(
    "groups",
    [
        [(0.7, RecordChange(3, 1))],
        [(1.0, RecordChange(2, 1)), (1.5, RecordChange(1, 2))],
        [(0.8, RecordChange(1, 1)), (1.5, RecordChange(2, 2))],
    ],
)
@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.5])
def test_the_loss_distribution_is_the_sum_over_all_outputs(
    groups: list[tuple[float, RecordChange]], epsilon: float
) -> None:
    exact = exact_delta(groups, epsilon)
    found = loss_distribution(groups, 1e-4).delta(epsilon)
    assert exact <= found <= exact + 3e-4


def test_a_group_that_is_forgotten_is_caught() -> None:
    """The twin: an account of one group less says less than the outputs show."""
    groups = [(1.0, RecordChange(2, 1)), (1.5, RecordChange(1, 2))]
    assert exact_delta(groups, 0.6) > 1.2 * loss_distribution(groups[:1], 1e-4).delta(0.6)


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_one_table_needs_the_noise_of_one_histogram(
    neighbours: Neighbours, epsilon: float
) -> None:
    """Against the exact sum over one or two cells."""
    budget = NoiseBudget.of(
        cost(epsilon, neighbours, 1e-5), {"one": table_change(1, neighbours)}, {"one": 1.0}
    )
    noise = budget.noises["one"]
    assert isinstance(noise, GaussianEntries)
    exact = GaussianCells(epsilon, 1e-5, neighbours).table.sigma
    assert exact * (1 - 1e-5) <= noise.table.sigma <= exact * 1.001
    assert 0.999 * epsilon <= budget.guarantee.epsilon <= epsilon


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_laplace_shares_add_up_to_the_cost(neighbours: Neighbours) -> None:
    changes = {"tables": table_change(3, neighbours), "scores": RecordChange(5, 2)}
    budget = NoiseBudget.of(cost(1.0, neighbours), changes, {"tables": 0.75, "scores": 0.25})
    assert 1 - 1e-4 <= budget.guarantee.epsilon <= 1.0
    noise, alone = budget.noises["tables"], LaplaceCells(0.25, neighbours)
    assert isinstance(noise, LaplaceEntries)
    assert noise.variance == pytest.approx(alone.mechanism.noise.variance, rel=1e-6)


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_the_worst_ratio_of_all_laplace_entries_is_the_guarantee(neighbours: Neighbours) -> None:
    change = table_change(2, neighbours)
    budget = NoiseBudget.of(cost(0.8, neighbours), {"tables": change}, {"tables": 1.0})
    noise = budget.noises["tables"]
    counts = np.full(change.entries, 9)
    worst = 0.0
    for moves in itertools.product([-1, 1], repeat=change.entries):
        for sign in (-40, 0, 40):
            released = counts + sign * np.array(moves)
            here = noise.log_likelihood(released, counts)
            there = noise.log_likelihood(released, counts + np.array(moves))
            worst = max(worst, abs(here - there))
    assert budget.guarantee.epsilon - 1e-6 < worst <= budget.guarantee.epsilon + 1e-9


def test_a_record_that_moves_entries_by_two_costs_what_is_guaranteed() -> None:
    budget = NoiseBudget.of(cost(0.9, ADD), {"scores": RecordChange(3, 2)}, {"scores": 1.0})
    noise, scores = budget.noises["scores"], np.full(3, 9)
    here = noise.log_likelihood(scores - 40, scores)
    there = noise.log_likelihood(scores - 40, scores + 2)
    assert budget.guarantee.epsilon - 1e-6 < here - there <= budget.guarantee.epsilon + 1e-9


def test_noise_for_add_and_remove_does_not_do_for_substitution() -> None:
    """The twin: under substitution the same noise passes what it was planned for."""
    noise = NoiseBudget.of(cost(0.8, ADD), {"t": table_change(2, ADD)}, {"t": 1.0}).noises["t"]
    counts = np.full(4, 9)
    moved = counts + np.array([1, -1, 1, -1])
    gap = noise.log_likelihood(counts, counts) - noise.log_likelihood(counts, moved)
    assert gap > 1.5


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (-1, 0), (1e-9, 0), (1e-6, 1e-6), (1, 1e-12), (39, 1e-5)]
)
def test_costs_that_cannot_be_met_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BadParameter):
        NoiseBudget.of(cost(epsilon, ADD, delta), {"t": table_change(12, ADD)}, {"t": 1.0})


@pytest.mark.parametrize("parts", [3, 7, 11])
def test_shares_that_are_no_binary_fractions_never_pass_the_cost(parts: int) -> None:
    changes = {f"t{number}": table_change(parts, ADD) for number in range(parts)}
    for epsilon in (0.1, 0.3, 0.7, 1.1):
        budget = NoiseBudget.of(cost(epsilon, ADD), changes, dict.fromkeys(changes, 1 / parts))
        assert 0.999 * epsilon < budget.guarantee.epsilon <= epsilon


def test_the_table_ends_where_its_likelihood_does() -> None:
    budget = NoiseBudget.of(cost(4.0, ADD, LEAST_DELTA), {"t": table_change(1, ADD)}, {"t": 1.0})
    noise = budget.noises["t"]
    assert isinstance(noise, GaussianEntries)
    zero, reach = np.zeros(1, dtype=np.int64), noise.table.reach
    for step, is_possible in ((reach, True), (reach + 1, False)):
        for sign in (1, -1):
            found = noise.log_likelihood(zero + sign * step, zero)
            assert math.isfinite(found) is is_possible


def test_shares_that_are_not_the_whole_are_refused() -> None:
    groups = {name: table_change(1, ADD) for name in ("t", "u")}
    for shares in (
        {"t": 0.5, "u": 0.499},
        {"t": 0.5, "u": 0.501},
        {"t": 1.0},
        {"t": 1.0, "u": 0.0},
    ):
        with pytest.raises(BadParameter, match="shares"):
            NoiseBudget.of(cost(1, ADD), groups, shares)
    with pytest.raises(BadParameter, match="central"):
        NoiseBudget.of(Guarantee(1.0, ADD), {"t": table_change(1, ADD)}, {"t": 1.0})
