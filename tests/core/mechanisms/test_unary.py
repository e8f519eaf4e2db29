"""Unary encodings: relations, caps, encoding, closed forms."""

import decimal
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from enumeration import enumerate_distribution
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import UnaryEncoding, exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@pytest.mark.parametrize("size", [1, 2, 4, 20])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_clicks_at_epsilon_a_bit_cost_twice_to_move_and_size_times_for_a_user(
    size: int, epsilon: float
) -> None:
    """Spec 003, audit A7: item eps, move-one 2 eps, user m eps."""
    mechanism = UnaryEncoding.symmetric(size, epsilon, neighbours=Neighbours.BIT)
    assert mechanism.guarantee(Neighbours.BIT).epsilon == pytest.approx(epsilon, abs=1e-9)
    assert mechanism.guarantee(Neighbours.USER).epsilon == pytest.approx(size * epsilon, abs=1e-8)
    if size > 1:
        moved = mechanism.guarantee(Neighbours.MOVE_ONE).epsilon
        assert moved == pytest.approx(2 * epsilon, abs=1e-9)
    else:
        assert not mechanism.guarantee(Neighbours.MOVE_ONE).is_finite


@pytest.mark.parametrize("hamming", [0, 1, 2, 3, 4])
def test_the_loss_is_the_hamming_distance_times_epsilon(hamming: int) -> None:
    mechanism = UnaryEncoding.symmetric(4, 1.0, neighbours=Neighbours.BIT)
    one, other = np.zeros(4, dtype=bool), np.arange(4) < hamming
    outputs = mechanism.outputs()
    loss = mechanism.log_likelihood(outputs, one) - mechanism.log_likelihood(outputs, other)
    assert np.abs(loss).max() == pytest.approx(hamming, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("most_ones", [1, 2, 3, 4, 5])
def test_user_epsilon_is_the_worst_over_all_pairs_of_capped_rows(
    epsilon: float, most_ones: int
) -> None:
    """An unsymmetric encoding, so that falls and rises do not cost the same."""
    rise = 1 / (1 + math.exp(epsilon))
    mechanism = UnaryEncoding(5, ONE // 3 * 2, int(rise * (ONE // 2)), most_ones)
    rows = [row for row in itertools.product([0, 1], repeat=5) if sum(row) <= most_ones]
    outputs = mechanism.outputs()
    logs = np.array([mechanism.log_likelihood(outputs, np.array(row)) for row in rows])
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert mechanism.guarantee().epsilon == pytest.approx(worst, abs=1e-9)
    assert exact_epsilon(mechanism) == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_optimised_encoding_has_the_papers_probabilities(epsilon: float) -> None:
    mechanism = UnaryEncoding.optimised(10, epsilon)
    assert mechanism.stay * 2 == ONE
    assert mechanism.rise / ONE == pytest.approx(1 / (1 + math.exp(epsilon)))
    assert mechanism.guarantee().epsilon == pytest.approx(epsilon, abs=1e-6)


def test_per_user_variances_are_those_of_the_spec() -> None:
    """Spec 003, section 7, m = 20, eps 1: eps/m 400, one click 3.92, OUE 3.68, paper 0.92."""
    variances = [
        mechanism.estimate(
            np.full(20, round(10**12 * mechanism.rise / ONE)), 10**12
        ).standard_error[0]
        ** 2
        * 10**12
        for mechanism in (
            UnaryEncoding.symmetric(20, 1.0),
            UnaryEncoding.symmetric(20, 1.0, most_ones=1),
            UnaryEncoding.optimised(20, 1.0),
            UnaryEncoding.symmetric(20, 1.0, neighbours=Neighbours.BIT),
        )
    ]
    assert variances == pytest.approx([400, 3.92, 3.68, 0.92], rel=2e-3)


@pytest.mark.parametrize(
    "mechanism", [UnaryEncoding.symmetric(5, 1.0), UnaryEncoding.optimised(5, 1.0)]
)
def test_encoding_then_randomising_is_randomising_the_values(mechanism: UnaryEncoding) -> None:
    values = np.arange(1000) % 5
    with new_run():
        one = mechanism.randomise(mechanism.encode(values), SeededSource(1, "same"))
    with new_run():
        other = mechanism.randomise_values(values, SeededSource(1, "same"))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("symbol", range(3))
def test_the_distribution_of_randomised_values_is_that_of_their_rows(symbol: int) -> None:
    mechanism = UnaryEncoding.optimised(3, 1.0)
    direct = enumerate_distribution(
        lambda source: mechanism.randomise_values(np.array([symbol]), source)
    )
    row = mechanism.encode(np.array([symbol]))
    assert direct == enumerate_distribution(lambda source: mechanism.randomise(row, source))
    assert sum(direct.values()) == Fraction(1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint32, np.uint64])
def test_encoded_rows_have_their_one_at_the_value(dtype: Any) -> None:
    values: NDArray[Any] = np.array([2, 0, 1, 2], dtype=dtype)
    assert np.array_equal(UnaryEncoding.optimised(3, 1.0).encode(values), np.eye(3)[values] == 1)


@pytest.mark.parametrize("values", [[3], [-1], [0.5], [[0, 1]]])
def test_values_that_are_no_symbols_are_not_encoded(values: list[float]) -> None:
    with pytest.raises(OutOfDomain):
        UnaryEncoding.optimised(3, 1.0).encode(np.array(values))


@pytest.mark.parametrize("is_symmetric", [True, False])
@pytest.mark.parametrize("place", [0, 5000, 9999])
def test_one_row_with_too_many_ones_is_refused(is_symmetric: bool, place: int) -> None:
    mechanism = (
        UnaryEncoding.symmetric(6, 1.0, most_ones=2)
        if is_symmetric
        else UnaryEncoding(6, ONE // 2, ONE // 4, 2)
    )
    rows = np.zeros((10_000, 6), dtype=bool)
    rows[:, 4:] = True
    mechanism.randomise(rows, SeededSource(1, "fits"))
    rows[place, 0] = True
    with pytest.raises(OutOfDomain, match="at most 2 ones"):
        mechanism.randomise(rows, SeededSource(1, "too many"))


def test_ones_at_the_end_of_a_row_and_the_start_of_the_next_are_two_users() -> None:
    mechanism = UnaryEncoding.symmetric(3, 1.0, most_ones=1)
    rows = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 1]])
    assert mechanism.randomise(rows, SeededSource(1, "two users")).shape == (3, 3)


@pytest.mark.parametrize(
    ("stay", "rise"), [(ONE // 2, ONE // 2), (ONE // 4, ONE // 2), (ONE, 1), (ONE // 2, 0)]
)
def test_weights_that_are_no_response_are_refused(stay: int, rise: int) -> None:
    with pytest.raises(BadParameter, match="rise"):
        UnaryEncoding(3, stay, rise, 3)


@pytest.mark.parametrize("size", [1, 4, 8])
def test_ones_are_counted_beyond_what_two_bytes_hold(size: int) -> None:
    """Blocks of up to four places have 2**16 rows or more; those of eight have half as many."""
    users = (1 << 17) + 1
    mechanism = UnaryEncoding.symmetric(size, 1.0)
    tally = mechanism.tally(np.ones((users, size), dtype=np.bool_))
    assert tally.tolist() == [users] * size


@pytest.mark.parametrize("most_ones", [0, 4, -1])
def test_a_cap_outside_the_row_is_refused(most_ones: int) -> None:
    with pytest.raises(BadParameter, match="most_ones"):
        UnaryEncoding.symmetric(3, 1.0, most_ones=most_ones)


def test_a_relation_that_bits_do_not_have_is_refused() -> None:
    with pytest.raises(BadParameter, match="neighbours"):
        UnaryEncoding.symmetric(3, 1.0, neighbours=Neighbours.DOCUMENT)


def test_too_many_reports_are_not_listed() -> None:
    assert len(UnaryEncoding.symmetric(16, 1.0).outputs()) == 1 << 16
    with pytest.raises(BadParameter, match="listed"):
        UnaryEncoding.symmetric(17, 1.0).outputs()


def test_the_callers_decimal_precision_does_not_lower_the_guarantee() -> None:
    mechanism = UnaryEncoding(3, 3 << 62, 1 << 62, 3)
    with decimal.localcontext(decimal.Context(prec=5)):
        promised = mechanism.guarantee().epsilon
    assert promised >= 3 * math.log(3)
