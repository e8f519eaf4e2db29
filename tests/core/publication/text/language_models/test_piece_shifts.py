"""Shifts from shares: exact at once where nothing is clipped, clipped where it is asked for."""

import numpy as np
import pytest
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.publication.text.language_models import Steering

Floats = NDArray[np.float64]
OWN = np.array([0.0, 0.4, 0.3, 0.2, 0.06, 0.04])
BY_LABEL = np.array([[0.0, 0.2, 0.3, 0.4, 0.02, 0.08], [0.0, 0.5, 0.3, 0.1, 0.05, 0.05]])
COUNTED = np.array([1, 2, 3])
MANY, PLACES = 1e15, np.array([1e15, 1e15])


def shares_with(shifts: Floats) -> Floats:
    """Return the shares of a model whose next piece does not depend on what was written."""
    weights = OWN * np.exp(shifts)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def test_the_first_shift_gives_the_counted_shares_exactly() -> None:
    steering = Steering(1.0, most=20.0)
    targets = steering.targets(OWN, BY_LABEL)
    assert targets == pytest.approx(BY_LABEL)
    found = shares_with(steering.first(OWN, targets, COUNTED, MANY))
    assert found[:, COUNTED] == pytest.approx(BY_LABEL[:, COUNTED])
    # The others together have their share; among them the model decides.
    assert found[:, 4:].sum(axis=1) == pytest.approx(BY_LABEL[:, 4:].sum(axis=1))
    assert found[:, 4] / found[:, 5] == pytest.approx([1.5, 1.5])


def test_strength_zero_leaves_the_model_as_it_is() -> None:
    steering = Steering(0.0)
    targets = steering.targets(OWN, BY_LABEL)
    assert targets == pytest.approx(np.stack([OWN, OWN]))
    assert steering.first(OWN, targets, COUNTED, MANY) == pytest.approx(np.zeros((2, 6)))


def test_half_the_strength_is_half_the_shift_up_to_a_constant() -> None:
    full, half = (Steering(one, most=20.0) for one in (1.0, 0.5))
    every = np.arange(1, 6)
    shifts = [
        one.first(OWN, one.targets(OWN, BY_LABEL), every, MANY)[:, 1:] for one in (full, half)
    ]
    gaps = shifts[1] - shifts[0] / 2
    assert np.ptp(gaps, axis=1) == pytest.approx([0, 0], abs=1e-9)


def test_shifts_are_clipped() -> None:
    targets = Steering().targets(OWN, BY_LABEL)
    assert np.abs(Steering(most=0.1).first(OWN, targets, COUNTED, MANY)).max() == 0.1
    assert np.abs(Steering(most=0.0).first(OWN, targets, COUNTED, MANY)).max() == 0.0


def test_a_round_moves_by_no_more_than_a_step_and_ends_where_shares_are_right() -> None:
    steering = Steering(most=20.0)
    targets = np.array([[0.0, 1e-8, 0.3, 0.6, 0.05, 0.05]])
    shifts = np.zeros((1, 6))
    after = steering.again(shifts, shares_with(shifts), targets, COUNTED, PLACES[:1])
    assert np.abs(after).max() == 2.0
    for _ in range(30):
        shifts = steering.again(shifts, shares_with(shifts), targets, COUNTED, PLACES[:1])
    assert shares_with(shifts)[0, COUNTED] == pytest.approx(targets[0, COUNTED], rel=1e-3)


def test_empty_shares_do_no_harm() -> None:
    """Labels without texts in a round, and pieces that are nowhere."""
    steering = Steering()
    targets = steering.targets(OWN, BY_LABEL)
    found = steering.again(np.zeros((2, 6)), np.zeros((2, 6)), targets, COUNTED, np.zeros(2))
    assert found.tolist() == np.zeros((2, 6)).tolist()


def test_a_small_sample_is_not_believed_but_differences_between_labels_are() -> None:
    steering = Steering(most=20.0)
    targets = steering.targets(OWN, BY_LABEL)
    few, many = (steering.first(OWN, targets, COUNTED, count) for count in (1e-9, MANY))
    ratio = np.log(BY_LABEL[0, COUNTED] / BY_LABEL[1, COUNTED])
    for found in (few, many):
        assert found[0, COUNTED] - found[1, COUNTED] == pytest.approx(ratio)
    assert few[:, COUNTED].sum() == pytest.approx(
        np.log(BY_LABEL[:, COUNTED] / BY_LABEL[:, COUNTED].mean(axis=0)).sum()
    )
    unmoved = steering.again(few, OWN[None].repeat(2, 0), targets, COUNTED, np.full(2, 1e-9))
    assert unmoved[:, COUNTED] == pytest.approx(few[:, COUNTED])


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"strength": -0.1}, "strength"),
        ({"strength": 1.1}, "strength"),
        ({"most": -1.0}, "most"),
        ({"most": float("nan")}, "most"),
        ({"rounds": -1}, "rounds"),
        ({"texts": 0}, "texts"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], rule: str) -> None:
    with pytest.raises(BadParameter, match=rule):
        Steering(**settings)  # type: ignore[arg-type]  # that is the point
