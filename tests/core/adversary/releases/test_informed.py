"""The informed adversary: exact success by enumeration, bound kept, null and planted leak."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.accounting import GaussianNoise, epsilon_at
from noisefloor.adversary.audit.bayes import most_probable
from noisefloor.adversary.audit.intervals import lower_limit
from noisefloor.adversary.releases.informed_adversary import (
    InformedGame,
    cells_success,
    gaussian_pair_success,
    pair_closed_form,
    reconstruct,
    shift_success,
    table_game,
)
from noisefloor.adversary.releases.noise_distributions import (
    CellNoiseDistribution,
    GaussianDistribution,
    NoNoise,
)
from noisefloor.adversary.releases.reconstruction_bounds import as_substitution
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.cell_noise import CellNoise, GaussianCells, LaplaceCells
from noisefloor.publication.histogram import Histogram
from noisefloor.randomness import SeededSource
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins, Categories, Schema
from statistics_of_tests import FALSE_ALARM, binomial_p

ADDED, SUBSTITUTED = Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE
GAMES = 30_000
Cells = Callable[[float], CellNoise]
NOISES: list[Cells] = [
    lambda epsilon: LaplaceCells(epsilon, ADDED),
    lambda epsilon: LaplaceCells(epsilon, SUBSTITUTED),
    lambda epsilon: GaussianCells(epsilon, 1e-3, ADDED),
]
IDS = ["laplace-added", "laplace-substituted", "gaussian"]


def enumerated(noise: CellNoise, cells: list[int], prior: list[float], reach: int) -> float:
    """Return the best success over every table near the counts, by the histogram's own
    distribution."""
    size, total = max(cells) + 1, 0.0
    for table in itertools.product(range(-reach, reach + 1), repeat=size):
        released = np.array(table, dtype=np.int64)
        chances = []
        for cell, share in zip(cells, prior, strict=True):
            counts = (np.arange(size) == cell).astype(np.int64)
            chances.append(share * math.exp(noise.log_likelihood(released, counts)))
        total += max(chances)
    return total


@pytest.mark.parametrize("make", NOISES, ids=IDS)
@pytest.mark.parametrize(
    ("cells", "prior"),
    [([0, 1], [0.5, 0.5]), ([0, 1], [0.8, 0.2]), ([0, 1, 1], [0.3, 0.5, 0.2])],
    ids=["even", "leaning", "same-cell"],
)
def test_the_closed_form_is_the_sum_over_all_tables(
    make: Cells, cells: list[int], prior: list[float]
) -> None:
    noise = make(2.0)
    found = cells_success(CellNoiseDistribution(noise), np.array(cells), np.array(prior))
    assert found == pytest.approx(enumerated(noise, cells, prior, 18), abs=2e-6)
    game = table_game(
        np.zeros(2, np.int64),
        np.array(cells),
        CellNoiseDistribution(noise),
        noise.guarantee,
        prior,
    )
    assert game.closed_form == pytest.approx(found)
    assert max(prior) - 1e-9 <= found <= game.bound


def test_three_cells_are_summed_alike() -> None:
    noise = LaplaceCells(3.0, SUBSTITUTED)
    found = cells_success(CellNoiseDistribution(noise), np.arange(3), np.array([0.5, 0.25, 0.25]))
    assert found == pytest.approx(enumerated(noise, [0, 1, 2], [0.5, 0.25, 0.25], 9), abs=1e-4)


@pytest.mark.parametrize("make", NOISES, ids=IDS)
@pytest.mark.statistical
def test_the_missing_record_is_named_as_often_as_the_closed_form_says(
    make: Cells, seed: int
) -> None:
    # 30,000 games of 5 candidates; false alarm FALSE_ALARM. The twin: 1.25 times the epsilon.
    others, cells, prior = np.arange(12).reshape(3, 4), np.array([0, 3, 5, 5, 11]), [0.2] * 5
    noise, loud = make(1.0), make(LOUDER)
    game = table_game(others, cells, CellNoiseDistribution(noise), noise.guarantee, prior)
    outcome = game.play(GAMES, SeededSource(seed, "tables"))
    assert_met(outcome)
    assert outcome.closed_form is not None
    assert outcome.baseline == 0.2 < outcome.closed_form
    louder = table_game(others, cells, CellNoiseDistribution(loud), noise.guarantee, prior)
    assert_caught(louder.play(GAMES, SeededSource(seed, "louder")), outcome.closed_form)


def small_records(rows: list[tuple[str, float]]) -> Records:
    """Return a table of two columns."""
    schema = Schema("one person", {"kind": Categories(("a", "b")), "age": Bins((0, 10, 20, 30))})
    table = {"kind": np.array([row[0] for row in rows]), "age": np.array([row[1] for row in rows])}
    return Records.of(table, schema, "rows")


def test_the_posterior_is_that_of_the_histograms_own_likelihood() -> None:
    known: list[tuple[str, float]] = [("a", 1.0), ("a", 12.0), ("b", 25.0), ("b", 25.0)]
    options: list[tuple[str, float]] = [("a", 5.0), ("b", 5.0), ("b", 29.0)]
    records, prior = small_records(known), [0.5, 0.3, 0.2]
    noise = LaplaceCells(1.0, ADDED)
    histogram = Histogram(records.schema, ("kind", "age"), noise)
    released = histogram.draw(small_records([*known, options[2]]), SeededSource(1, "release"))
    logs = [histogram.log_likelihood(released, small_records([*known, one])) for one in options]
    expected = np.array(prior) * np.exp(np.array(logs) - max(logs))
    cells = np.array([0, 3, 5])
    game = table_game(
        records.counts(("kind", "age")),
        cells,
        CellNoiseDistribution(noise),
        noise.guarantee,
        prior,
    )
    seen = released.reshape(1, -1)[:, cells]
    found = reconstruct(seen, game.centres, game.noise, prior)
    assert found[0] == pytest.approx(expected / expected.sum(), rel=1e-9)
    assert game.guess(seen).candidate[0] == most_probable(found).candidate[0]


@pytest.mark.statistical
def test_counts_without_noise_give_the_record_away_and_equal_cells_tell_nothing(seed: int) -> None:
    # The planted leak: no noise. The null: all candidates lie in one cell; n = 30,000 games.
    others, source = np.array([4, 0, 2]), SeededSource(seed, "twins")
    plain = Guarantee.none("no noise", SUBSTITUTED)
    leak = table_game(others, np.arange(3), NoNoise(), plain).play(1_000, source.child("leak"))
    assert leak.success == leak.bound == 1.0
    noise = LaplaceCells(1.0, SUBSTITUTED)
    null = table_game(others, np.zeros(3, np.int64), CellNoiseDistribution(noise), noise.guarantee)
    outcome = null.play(GAMES, source.child("null"))
    assert outcome.closed_form == pytest.approx(1 / 3)
    assert binomial_p(outcome.right, outcome.n, 1 / 3) > FALSE_ALARM
    # The leak claims a guarantee that it has not: the bound refutes it.
    assert lower_limit(leak.right, leak.n, FALSE_ALARM) > null.bound


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.statistical
def test_noised_parameters_are_distinguished_as_the_gaussian_form_says(
    share: float, seed: int
) -> None:
    # 30,000 games, 40 parameters; false alarm FALSE_ALARM. The twin: 25 % less noise.
    draw = SeededSource(5, "centres").generator()
    centres, prior = draw.normal(size=(2, 40)), [share, 1 - share]
    apart = float(np.linalg.norm(centres[0] - centres[1]))
    noise = GaussianDistribution(0.5 * apart)
    proved = epsilon_at([GaussianNoise(1.0)], 1e-5, neighbours=SUBSTITUTED)
    closed = pair_closed_form(centres, noise, np.array(prior))
    assert closed == pytest.approx(gaussian_pair_success(2.0, share))
    game = InformedGame(centres, noise, proved, prior, closed)
    outcome = game.play(GAMES, SeededSource(seed, "gaussian"))
    assert_met(outcome)
    thin = InformedGame(centres, GaussianDistribution(0.375 * apart), proved, prior)
    assert_caught(thin.play(GAMES, SeededSource(seed, "thin")), gaussian_pair_success(2.0, share))


def test_the_gaussian_form_has_its_limits() -> None:
    assert gaussian_pair_success(0.0, 0.7) == 0.7
    assert gaussian_pair_success(1e-9, 0.7) == pytest.approx(0.7)
    assert gaussian_pair_success(40.0, 0.7) == pytest.approx(1.0)
    with pytest.raises(BadParameter, match="share"):
        gaussian_pair_success(1.0, 1.0)


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("make", NOISES, ids=IDS)
def test_one_more_in_each_table_is_detected_as_all_releases_sum_to(
    make: Cells, tables: int
) -> None:
    noise, total = make(1.2), 0.0
    for drawn in itertools.product(range(-25, 27), repeat=tables):
        released = np.array(drawn)
        both = [noise.log_likelihood(released, np.full(tables, one)) for one in (0, 1)]
        total += math.exp(max(both)) / 2
    assert shift_success(CellNoiseDistribution(noise), tables) == pytest.approx(total, abs=1e-6)


def test_laplace_tables_are_distinguished_as_majorities_of_bits() -> None:
    # Discrete Laplace noise tells one more by a draw of e^eps : 1, a table each.
    from noisefloor.adversary.audit.bayes import majority_success

    distribution = CellNoiseDistribution(LaplaceCells(0.6, ADDED))
    keep = math.exp(0.6) / (1 + math.exp(0.6))
    assert shift_success(distribution, 9) == pytest.approx(majority_success(9, keep), abs=1e-5)
    assert shift_success(CellNoiseDistribution(GaussianCells(1.0, 1e-5, ADDED)), 13) is not None


def test_what_is_not_known_in_closed_form_is_not_given() -> None:
    distribution, even = CellNoiseDistribution(LaplaceCells(1.0, ADDED)), np.full(2, 0.5)
    assert pair_closed_form(np.zeros((3, 1)), distribution, np.full(3, 1 / 3)) is None
    assert pair_closed_form(np.array([[0], [2]]), distribution, even) is None
    assert pair_closed_form(np.array([[0], [1]]), distribution, np.array([0.3, 0.7])) is None
    down = pair_closed_form(np.array([[1, 0], [0, 1]]), distribution, even)
    assert down == pytest.approx(shift_success(distribution, 2))
    assert down == pytest.approx(cells_success(distribution, np.arange(2), even), abs=1e-6)


def test_releases_and_centres_have_to_fit() -> None:
    with pytest.raises(BadParameter, match="released"):
        reconstruct(np.zeros((2, 3)), np.zeros((2, 4)), NoNoise())
    plain = as_substitution(Guarantee(1.0, ADDED))
    with pytest.raises(BadParameter, match="centres"):
        InformedGame(np.zeros(3), NoNoise(), plain)
    with pytest.raises(BadParameter, match="prior"):
        InformedGame(np.zeros((2, 1)), NoNoise(), plain, [0.5, 0.6])
