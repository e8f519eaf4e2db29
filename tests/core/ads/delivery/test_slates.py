"""Slates: the distribution of a slate and of its members, and what the device shows of it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import noisefloor.checks
from enumeration import Distribution, enumerate_distribution
from noisefloor.ads.delivery.slates import (
    FavouriteSlate,
    RandomSlate,
    best_of,
    places_of,
    ranked_slates,
)
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import Mechanism, exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run

Slate = FavouriteSlate | RandomSlate

ROWS = [[0.1, 0.9, 0.3, 0.2, 0.0], [0.5] * 5, [0.0, 0.2, 0.4, 0.6, 0.8]]
KINDS: list[Slate] = [FavouriteSlate(5, 1.0, 2), FavouriteSlate(5, 4.0, 3), RandomSlate(5, 2)]


def label(slate: Slate) -> str:
    return repr(slate)


def distribution_of(slate: Slate, row: list[float]) -> Distribution:
    return enumerate_distribution(lambda source: slate.randomise(np.array([row]), source))


def best_place(places: tuple[int, ...], row: list[float]) -> int:
    return max(places, key=lambda place: (row[place], -place))


@pytest.mark.parametrize("slate", KINDS, ids=label)
@pytest.mark.parametrize("row", ROWS)
def test_the_enumerated_distribution_of_a_slate_is_the_stated_one(
    slate: Slate, row: list[float]
) -> None:
    distribution, outputs = distribution_of(slate, row), slate.outputs()
    assert isinstance(slate, Mechanism)
    assert sum(distribution.values()) == 1
    assert distribution.keys() == {tuple(one) for one in outputs.tolist()}
    exact = [math.log(distribution[tuple(one)]) for one in outputs.tolist()]
    assert slate.log_likelihood(outputs, row) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("slate", KINDS, ids=label)
@pytest.mark.parametrize("row", ROWS)
def test_the_inclusion_distribution_is_exact(slate: Slate, row: list[float]) -> None:
    inside = [Fraction(0)] * 5
    for places, chance in distribution_of(slate, row).items():
        for place in places:  # type: ignore[attr-defined]  # a key is a tuple of ads
            inside[place] += chance
    assert slate.chances(row) == pytest.approx([float(one) for one in inside], abs=1e-15)
    assert slate.chances(row).sum() == pytest.approx(slate.slate)


@pytest.mark.parametrize("slate", KINDS, ids=label)
@pytest.mark.parametrize("row", ROWS)
def test_the_distribution_of_the_shown_rank_is_exact(slate: Slate, row: list[float]) -> None:
    order = sorted(range(5), key=lambda place: (-row[place], place))
    shown = [Fraction(0)] * 5
    for places, chance in distribution_of(slate, row).items():
        shown[order.index(best_place(places, row))] += chance  # type: ignore[arg-type]  # a tuple
    assert slate.rank_chances() == pytest.approx([float(one) for one in shown], abs=1e-15)


def test_a_random_slate_is_exactly_uniform() -> None:
    distribution = distribution_of(RandomSlate(5, 3), ROWS[0])
    assert set(distribution.values()) == {Fraction(1, 10)}
    assert RandomSlate(5, 3).guarantee().epsilon == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_slate_costs_what_is_requested(epsilon: float) -> None:
    slate = FavouriteSlate(5, epsilon, 2)
    proved = slate.guarantee().epsilon
    assert epsilon - 1e-6 <= proved <= epsilon
    assert exact_epsilon(slate) == pytest.approx(proved, abs=1e-10)
    logs = np.array(
        [
            slate.log_likelihood(slate.outputs(), row)
            for row in itertools.product([0.0, 0.5, 1.0], repeat=5)
        ]
    )
    assert (logs.max(axis=0) - logs.min(axis=0)).max() <= proved + 1e-12
    assert not slate.guarantee(Neighbours.BIT).is_finite


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_the_favourite_is_included_as_often_as_the_closed_form_says(epsilon: float) -> None:
    raised = 5 * math.exp(epsilon)
    assert FavouriteSlate(20, epsilon, 5).rank_chances()[0] == pytest.approx(
        raised / (raised + 15)
    )
    assert RandomSlate(20, 5).rank_chances()[0] == pytest.approx(0.25)


def test_the_estimate_is_the_share_of_favourites() -> None:
    slate, many = FavouriteSlate(5, 1.0, 2), 10**12
    expected = 0.25 * slate.chances(ROWS[0]) + 0.75 * slate.chances(ROWS[2])
    estimate = slate.estimate(np.rint(many * expected).astype(np.int64), many)
    assert estimate.value == pytest.approx([0, 0.25, 0, 0, 0.75], abs=1e-9)


@pytest.mark.parametrize("slate", KINDS, ids=label)
def test_slates_have_different_ads_in_order(slate: Slate) -> None:
    rows = SeededSource(3, "rows").generator().random((2_000, 5))
    slates = slate.randomise(rows, SeededSource(3, "slates"))
    assert slates.shape == (2_000, slate.slate)
    assert slates.dtype == np.uint8
    assert (np.diff(slates.astype(int), axis=1) > 0).all()
    assert slate.tally(slates).sum() == slates.size


@pytest.mark.parametrize("slate", KINDS, ids=label)
def test_adding_users_moves_nobodys_slate(slate: Slate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisefloor.checks, "BLOCK", 64)
    rows = SeededSource(3, "rows").generator().random((400, 5))
    drawn = []
    for n in (100, 400):
        with new_run():
            drawn.append(slate.randomise(rows[:n], SeededSource(4, "coins")))
    assert np.array_equal(drawn[0], drawn[1][:100])


def test_the_best_of_a_slate_is_shown_and_ties_go_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noisefloor.checks, "BLOCK", 64)
    rows = SeededSource(3, "rows").generator().integers(0, 4, (500, 6)) / 4
    slates = RandomSlate(6, 3).randomise(rows, SeededSource(3, "slates"))
    pairs = list(zip(slates.tolist(), rows.tolist(), strict=True))
    best = [best_place(tuple(places), row) for places, row in pairs]
    assert best_of(slates, rows).tolist() == best
    ranked = [sorted(places, key=lambda place: (-row[place], place)) for places, row in pairs]
    for slots in (1, 2, 3):
        expected = [some[:slots] for some in ranked]
        assert ranked_slates(slates, rows, slots).tolist() == expected


def test_more_slots_than_ads_in_the_slate_are_refused() -> None:
    slates, rows = np.array([[0, 1]]), np.array([[0.1, 0.2, 0.3]])
    for slots in (0, 3):
        with pytest.raises(BadParameter, match="slots"):
            ranked_slates(slates, rows, slots)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (4, 2)])
def test_slates_of_other_users_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(OutOfDomain, match="one slate for each of 3"):
        best_of(np.zeros(shape, dtype=np.uint8), np.zeros((3, 5)))


def test_no_users_have_no_slates() -> None:
    none = RandomSlate(5, 2).randomise(np.empty((0, 5)), SeededSource(1, "none"))
    assert none.shape == (0, 2)
    assert best_of(none, np.empty((0, 5))).shape == (0,)


def test_flags_become_places() -> None:
    flags = np.array([[1, 0, 1, 0], [0, 0, 1, 1]], dtype=np.bool_)
    assert places_of(flags, 2).tolist() == [[0, 2], [2, 3]]


@pytest.mark.parametrize("slate", [0, 5, -1, True])
def test_a_slate_of_nothing_or_everything_is_refused(slate: int) -> None:
    with pytest.raises(BadParameter, match="slate"):
        FavouriteSlate(5, 1.0, slate)
    with pytest.raises(BadParameter, match="slate"):
        RandomSlate(5, slate)


def test_too_many_slates_are_not_listed() -> None:
    with pytest.raises(BadParameter, match="size"):
        RandomSlate(50, 25).outputs()


def test_the_weight_is_that_of_the_selection() -> None:
    slate = FavouriteSlate(5, 1.0, 2)
    assert slate.chances(ROWS[0])[1] == slate.selection.hold / ONE
