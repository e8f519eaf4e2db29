"""Attribute inference: imputation is not called leakage, memory is."""

import numpy as np
import pytest
from scipy.stats import beta

from noisefloor.adversary.audit.bayes import Guess
from noisefloor.adversary.audit.outcome import AttackOutcome
from noisefloor.adversary.releases.attribute_inference import (
    AttributeInference,
    attack_attribute,
    guess_by_confidence,
    population_prior,
)
from noisefloor.adversary.releases.nearest_records import Codes
from noisefloor.checks import Floats
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.cell_noise import LaplaceCells
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM
from synthetic_rows import SIZES, Rows, population

ADDED = Neighbours.RECORD_ADD_REMOVE
PLAIN = Guarantee.none("no noise", ADDED, TrustModel.CENTRAL)
N = 1_500
SENSITIVE, LABEL = 4, 7
SIZE = SIZES[SENSITIVE]


def people(seed: int) -> tuple[Rows, Rows, Rows]:
    """Return members, others and a disjoint sample."""
    first, second, third = (population(N, seed, "attribute", name) for name in "abc")
    return first, second, third


def prior_of(sample: Rows, rows: Codes) -> Floats:
    """Return the prior given the column before, which the sensitive one leans on."""
    return population_prior(sample, rows, SENSITIVE, SIZE, given=[SENSITIVE - 1])


def confidence_of(table: Rows, weight: float) -> "Memory":
    """Return a model of the label that remembers its rows with some weight."""
    return Memory(table, weight)


class Memory:
    """A third for each label, and ``weight`` for what was seen beside the very same row."""

    def __init__(self, table: Rows, weight: float) -> None:
        self.seen = {tuple(row) for row in table.tolist()}
        self.weight = weight

    def __call__(self, rows: Rows) -> Floats:
        """Return the probability of each row's own label."""
        known = np.array([tuple(row) in self.seen for row in rows.tolist()])
        return (1 - self.weight) / 3 + self.weight * known


def test_the_guess_has_the_largest_prior_times_confidence() -> None:
    rows = np.array([[0, 1], [1, 1]])
    chances = {(0, 0): 0.1, (1, 0): 0.5, (0, 1): 0.9, (1, 1): 0.2}

    def confidence(filled: Rows) -> Floats:
        return np.array([chances[int(row[0]), int(row[1])] for row in filled])

    prior = np.array([[0.5, 0.5], [0.1, 0.9]])
    found = guess_by_confidence(confidence, rows, 0, prior)
    assert found.candidate.tolist() == [0, 1]
    assert found.posterior == pytest.approx([0.9 / 1.1, 0.18 / 0.27])
    nothing = guess_by_confidence(lambda filled: np.zeros(len(filled)), rows, 0, prior)
    assert nothing.candidate.tolist() == [0, 1]


def test_the_prior_counts_rows_alike_and_leans_on_all() -> None:
    sample = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    alone = population_prior(sample, sample[:1], 1, 2)
    assert alone == pytest.approx(np.array([[0.5, 0.5]]))
    given = population_prior(sample, np.array([[0, 0], [1, 0], [2, 0]]), 1, 2, given=[0])
    assert given == pytest.approx(np.array([[2.5 / 4, 1.5 / 4], [0.25, 0.75], [0.5, 0.5]]))


def test_the_guesser_never_sees_the_sensitive_value() -> None:
    seen: list[Rows] = []

    def guesser(rows: Rows) -> Guess:
        seen.append(rows)
        return Guess(rows[:, SENSITIVE].astype(np.intp), np.ones(len(rows)))

    members, others, _ = people(1)
    found = attack_attribute(guesser, members, others, SENSITIVE, PLAIN)
    assert all(np.all(rows[:, SENSITIVE] == 0) for rows in seen)
    assert found.members.right == np.count_nonzero(members[:, SENSITIVE] == 0)


@pytest.mark.statistical
def test_a_model_that_remembers_gives_members_away(seed: int) -> None:
    # The planted leak: 1,500 members and others; false alarm FALSE_ALARM. The null: a model that
    # remembers somebody else.
    members, others, sample = people(seed)

    def attack(model: Memory) -> AttributeInference:
        return attack_attribute(
            lambda rows: guess_by_confidence(model, rows, SENSITIVE, prior_of(sample, rows)),
            members,
            others,
            SENSITIVE,
            PLAIN,
        )

    leak = attack(confidence_of(members, 0.9))
    assert leak.limits(FALSE_ALARM)[0] > 0.1
    null = attack(confidence_of(population(N, seed, "attribute", "far"), 0.9))
    low, high = null.limits(FALSE_ALARM)
    assert low <= 0 <= high


@pytest.mark.statistical
def test_imputation_is_not_called_leakage(seed: int) -> None:
    # The sensitive value follows the column before it: the guess is far above the baseline, for
    # members and others alike. 1,500 of each, false alarm FALSE_ALARM.
    members, others, sample = people(seed)
    counts = np.zeros((SIZES[SENSITIVE - 1], SIZE), dtype=np.int64)
    np.add.at(counts, (members[:, SENSITIVE - 1], members[:, SENSITIVE]), 1)
    noise = LaplaceCells(1.0, ADDED)
    noisy = noise.add(counts, SeededSource(seed, "counts"))

    def guesser(rows: Rows) -> Guess:
        weights = np.maximum(noisy[rows[:, SENSITIVE - 1]], 0) + prior_of(sample, rows)
        return Guess(weights.argmax(axis=1), weights.max(axis=1) / weights.sum(axis=1))

    found = attack_attribute(guesser, members, others, SENSITIVE, noise.guarantee)
    assert found.members.interval[0] > found.members.baseline + 0.1
    low, high = found.limits(FALSE_ALARM)
    assert low <= 0 <= high
    assert low <= found.bound < 1


def test_the_interval_is_of_two_exact_limits_at_each_end() -> None:
    found = AttributeInference(
        AttackOutcome(60, 100, 0.5, 1.0), AttackOutcome(50, 100, 0.5, 1.0), 1.0
    )
    assert found.advantage == pytest.approx(0.1)
    low, high = found.interval
    # Four limits share the 5 % that the interval may miss the advantage with.
    assert low == pytest.approx(beta.ppf(0.0125, 60, 41) - beta.ppf(0.9875, 51, 50), rel=1e-9)
    assert high == pytest.approx(beta.ppf(0.9875, 61, 40) - beta.ppf(0.0125, 50, 51), rel=1e-9)
    wider = found.limits(1e-6)
    assert wider[0] < low
    assert high < wider[1]
