"""Exact success over several observations, against listing every sequence of outputs."""

import itertools
import math

import numpy as np
import pytest

from noisefloor.adversary.audit.bayes import majority_success
from noisefloor.adversary.audit.observations import (
    compositions,
    counts_table,
    exact_success,
    likelihood_table,
    merged,
    success_from,
    success_of,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, DiscreteLaplace, KaryResponse, UnaryEncoding
from noisefloor.randomness import SeededSource


def some_table(rows: int, columns: int) -> Floats:
    """A distribution without any structure."""
    drawn = SeededSource(3, "table", rows, columns).words(rows * columns).astype(np.float64)
    weights = drawn.reshape(rows, columns) + 2.0**60
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def listed_success(table: Floats, observations: int, prior: Floats) -> float:
    """Sum over every sequence of outputs, one by one."""
    total = 0.0
    for outputs in itertools.product(range(table.shape[1]), repeat=observations):
        total += float((prior * table[:, outputs].prod(axis=1)).max())
    return total


@pytest.mark.parametrize("observations", [1, 2, 4])
def test_counts_say_as_much_as_sequences(observations: int) -> None:
    table, prior = some_table(3, 4), np.array([0.5, 0.3, 0.2])
    found = exact_success(table, observations, prior)
    assert found == pytest.approx(listed_success(table, observations, prior), rel=1e-12)


def test_compositions_are_all_there_once() -> None:
    listed = compositions(5, 3)
    assert len(listed) == math.comb(7, 2)
    assert len({tuple(row) for row in listed.tolist()}) == len(listed)
    assert (listed.sum(axis=1) == 5).all() and listed.min() == 0
    counts = counts_table(some_table(2, 3), 5)
    assert counts is not None
    assert counts.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_outputs_that_say_the_same_are_merged() -> None:
    table = np.array([[0.2, 0.1, 0.3, 0.4, 0.0], [0.1, 0.05, 0.6, 0.25, 0.0]])
    assert merged(table).shape == (2, 3)
    assert merged(table).sum(axis=1) == pytest.approx([1.0, 1.0])
    # Two candidates of a wide response: three kinds of output are left of a thousand.
    wide = likelihood_table(KaryResponse(1000, 1.0), [0, 1])
    assert merged(wide).shape == (2, 3)
    assert exact_success(wide, 50) is not None


def test_many_responses_to_one_bit_are_a_majority() -> None:
    mechanism = BinaryResponse(1.0)
    keep = math.exp(float(mechanism.log_likelihood(np.array([True]), True)[0]))
    for reports in (1, 7, 30):
        found = success_from(mechanism, [False, True], reports)
        assert found == pytest.approx(majority_success(reports, keep), rel=1e-12)


def test_groups_are_guessed_by_their_sum() -> None:
    table, prior = some_table(4, 3), np.array([0.4, 0.3, 0.2, 0.1])
    joint = prior[:, None] * table
    pairs = np.stack([joint[0] + joint[2], joint[1] + joint[3]])
    assert success_of(table, prior, [0, 1, 0, 1]) == pytest.approx(pairs.max(axis=0).sum())
    assert success_of(table, prior, [0, 0, 0, 0]) == pytest.approx(1.0)


def test_what_cannot_be_summed_over_has_no_closed_form() -> None:
    assert exact_success(some_table(8, 30), 50) is None
    assert success_from(UnaryEncoding.optimised(40, 1.0), [np.arange(40) == 0], 1) is None
    assert success_from(DiscreteLaplace(1.0, 0, 4), [0, 4], 1) is None
    with pytest.raises(BadParameter, match="outputs"):
        likelihood_table(DiscreteLaplace(1.0, 0, 4), [0, 4])
