"""64-bit probabilities: rounded to the side that was requested."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.distributions import (
    ONE,
    ceil64,
    epsilon_of,
    exp,
    floor64,
    log_ratio,
    ratio,
    round_up,
    weights64,
)
from noisefloor.mechanisms.base import log_of

probabilities = st.fractions(min_value=0, max_value=1)
weights = st.integers(min_value=1, max_value=ONE)


@given(probabilities)
def test_floor_and_ceiling_enclose_the_probability(chance: Fraction) -> None:
    decimal = ratio(chance.numerator, chance.denominator)
    low, high = floor64(decimal), ceil64(decimal)
    # A quotient of 60 digits is off by 1e-60: more than that a bound cannot be off.
    assert low <= chance * ONE * (1 + Fraction(1, 10**50))
    assert high >= chance * ONE * (1 - Fraction(1, 10**50))
    assert high - low <= 1


@given(st.floats(min_value=1e-9, max_value=40))
def test_the_exponential_is_that_of_the_exact_float(epsilon: float) -> None:
    assert exp(epsilon) == Context(prec=60).exp(Decimal(epsilon))
    assert float(exp(epsilon)) == pytest.approx(math.exp(epsilon), rel=1e-15)


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1, max_size=50))
def test_weights_sum_to_the_whole_and_are_within_one(parts: list[int]) -> None:
    whole = sum(parts)
    rounded = weights64([ratio(part, whole) for part in parts])
    assert sum(rounded) == ONE
    for weight, part in zip(rounded, parts, strict=True):
        assert abs(weight - Fraction(part * ONE, whole)) <= 1 + Fraction(1, 1000)


@given(weights, weights)
def test_an_epsilon_is_never_below_the_exact_one_and_at_most_a_float_above(
    one: int, other: int
) -> None:
    exact = log_ratio(one, other)
    stated = epsilon_of(one, other)
    assert Decimal(stated) >= exact
    assert Decimal(math.nextafter(stated, -math.inf)) < exact


@given(st.decimals(min_value=-100, max_value=100, places=30))
def test_rounding_up_gives_the_least_float_that_is_not_below(exact: Decimal) -> None:
    up = round_up(exact)
    assert Decimal(up) >= exact
    assert Decimal(math.nextafter(up, -math.inf)) < exact


@given(st.integers(min_value=1, max_value=10**40), st.integers(min_value=1, max_value=10**40))
def test_logarithms_of_large_weights_are_those_of_their_quotient(weight: int, whole: int) -> None:
    assert log_of(weight, whole) == pytest.approx(float(log_ratio(weight, whole)), abs=1e-12)


def test_the_logarithm_of_nothing_is_minus_infinity() -> None:
    assert np.isneginf(log_of(0, 5))
