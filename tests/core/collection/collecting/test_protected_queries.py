"""One protected bit of a decision: its law, its budget, and what asking again reveals."""

import math

import numpy as np
import pytest

from noisefloor.accounting.ledger import Ledger
from noisefloor.collection.collecting.protected_queries import (
    DECISIONS,
    ProtectedQueries,
    decisions_kind,
    protected_accuracy,
    queries_guarantee,
    repeated_success,
)
from noisefloor.errors import BadParameter, BudgetExceeded
from noisefloor.mechanisms import BinaryResponse
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.roles.kind_registry import kinds_from_sizes
from statistics_of_tests import FALSE_ALARM, binomial_p


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 10.0])
def test_a_protected_decision_is_right_as_often_as_the_closed_form_says(epsilon: float) -> None:
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    for accuracy in (0.0, 0.5, 0.9, 1.0):
        law = 0.5 + (2 * right - 1) * (accuracy - 0.5)
        assert protected_accuracy(accuracy, epsilon) == pytest.approx(law, abs=1e-12)


def test_at_epsilon_one_no_model_is_seen_with_more_than_73_per_cent() -> None:
    assert 0.731 < protected_accuracy(1.0, 1.0) < 0.7311


@pytest.mark.statistical
def test_drawn_decisions_have_that_accuracy(seed: int) -> None:
    """n = 200 000; false alarm FALSE_ALARM. The twin claims 2 points more."""
    n, decisions = 200_000, np.arange(200_000) % 10 < 9  # nine of ten are right: all are positive
    told = BinaryResponse(1.5).randomise(decisions, SeededSource(seed, "decisions"))
    law, positive = protected_accuracy(0.9, 1.5), int(np.count_nonzero(told))
    assert binomial_p(positive, n, law) > FALSE_ALARM
    assert binomial_p(positive, n, law + 0.02) < FALSE_ALARM


@pytest.mark.parametrize("queries", [1, 2, 3, 4, 7, 20])
def test_a_majority_of_fresh_answers_by_enumeration(queries: int) -> None:
    flip = 1 / (1 + math.exp(1.0))
    law = [
        math.comb(queries, wrong) * flip**wrong * (1 - flip) ** (queries - wrong)
        for wrong in range(queries + 1)
    ]
    ahead = sum(share for wrong, share in enumerate(law) if 2 * wrong < queries)
    draw = sum(share for wrong, share in enumerate(law) if 2 * wrong == queries)
    assert repeated_success(1.0, queries) == pytest.approx(ahead + draw / 2, abs=1e-12)


def test_asking_again_with_fresh_coins_reveals_the_decision() -> None:
    found = [repeated_success(1.0, queries) for queries in (1, 11, 101, 1001)]
    assert found == sorted(found)
    assert found[-1] > 1 - 1e-12


def test_queries_add_up() -> None:
    assert 19.9999 < queries_guarantee(2.0, 10).epsilon <= 20


def test_a_budget_ends_and_what_was_told_stays_told() -> None:
    queries = ProtectedQueries(1.0, Ledger(2.0, neighbours=Neighbours.USER))
    first = queries.answer("ann", "q1", True, SeededSource(8, "q1"))
    queries.answer("ann", "q2", False, SeededSource(8, "q2"))
    again = [queries.answer("ann", "q1", True, SeededSource(8, "again", one)) for one in range(20)]
    assert again == [first] * 20
    assert queries.ledger.spent("ann").epsilon == pytest.approx(2.0, abs=1e-5)
    with pytest.raises(BudgetExceeded):
        queries.answer("ann", "q3", True, SeededSource(8, "q3"))
    assert "q3" not in queries.answered


def test_the_kind_is_one_bit_and_listed() -> None:
    assert kinds_from_sizes({DECISIONS: {}})[DECISIONS] == decisions_kind()


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, math.nan])
def test_a_share_outside_its_range_is_refused(accuracy: float) -> None:
    with pytest.raises(BadParameter, match="accuracy"):
        protected_accuracy(accuracy, 1.0)
