"""Differencing two weeks: exact by enumeration, budgets add up, noise used again leaks."""

import itertools
import math

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.accounting import GaussianNoise, epsilon_at
from noisefloor.adversary.audit.intervals import lower_limit
from noisefloor.adversary.audit.outcome import draw_truth
from noisefloor.adversary.releases.differencing import (
    WeeklyRelease,
    blind_game,
    candidate_guarantee,
    newcomer_game,
)
from noisefloor.adversary.releases.informed_adversary import gaussian_pair_success
from noisefloor.adversary.releases.noise_distributions import (
    CellNoiseDistribution,
    GaussianDistribution,
    NoNoise,
)
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.cell_noise import LaplaceCells
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, binomial_p

ADDED, SUBSTITUTED = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
GAMES = 30_000
NOBODY_OR_FIRST = np.array([[0, 0, 0], [1, 0, 0]])
ONE_OF_THREE = np.eye(3, dtype=np.int64)


def counts_week(epsilon: float) -> WeeklyRelease:
    """Return a week of noisy counts, private for a record added or removed."""
    cells = LaplaceCells(epsilon, ADDED)
    return WeeklyRelease(CellNoiseDistribution(cells), cells.guarantee)


def parameters_week(multiplier: float) -> WeeklyRelease:
    """Return a week of noisy parameters that one record moves by at most one."""
    return WeeklyRelease(
        GaussianDistribution(multiplier), epsilon_at([GaussianNoise(multiplier)], 1e-5)
    )


def test_the_blind_success_is_the_sum_over_all_differences() -> None:
    first, second = counts_week(1.0), counts_week(2.0)
    game, total = blind_game(NOBODY_OR_FIRST, (first, second)), 0.0
    noise = np.arange(-40, 41)
    distributions = [np.exp(week.noise.log_density(noise)) for week in (first, second)]
    apart = np.zeros((2, 163))
    for (one, chance), (two, other) in itertools.product(
        zip(noise, distributions[0], strict=True), zip(noise, distributions[1], strict=True)
    ):
        apart[0, two - one + 81] += chance * other
        apart[1, two - one + 82] += chance * other
    total = float(apart.max(axis=0).sum()) / 2
    assert game.closed_form == pytest.approx(total, abs=1e-6)
    assert game.bound == pytest.approx(math.exp(2) / (1 + math.exp(2)), rel=1e-5)


def test_knowing_the_others_helps_and_no_knowledge_passes_the_bound() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        weeks = counts_week(epsilon), counts_week(epsilon)
        blind, known = (make(NOBODY_OR_FIRST, weeks) for make in (blind_game, newcomer_game))
        assert blind.closed_form is not None
        assert known.closed_form is not None
        assert (
            0.5 < blind.closed_form < known.closed_form <= known.bound + 1e-9 == blind.bound + 1e-9
        )


@pytest.mark.parametrize("kind", ["counts", "parameters"])
@pytest.mark.statistical
def test_newcomers_are_identified_as_the_closed_forms_say(kind: str, seed: int) -> None:
    # 30,000 games; false alarm FALSE_ALARM. The twin: 1.25 times the epsilon, or less noise.
    make, loud = (counts_week, LOUDER) if kind == "counts" else (parameters_week, 1 / LOUDER)
    weeks, twins = (make(1.0), make(1.5)), (make(loud), make(1.5 * loud))
    for name, game_of in (("blind", blind_game), ("known", newcomer_game)):
        outcome = game_of(NOBODY_OR_FIRST, weeks).play(GAMES, SeededSource(seed, kind, name))
        assert_met(outcome)
        assert outcome.closed_form is not None
        twin = game_of(NOBODY_OR_FIRST, twins).play(GAMES, SeededSource(seed, kind, name, "twin"))
        assert_caught(twin, outcome.closed_form)


def test_gaussian_weeks_have_their_closed_form() -> None:
    game = blind_game(
        np.array([[0.0, 0.0], [3.0, 4.0]]), (parameters_week(3.0), parameters_week(4.0))
    )
    assert game.closed_form == pytest.approx(gaussian_pair_success(1.0))


@pytest.mark.statistical
def test_noise_used_again_gives_the_newcomer_away_and_fresh_noise_does_not(seed: int) -> None:
    # 2,000 pairs of releases of a table that the adversary does not know. The planted leak: the
    # noise of the first week again. The same guesses on fresh noise stay within the bound.
    weeks, others = (counts_week(0.5), counts_week(0.5)), np.array([100, 3, 50])
    source = SeededSource(seed, "again")
    truth = draw_truth(np.full(3, 1 / 3), 2_000, source)
    noise = weeks[0].noise.draw((2_000, 3), source.child("first"))
    fresh = weeks[1].noise.draw((2_000, 3), source.child("second"))
    first, joined = others + noise, others + ONE_OF_THREE[truth]
    game = blind_game(ONE_OF_THREE, weeks)
    again = game.guess(joined + noise - first).candidate
    honest = game.guess(joined + fresh - first).candidate
    bound = game.bound
    assert np.array_equal(again, truth)
    assert lower_limit(int((honest == truth).sum()), 2_000, FALSE_ALARM) <= bound < 1
    assert lower_limit(2_000, 2_000, FALSE_ALARM) > bound


@pytest.mark.statistical
def test_no_noise_tells_all_and_a_newcomer_without_effect_nothing(seed: int) -> None:
    nothing = WeeklyRelease(NoNoise(), Guarantee.none("no noise", ADDED, TrustModel.CENTRAL))
    leak = blind_game(ONE_OF_THREE, (nothing, nothing)).play(500, SeededSource(seed, "leak"))
    assert leak.success == leak.bound == 1.0
    # The null: 30,000 games in which no candidate moves anything.
    weeks = counts_week(1.0), counts_week(1.0)
    null = blind_game(np.zeros((3, 2), np.int64), weeks).play(GAMES, SeededSource(seed, "null"))
    assert binomial_p(null.right, null.n, 1 / 3) > FALSE_ALARM


def test_nobody_is_a_neighbour_by_adding_alone() -> None:
    added, swapped = Guarantee(1.0, ADDED), Guarantee(1.0, SUBSTITUTED)
    assert candidate_guarantee(NOBODY_OR_FIRST, added).epsilon == 1.0
    assert candidate_guarantee(ONE_OF_THREE, added).epsilon == 2.0
    assert candidate_guarantee(ONE_OF_THREE, swapped).epsilon == 1.0
    with pytest.raises(BadParameter, match="neighbours"):
        candidate_guarantee(NOBODY_OR_FIRST, swapped)
