"""Parameters are refused by name and rule; values are refused without being shown."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from between_processes import sent
from noisefloor import errors
from noisefloor.checks import (
    BLOCK,
    blocks,
    check_bits,
    check_count,
    check_epsilon,
    check_finite,
    check_integers,
    check_probability,
    check_reals,
    check_rows,
)
from noisefloor.errors import BadParameter, BudgetExceeded, NoisefloorError, OutOfDomain, Shortage

SECRET = 987654321
NOT_NUMBERS: list[Any] = [True, False, "1", None, b"1", 1j, [1.0], np.bool_(True), np.array([1.0])]


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (0, "Expected epsilon=0 > 0."),
        (-1.0, "Expected epsilon=-1.0 > 0."),
        (-0.0, "Expected epsilon=-0.0 > 0."),
        (math.nan, "Expected epsilon=nan to be finite."),
        (math.inf, "Expected epsilon=inf to be finite."),
        (-math.inf, "Expected epsilon=-inf to be finite."),
        (True, "Expected epsilon=True to be a number."),
        ("1", "Expected epsilon='1' to be a number."),
        (None, "Expected epsilon=None to be a number."),
    ],
)
def test_a_bad_epsilon_is_refused_with_its_name_value_and_rule(epsilon: Any, text: str) -> None:
    with pytest.raises(BadParameter) as refusal:
        check_epsilon(epsilon)
    assert str(refusal.value) == text


@pytest.mark.parametrize("epsilon", [1e-320, 9.99e-10, 40.001, 1e308])
def test_an_epsilon_beyond_64_bits_is_refused_with_the_range(epsilon: float) -> None:
    with pytest.raises(BadParameter, match=r"in \[1e-09, 40\].*64-bit thresholds"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [1e-9, 1, 40, 40.0])
def test_the_edges_of_epsilon_are_allowed(epsilon: float) -> None:
    assert check_epsilon(epsilon) == epsilon


@pytest.mark.parametrize(
    "one",
    [np.float16(1), np.float32(1), np.float64(1), np.longdouble(1), np.int8(1), np.uint64(1)],
)
def test_numpy_numbers_become_plain_floats(one: Any) -> None:
    assert type(check_epsilon(one)) is float
    assert check_epsilon(one) == 1.0


def test_an_epsilon_under_another_name_is_refused_under_that_name() -> None:
    with pytest.raises(BadParameter, match="Expected epsilon_first=0 > 0"):
        check_epsilon(0, "epsilon_first")


@pytest.mark.parametrize("check", [check_finite, check_probability, check_count])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_as_every_kind_of_parameter(
    check: Callable[[Any, str], float], value: Any
) -> None:
    with pytest.raises(BadParameter, match=r"rate=(.|\n)* to be an? (number|integer)"):
        check(value, "rate")


def test_an_integer_too_large_for_a_float_is_refused_like_any_other() -> None:
    with pytest.raises(BadParameter):
        check_epsilon(10**400)


@pytest.mark.parametrize("value", [-1.5, 0, 7, np.int64(7), np.float32(0.5)])
def test_finite_numbers_of_any_sign_pass(value: Any) -> None:
    assert check_finite(value, "shift") == value


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, 1.1])
def test_a_probability_lies_strictly_between_0_and_1(value: float) -> None:
    with pytest.raises(BadParameter, match=r"rate=.* strictly between 0 and 1"):
        check_probability(value, "rate")


@pytest.mark.parametrize("value", [5e-324, 0.5, math.nextafter(1, 0), np.float64(0.5)])
def test_probabilities_inside_pass(value: float) -> None:
    assert check_probability(value, "rate") == value


@pytest.mark.parametrize("value", [1.0, np.float64(2), math.nan])
def test_a_count_is_an_integer_and_no_float_that_looks_like_one(value: Any) -> None:
    with pytest.raises(BadParameter, match="to be an integer"):
        check_count(value, "size")


@pytest.mark.parametrize("value", [1, 5, -2, 10**30])
def test_a_count_outside_its_bounds_is_refused_with_them(value: int) -> None:
    with pytest.raises(BadParameter, match=r"size=.* in \[2, 4\]"):
        check_count(value, "size", 2, 4)


@pytest.mark.parametrize("value", [2, 4, np.uint8(3), np.int64(4)])
def test_a_count_within_its_bounds_becomes_a_plain_integer(value: Any) -> None:
    assert type(check_count(value, "size", 2, 4)) is int
    assert check_count(value, "size", 2, 4) == value


@given(count=st.integers(0, 5 * BLOCK), width=st.integers(0, 3 * BLOCK))
def test_blocks_cover_every_row_once_and_in_order(count: int, width: int) -> None:
    step = max(1, BLOCK // max(1, width))
    count = min(count, 50 * step)  # a block a row would be slow, and is no other case
    slices = list(blocks(count, width))
    ends = [0, *(part.stop for part in slices)]
    assert [part.start for part in slices] == ends[:-1]
    assert ends[-1] == count
    assert all(part.stop - part.start == step for part in slices[:-1])
    assert all(0 < part.stop - part.start <= step for part in slices)


@given(count=st.integers(1, 3 * BLOCK), more=st.integers(0, BLOCK), width=st.integers(1, 100))
def test_more_users_leave_the_full_blocks_where_they_were(
    count: int, more: int, width: int
) -> None:
    before, after = list(blocks(count, width)), list(blocks(count + more, width))
    assert after[: len(before) - 1] == before[:-1]
    assert after[len(before) - 1].start == before[-1].start


Refusal = tuple[Callable[[], object], str]
REFUSALS: dict[str, Refusal] = {
    "integer above": (lambda: check_integers([1, SECRET], 0, 5), r"integers in \[0, 5\]"),
    "integer below": (lambda: check_integers([1, -SECRET], 0, 5), r"integers in \[0, 5\]"),
    "unsigned": (lambda: check_integers(np.array([SECRET], np.uint64), 0, 5), "lies outside"),
    "past 64 bits": (lambda: check_integers([SECRET * 10**30], 0, 5), "dtype object"),
    "not an integer": (lambda: check_integers([SECRET + 0.5], 0, 5), "dtype float64"),
    "text": (lambda: check_integers([str(SECRET)], 0, 5), "dtype <U"),
    "object": (lambda: check_integers([SECRET, None], 0, 5), "dtype object"),
    "one number": (lambda: check_integers(SECRET, 0, 5), "0 dimensions"),
    "rows for numbers": (lambda: check_integers([[SECRET]], 0, 5), "2 dimensions"),
    "rows too wide": (
        lambda: check_integers([[SECRET, 1]], 0, 5, width=3),
        r"rows of 3, integers in \[0, 5\]; got shape \(1, 2\)",
    ),
    "real above": (lambda: check_reals([0.5, SECRET], -1, 1), r"reals in \[-1, 1\]"),
    "real below": (lambda: check_reals([0.5, -SECRET], -1, 1), r"reals in \[-1, 1\]"),
    "infinite": (lambda: check_reals([SECRET, math.inf], 0, 1e10), "lies outside"),
    "not a number": (lambda: check_reals([SECRET, math.nan], 0, 1e10), "is not a number"),
    "complex": (lambda: check_reals([SECRET + 0j], 0, 1e10), "dtype complex128"),
    "real text": (lambda: check_reals([str(SECRET)], 0, 1e10), "dtype <U"),
    "no bit": (lambda: check_bits([0, SECRET]), r"integers in \[0, 1\]"),
    "bits in rows": (lambda: check_bits([[0, SECRET]]), "one value a user, bits"),
}


@pytest.mark.parametrize(("refuse", "names"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_value_outside_its_domain_is_refused_and_never_shown(
    refuse: Callable[[], object], names: str
) -> None:
    with pytest.raises(OutOfDomain, match=names) as refusal:
        refuse()
    assert str(SECRET) not in str(refusal.value)
    assert str(SECRET) not in repr(refusal.value)
    assert refusal.value.__cause__ is None


def test_nan_is_refused_wherever_it_stands_and_whatever_the_bounds() -> None:
    for place in range(3):
        values = np.zeros(3)
        values[place] = math.nan
        with pytest.raises(OutOfDomain, match="not a number"):
            check_reals(values, -math.inf, math.inf)


@pytest.mark.parametrize("dtype", [np.bool_, "datetime64[s]", "timedelta64[s]", np.complex64])
def test_numbers_of_another_kind_are_refused_as_integers_and_as_reals(dtype: Any) -> None:
    values = np.zeros(3, dtype=dtype)
    with pytest.raises(OutOfDomain, match="dtype"):
        check_integers(values, 0, 1)
    with pytest.raises(OutOfDomain, match="dtype"):
        check_reals(values, 0, 1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, ">i4"])
def test_integers_of_any_width_pass_without_a_copy(dtype: Any) -> None:
    values = np.array([0, 5, 3], dtype=dtype)
    assert check_integers(values, 0, 5) is values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int32])
def test_reals_of_any_width_pass_without_a_copy(dtype: Any) -> None:
    values = np.array([0, 1, 0], dtype=dtype)
    assert check_reals(values, 0, 1) is values


def test_the_bounds_themselves_lie_inside_and_their_neighbours_outside() -> None:
    assert check_integers([-3, 7], -3, 7).tolist() == [-3, 7]
    assert check_reals([0.1, 0.7], 0.1, 0.7).tolist() == [0.1, 0.7]
    for outside in (-4, 8):
        with pytest.raises(OutOfDomain):
            check_integers([outside], -3, 7)
    for beyond in (math.nextafter(0.1, 0), math.nextafter(0.7, 1)):
        with pytest.raises(OutOfDomain):
            check_reals([beyond], 0.1, 0.7)


@pytest.mark.parametrize(
    ("values", "high"),
    [
        pytest.param(np.array([0.1], np.float32), 0.1, id="float32"),
        pytest.param(np.array([2**53 + 1]), 2.0**53, id="int64"),
    ],
)
def test_a_value_just_above_the_bound_is_refused_in_every_dtype(values: Any, high: float) -> None:
    assert int(values[0]) > high or float(values[0]) > high
    with pytest.raises(OutOfDomain):
        check_reals(values, 0, high)


def test_bounds_that_the_dtype_cannot_hold_do_no_harm() -> None:
    assert check_reals(np.array([1.0], np.float16), 0, 1e6).tolist() == [1.0]


def test_empty_arrays_are_fine_and_get_the_dtype_of_the_domain() -> None:
    assert check_integers([], 0, 5).dtype == np.int64
    assert check_reals([], 0, 5).dtype == np.float64
    assert check_bits([]).dtype == np.bool_


def test_empty_rows_are_fine_and_keep_their_width() -> None:
    empty = np.empty((0, 3))
    assert check_integers(empty, 0, 5, width=3).shape == (0, 3)
    assert check_reals(empty, 0, 5, width=3).shape == (0, 3)
    assert check_bits(empty, width=3).shape == (0, 3)


def test_rows_of_the_stated_width_pass_and_others_do_not() -> None:
    assert check_rows([[1, 2, 3]], "numbers", 3).shape == (1, 3)
    for wrong in ([[1, 2]], [1, 2, 3], [[[1, 2, 3]]]):
        with pytest.raises(OutOfDomain, match="rows of 3, numbers"):
            check_rows(wrong, "numbers", 3)


def test_bits_that_are_booleans_are_handed_back_as_they_are() -> None:
    bits = np.array([True, False])
    assert check_bits(bits) is bits


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_zeros_and_ones_of_any_integer_type_are_bits(dtype: Any) -> None:
    checked = check_bits(np.array([[0, 1], [1, 1]], dtype=dtype), width=2)
    assert checked.dtype == np.bool_
    assert checked.tolist() == [[False, True], [True, True]]


def test_bits_of_one_byte_are_not_copied_even_when_strided() -> None:
    bits = np.array([0, 9, 1, 9], np.uint8)[::2]
    checked = check_bits(bits)
    assert np.shares_memory(checked, bits)
    assert checked.tolist() == [False, True]


@pytest.mark.parametrize("values", [[0.0, 1.0], [2], [-1], ["0"], [None]])
def test_what_is_neither_0_nor_1_is_no_bit(values: list[Any]) -> None:
    with pytest.raises(OutOfDomain):
        check_bits(values)


def test_both_refusals_are_value_errors_of_this_package() -> None:
    for refusal in (BadParameter, OutOfDomain):
        assert issubclass(refusal, NoisefloorError)
        assert issubclass(refusal, ValueError)


def test_errors_with_attributes_come_back_whole_from_a_worker() -> None:
    one = sent(BadParameter("epsilon", -1.0, "> 0"))
    assert (one.name, one.value, one.rule) == ("epsilon", -1.0, "> 0")
    assert str(one) == "Expected epsilon=-1.0 > 0."
    two = sent(BudgetExceeded("user-class", [Shortage("delta", 1, 0)], "x"))
    assert (two.subject, two.short, two.reason) == ("user-class", (("delta", 1, 0),), "x")


def test_every_error_is_drawn_in_the_tree_and_the_tree_draws_no_other() -> None:
    lines = str(errors.__doc__).splitlines()
    drawn = {line.split("── ")[1].split()[0] for line in lines if "── " in line}
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.NoisefloorError)
    }
    assert drawn | {"NoisefloorError"} == defined
    assert all(issubclass(getattr(errors, name), NoisefloorError) for name in defined)
