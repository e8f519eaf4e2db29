"""Repeated questions: majorities as the binomial distribution says, louder twins."""

import numpy as np
import pytest

from attack_outcomes import LOUDER, assert_caught, assert_met
from noisefloor.adversary.records.repeated_queries import (
    attack_decisions,
)
from noisefloor.mechanisms import BinaryResponse
from noisefloor.randomness import SeededSource

SIZES, OWNERS = (4, 3, 2), 20_000
# Nobody is spread evenly: ties are tossed, so that the success is the same for every class.
CODES = np.minimum(SeededSource(2, "queries").generator().integers(0, 6, (OWNERS, 3)), 1)


@pytest.mark.statistical
@pytest.mark.parametrize("queries", [1, 4, 9])
def test_decisions_are_guessed_as_often_as_majorities_are_right(queries: int, seed: int) -> None:
    # n = 20,000; false alarm FALSE_ALARM. The twin: epsilon 1.25 times too large.
    source, decisions = SeededSource(seed, "decisions", queries), CODES[:, 0] == 1
    outcome = attack_decisions(BinaryResponse(1.0), decisions, queries, source.child(1))
    assert_met(outcome)
    twin = attack_decisions(BinaryResponse(LOUDER), decisions, queries, source.child(2))
    assert outcome.closed_form is not None
    assert_caught(twin, outcome.closed_form)
