"""One protected bit of a decision: its distribution, its budget, and what asking again reveals."""

import math

import pytest

from noisefloor.collection.collecting.protected_queries import (
    DECISIONS,
    decisions_kind,
    repeated_success,
)
from noisefloor.roles.kind_registry import kinds_from_sizes


@pytest.mark.parametrize("queries", [1, 2, 3, 4, 7, 20])
def test_a_majority_of_fresh_answers_by_enumeration(queries: int) -> None:
    flip = 1 / (1 + math.exp(1.0))
    distribution = [
        math.comb(queries, wrong) * flip**wrong * (1 - flip) ** (queries - wrong)
        for wrong in range(queries + 1)
    ]
    ahead = sum(share for wrong, share in enumerate(distribution) if 2 * wrong < queries)
    draw = sum(share for wrong, share in enumerate(distribution) if 2 * wrong == queries)
    assert repeated_success(1.0, queries) == pytest.approx(ahead + draw / 2, abs=1e-12)


def test_repeated_queries_with_fresh_draws_reveals_the_decision() -> None:
    found = [repeated_success(1.0, queries) for queries in (1, 11, 101, 1001)]
    assert found == sorted(found)
    assert found[-1] > 1 - 1e-12


def test_the_kind_is_one_bit_and_listed() -> None:
    assert kinds_from_sizes({DECISIONS: {}})[DECISIONS] == decisions_kind()
