"""Response on the top set: closed forms, the set itself, and its edges."""

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from enumeration import enumerate_distribution, exact_worst
from mechanism_cases import EPSILONS, rows_of_scores
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import ArgmaxResponse, TopSetResponse, exact_epsilon
from noisefloor.mechanisms.selection import top_places
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource


@pytest.mark.parametrize(("size", "top"), [(2, 1), (3, 2), (6, 3), (20, 3), (20, 19), (1000, 400)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_is_the_guarantee_and_meets_the_request(
    size: int, top: int, epsilon: float
) -> None:
    mechanism = TopSetResponse(size, epsilon, top)
    member = Fraction(mechanism.hold, ONE * top)
    other = Fraction(ONE - mechanism.hold, ONE * (size - top))
    assert top * member + (size - top) * other == 1
    promised = mechanism.guarantee().epsilon
    assert math.log(member / other) == pytest.approx(promised, abs=1e-12)
    assert epsilon - 1e-6 <= promised <= epsilon
    assert exact_epsilon(mechanism) == pytest.approx(promised, abs=1e-10)


def test_the_distribution_of_every_row_is_enumerated_and_never_passes_the_guarantee() -> None:
    mechanism = TopSetResponse(3, 1.0, 2)
    rows = rows_of_scores(3, 2)
    distributions = [
        enumerate_distribution(partial(mechanism.randomise, row[None])) for row in rows
    ]
    for row, distribution in zip(rows, distributions, strict=True):
        exact = [float(distribution[place]) for place in range(3)]
        assert mechanism.chances(row) == pytest.approx(exact, abs=1e-15)
    worst = exact_worst((one, other) for one in distributions for other in distributions)
    assert Decimal(1 - 1e-6) < worst <= Decimal(mechanism.guarantee().epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_top_set_of_one_is_the_argmax_response(epsilon: float) -> None:
    row = [0.2, 0.9, 0.9, 0.1]
    one = TopSetResponse(4, epsilon, 1).log_likelihood(np.arange(4), row)
    other = ArgmaxResponse(4, epsilon).log_likelihood(np.arange(4), row)
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("top", range(1, 12))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_the_top_set_is_that_of_a_stable_sort(top: int, dtype: type) -> None:
    """Few levels, so that nearly every row has ties."""
    drawn = SeededSource(3, "rows").generator().integers(0, 5, (500, 12))
    expected = [sorted(range(12), key=lambda place: (-row[place], place))[:top] for row in drawn]
    assert np.array_equal(top_places(drawn.astype(dtype), top), expected)


def test_ties_all_over_go_to_the_first() -> None:
    chances = TopSetResponse(4, 1.0, 2).chances([0.5] * 4)
    assert chances[0] == chances[1] > chances[2] == chances[3]


def test_the_top_set_is_found_without_changing_the_scores() -> None:
    rows = np.array([[0.1, 0.7, 0.3]])
    top_places(rows, 2)
    assert rows.tolist() == [[0.1, 0.7, 0.3]]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_estimate_of_who_has_it_in_the_top_set_is_unbiased(epsilon: float) -> None:
    """From the exact distribution, for a report of each row; one report's estimate for each
    output."""
    mechanism = TopSetResponse(4, epsilon, 2)
    singles = np.array([mechanism.estimate(tally, 1).value for tally in np.eye(4, dtype=int)])
    for row in rows_of_scores(4, 2):
        truth = np.isin(np.arange(4), top_places(row[None], 2))
        assert mechanism.chances(row) @ singles == pytest.approx(truth.astype(float), abs=1e-9)


def test_the_standard_error_is_that_of_the_draws() -> None:
    mechanism = TopSetResponse(4, 1.0, 2)
    hold = mechanism.hold / ONE / 2
    lack = (1 - mechanism.hold / ONE) / 2
    many = 10**12
    tally = np.array([round(many * (0.3 * hold + 0.7 * lack))])
    variance = (0.3 * hold * (1 - hold) + 0.7 * lack * (1 - lack)) / (hold - lack) ** 2
    error = mechanism.estimate(tally, many).standard_error[0]
    assert error == pytest.approx(math.sqrt(variance / many), rel=1e-6)


def test_one_score_that_changes_is_no_cheaper_than_all() -> None:
    mechanism = TopSetResponse(4, 1.0, 2)
    item = mechanism.guarantee(Neighbours.ITEM)
    assert item.epsilon == mechanism.guarantee().epsilon
    assert not mechanism.guarantee(Neighbours.BIT).is_finite


@pytest.mark.parametrize("top", [0, -1, 4, 5, 1.0, True])
def test_a_top_set_that_is_empty_or_everything_is_refused(top: int) -> None:
    with pytest.raises(BadParameter, match="top"):
        TopSetResponse(4, 1.0, top)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0)])
def test_a_range_without_width_is_refused(low: float, high: float) -> None:
    with pytest.raises(BadParameter, match="high"):
        TopSetResponse(4, 1.0, 2, low, high)
