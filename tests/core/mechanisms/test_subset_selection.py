"""Subset selection: closed forms and the sets that are drawn."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from enumeration import enumerate_distribution
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import KaryResponse, SubsetSelection
from noisefloor.randomness import SeededSource

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("size", "subset"), [(5, 1), (5, 2), (5, 4), (40, 13)])
def test_the_chance_to_hold_the_truth_is_the_papers(
    epsilon: float, size: int, subset: int
) -> None:
    power = math.exp(epsilon)
    hold = SubsetSelection(size, epsilon, subset).hold / ONE
    assert hold == pytest.approx(subset * power / (subset * power + size - subset))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sets_of_one_are_the_kary_response(epsilon: float) -> None:
    subset, kary = SubsetSelection(6, epsilon, 1), KaryResponse(6, epsilon)
    one = subset.log_likelihood(np.eye(6, dtype=bool), 2)
    assert one == pytest.approx(kary.log_likelihood(np.arange(6), 2), abs=1e-9)


@pytest.mark.parametrize(
    ("size", "epsilon"), [(2, 0.1), (3, 1e-9), (10, 1.0), (100, 2.0), (5, 9.0)]
)
def test_the_default_size_is_the_best_for_estimation(size: int, epsilon: float) -> None:
    assert SubsetSelection(size, epsilon).subset == max(1, round(size / (math.exp(epsilon) + 1)))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("is_inside", [True, False])
def test_every_set_of_the_right_size_is_as_likely_as_its_kind(size: int, is_inside: bool) -> None:
    for subset in range(1, size):
        mechanism = SubsetSelection(size, 1.0, subset)
        distribution: dict[Any, Fraction] = dict(
            enumerate_distribution(partial(mechanism.randomise, np.array([1])))
        )
        assert len(distribution) == math.comb(size, subset)
        assert {sum(flags) for flags in distribution} == {subset}
        assert (
            len({chance for flags, chance in distribution.items() if flags[1] is is_inside}) == 1
        )


def test_all_reports_have_the_right_size() -> None:
    reports = SubsetSelection(30, 0.5).randomise(np.arange(5000) % 30, SeededSource(1, "sets"))
    assert set(reports.sum(axis=1)) == {SubsetSelection(30, 0.5).subset}


@pytest.mark.parametrize("subset", [-1, 5, 2.0, True])
def test_a_bad_subset_is_refused(subset: int) -> None:
    with pytest.raises(BadParameter, match="subset"):
        SubsetSelection(5, 1.0, subset)


def test_too_many_reports_are_not_listed() -> None:
    with pytest.raises(BadParameter, match="listed"):
        SubsetSelection(60, 0.1).outputs()
