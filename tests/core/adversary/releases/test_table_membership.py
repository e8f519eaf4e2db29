"""Membership in noisy tables: the exact ratio, the exact success, null and planted leak."""

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.adversary.releases.noise_laws import NoNoise
from noisefloor.adversary.releases.released_laws import CellLaw
from noisefloor.adversary.releases.table_membership import (
    at_cells,
    membership_game,
    table_log_ratios,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Model, Neighbours
from noisefloor.publication.cell_noise import CellNoise, GaussianCells, LaplaceCells
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

ADDED = Neighbours.RECORD_ADD_REMOVE
TABLES = 6
GAMES = 30_000


def test_the_ratio_is_that_of_the_likelihoods_of_whole_tables() -> None:
    noise = GaussianCells(1.0, 1e-4, ADDED)
    others = [np.array([[3, 1], [0, 2]]), np.array([4, 2])]
    cells = np.array([[2, 1], [1, 0]])
    source = SeededSource(4, "tables")
    released = [noise.add(one, source.child(place)) for place, one in enumerate(others)]
    found = table_log_ratios(at_cells(released, cells), at_cells(others, cells), CellLaw(noise))
    for target, ratio in zip(cells, found, strict=True):
        expected = 0.0
        for table, counts, cell in zip(released, others, target, strict=True):
            counted = counts.reshape(-1) + (np.arange(counts.size) == cell)
            seen = table.reshape(-1)
            expected += noise.log_likelihood(seen, counted)
            expected -= noise.log_likelihood(seen, counts.reshape(-1))
        assert ratio == pytest.approx(expected, rel=1e-9)


def shared(kind: str, epsilon: float) -> tuple[CellNoise, Guarantee]:
    """Return the noise of one of six tables, and what is proved of all."""
    noise: CellNoise = (
        LaplaceCells(epsilon / TABLES, ADDED)
        if kind == "laplace"
        else GaussianCells(epsilon / TABLES, 1e-4, ADDED)
    )
    one = noise.guarantee
    whole = Guarantee(TABLES * one.epsilon, ADDED, TABLES * one.delta, Model.CENTRAL)
    return noise, whole


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.statistical
def test_members_are_told_as_often_as_the_closed_form_says(kind: str, seed: int) -> None:
    # 30,000 games of six tables; false alarm FALSE_ALARM. The twin: 1.25 times the epsilon.
    others = np.array([10, 0, 3, 7, 1, 2])
    (noise, whole), (loud, _) = shared(kind, 4.0), shared(kind, 4.0 * LOUDER)
    outcome = membership_game(others, CellLaw(noise), whole).play(
        GAMES, SeededSource(seed, kind, "honest")
    )
    assert_met(outcome)
    assert outcome.closed_form is not None
    twin = membership_game(others, CellLaw(loud), whole)
    assert_caught(twin.play(GAMES, SeededSource(seed, kind, "loud")), outcome.closed_form)


@pytest.mark.statistical
def test_tables_without_noise_tell_all_and_a_target_in_no_table_is_a_coin(seed: int) -> None:
    # The planted leak, and 30,000 games of the null: ratios of people who were never counted.
    others, (noise, whole) = np.full(TABLES, 5), shared("laplace", 2.0)
    leak = membership_game(others, NoNoise(), whole).play(1_000, SeededSource(seed, "leak"))
    assert leak.success == 1.0 > leak.bound
    released = others + noise.add(np.zeros((GAMES, TABLES), np.int64), SeededSource(seed, "null"))
    ratios = table_log_ratios(released, others[None], CellLaw(noise))
    guessed = ratios > 0
    truth = SeededSource(seed, "truth").stage("coin").bernoulli(1 << 63, GAMES)
    assert binomial_p(int((guessed == truth).sum()), GAMES, 0.5) > FALSE_ALARM
    counted = table_log_ratios(released + truth[:, None], others[None], CellLaw(noise)) > 0
    assert binomial_p(int((counted == truth).sum()), GAMES, 0.5) < FALSE_ALARM


def test_what_does_not_fit_is_refused() -> None:
    noise = LaplaceCells(1.0, Neighbours.RECORD_SUBSTITUTE)
    with pytest.raises(BadParameter, match="neighbours"):
        membership_game(np.zeros(2, np.int64), CellLaw(noise), noise.guarantee)
    with pytest.raises(BadParameter, match="cells"):
        at_cells([np.zeros(3, np.int64)], np.zeros((4, 2), np.int64))
