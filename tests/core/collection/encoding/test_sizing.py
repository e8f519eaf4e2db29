"""Sizes from public figures alone: pinned, monotone, and the best of their own measure."""

from typing import Any

import pytest

from noisefloor.collection.encoding.sizing import (
    STEPS,
    ReportSize,
    joint_choice,
    joint_kept_share,
    joint_size,
    tuple_choice,
    unified_choice,
)
from noisefloor.errors import BadParameter

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 40.0)
OWNERS = (1, 10, 100, 512, 1000, 10_000, 1_000_000)


def sizes(choice: ReportSize) -> tuple[int, int]:
    return choice.chosen, choice.classes


def test_how_many_attributes_at_four_classes() -> None:
    assert [joint_size(30, 4, epsilon) for epsilon in (1, 2, 5, 10, 20)] == [1, 1, 2, 5, 11]


@pytest.mark.parametrize(
    "owners, attributes, chosen",
    [
        (512, 30, [(1, 2), (1, 5), (2, 5), (4, 5), (10, 5)]),
        (316, 33, [(1, 2), (1, 5), (2, 5), (4, 5), (10, 5)]),
        (50_000, 6, [(1, 5), (1, 12), (1, 12), (3, 12), (6, 12)]),
    ],
)
def test_choices_are_pinned(owners: int, attributes: int, chosen: list[tuple[int, int]]) -> None:
    found = [sizes(joint_choice(owners, attributes, epsilon)) for epsilon in (1, 2, 5, 10, 20)]
    assert found == chosen


def test_choices_for_the_papers_response_are_pinned() -> None:
    epsilons = (1, 2, 5, 10, 20, 40)
    chosen = [sizes(unified_choice(512, 30, epsilon)) for epsilon in epsilons]
    assert chosen == [(1, 2), (1, 2), (2, 2), (4, 2), (9, 2), (10, 4)]
    kept = [sizes(unified_choice(512, 30, epsilon, "on-device")) for epsilon in epsilons]
    assert kept == [(1, 2), (2, 2), (7, 2), (10, 3), (10, 4), (10, 5)]
    joint = [sizes(tuple_choice(512, 30, epsilon)) for epsilon in epsilons]
    assert joint == [(1, 2), (2, 2), (5, 2), (10, 2), (10, 4), (10, 5)]


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_no_other_number_of_attributes_is_worth_more(classes: int) -> None:
    for epsilon in EPSILONS:
        best = joint_size(11, classes, epsilon)
        worth = [k * joint_kept_share(k, classes, epsilon) ** 2 for k in range(1, 12)]
        assert worth[best - 1] == max(worth)


def test_a_larger_epsilon_never_asks_for_less() -> None:
    for rule in (unified_choice, tuple_choice):
        for owners in OWNERS:
            chosen = [rule(owners, 30, epsilon).chosen for epsilon in EPSILONS]
            assert chosen == sorted(chosen)
    for classes in (3, 4, 5, 6):
        drawn = [joint_size(30, classes, epsilon) for epsilon in EPSILONS]
        assert drawn == sorted(drawn)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_more_owners_never_mean_fewer_classes_or_less_known(epsilon: float) -> None:
    found = [joint_choice(owners, 30, epsilon) for owners in OWNERS]
    assert [one.classes for one in found] == sorted(one.classes for one in found)
    assert [one.effective for one in found] == sorted(one.effective for one in found)
    assert all(one.classes in dict(STEPS).values() for one in found)


def test_more_labels_leave_less_known_of_each() -> None:
    two, ten = (joint_choice(512, 30, 5.0, labels) for labels in (2, 10))
    assert ten.effective < two.effective
    assert ten.chosen <= two.chosen
    with pytest.raises(BadParameter, match="labels"):
        joint_choice(512, 30, 5.0, 1)


@pytest.mark.parametrize("rule", [joint_choice, unified_choice, tuple_choice])
def test_a_rule_stays_within_the_attributes_there_are(rule: Any) -> None:
    for attributes in (1, 2, 5):
        assert rule(10**6, attributes, 40.0).chosen <= attributes


@pytest.mark.parametrize("rule", [joint_choice, unified_choice, tuple_choice])
@pytest.mark.parametrize(
    "bad", [(0, 3, 1.0), (5, 0, 1.0), (5, 3, 0.0), (5, 3, 41.0), (5, 5000, 1)]
)
def test_bad_figures_are_refused(rule: Any, bad: tuple[int, int, float]) -> None:
    with pytest.raises(BadParameter):
        rule(*bad)
