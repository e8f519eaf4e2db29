"""Guarantees add up upwards, in any order, and only like to like."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.accounting import group, parallel, sequential
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

USER = Neighbours.USER
ITEM = Neighbours.ITEM

guarantees = st.builds(
    Guarantee,
    epsilon=st.floats(0, 1e6),
    neighbours=st.just(USER),
    delta=st.floats(0, 1e-3),
    reason=st.sampled_from(["", "first", "second"]),
)
several = st.lists(guarantees, min_size=1, max_size=8)


@given(several, st.randoms(use_true_random=False))
def test_sequence_does_not_depend_on_order(parts: list[Guarantee], shuffler: object) -> None:
    mixed = list(parts)
    shuffler.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert sequential(mixed) == sequential(parts)
    assert parallel(mixed) == parallel(parts)


@given(several)
def test_sequence_is_never_below_the_exact_sum_and_at_most_one_float_above(
    parts: list[Guarantee],
) -> None:
    total = sequential(parts)
    exact = sum((Fraction(part.epsilon) for part in parts), Fraction(0))
    assert Fraction(total.epsilon) >= exact
    assert Fraction(math.nextafter(total.epsilon, -1)) < exact or total.epsilon == 0
    assert Fraction(total.delta) >= sum((Fraction(part.delta) for part in parts), Fraction(0))


def test_plain_addition_would_have_understated() -> None:
    parts = [Guarantee(value, USER) for value in (1.0, 1e-17, 1e-17)]
    exact = sum((Fraction(part.epsilon) for part in parts), Fraction(0))
    assert (
        Fraction(sum(part.epsilon for part in parts))
        < exact
        <= Fraction(sequential(parts).epsilon)
    )


@given(several, guarantees)
def test_one_more_guarantee_never_lowers_the_total(
    parts: list[Guarantee], more: Guarantee
) -> None:
    for combine in (sequential, parallel):
        assert combine([*parts, more]).epsilon >= combine(parts).epsilon
        assert combine([*parts, more]).delta >= combine(parts).delta


@given(several)
def test_parallel_is_the_worst_part_and_never_above_the_sequence(parts: list[Guarantee]) -> None:
    worst = parallel(parts)
    assert worst.epsilon == max(part.epsilon for part in parts)
    assert worst.delta == max(part.delta for part in parts)
    assert worst.epsilon <= sequential(parts).epsilon


def test_delta_never_passes_one() -> None:
    assert sequential([Guarantee(1, USER, delta=0.7)] * 2).delta == 1


@pytest.mark.parametrize("combine", [sequential, parallel])
def test_infinite_stays_infinite_and_keeps_every_reason_once(combine: object) -> None:
    none = [Guarantee.none(why, USER) for why in ("no proof", "no noise", "no proof")]
    total = combine([Guarantee(1, USER), *none])  # type: ignore[operator]  # either function
    assert not total.is_finite
    assert total.reason == "no noise; no proof"


def test_a_sum_beyond_the_floats_is_infinite_with_a_reason() -> None:
    total = sequential([Guarantee(1.7e308, USER)] * 3)
    assert not total.is_finite
    assert "float" in total.reason


@pytest.mark.parametrize("combine", [sequential, parallel])
def test_nothing_at_all_is_refused(combine: object) -> None:
    with pytest.raises(BadParameter):
        combine([])  # type: ignore[operator]  # either function


def test_unlike_relations_are_refused_and_the_error_says_how_to_convert() -> None:
    parts = [Guarantee(1, USER), Guarantee(1, ITEM)]
    with pytest.raises(
        IncompatibleGuarantees, match=r"group\(guarantee, size, Neighbours\.USER\)"
    ):
        sequential(parts)
    assert sequential([parts[0], group(parts[1], 20, USER)]).epsilon == 21


def test_unlike_models_are_refused() -> None:
    with pytest.raises(IncompatibleGuarantees, match="central"):
        sequential([Guarantee(1, USER), Guarantee(1, USER, model=TrustModel.CENTRAL)])


@given(st.floats(1e-6, 3), st.floats(1e-12, 1e-3), st.integers(1, 12))
def test_group_delta_is_the_geometric_sum(epsilon: float, delta: float, size: int) -> None:
    whole = group(Guarantee(epsilon, ITEM, delta=delta), size, USER)
    oracle = math.fsum(delta * math.exp(step * epsilon) for step in range(size))
    assert whole.epsilon == pytest.approx(size * epsilon, rel=1e-15)
    assert whole.delta == pytest.approx(min(1.0, oracle), rel=1e-9)
    assert whole.neighbours is USER


@pytest.mark.parametrize("size", [2, 3, 7])
def test_group_delta_is_never_below_the_true_value(size: int) -> None:
    """Of 200 epsilons, against sixty digits: without its margin some would be below."""
    for place in range(1, 201):
        epsilon, delta = place * 0.0137, 1e-7 / place
        whole = group(Guarantee(epsilon, ITEM, delta=delta), size, USER).delta
        with localcontext(prec=60):
            steps = (step * Decimal(epsilon) for step in range(size))
            exact = Decimal(delta) * sum(step.exp() for step in steps)
        assert exact <= Decimal(whole) <= exact * (1 + Decimal(2) ** -46)


@given(guarantees, st.integers(1, 50))
def test_a_larger_group_never_costs_less(part: Guarantee, size: int) -> None:
    small, large = group(part, size, USER), group(part, size + 1, USER)
    assert large.epsilon >= small.epsilon
    assert large.delta >= small.delta
    assert Fraction(small.epsilon) >= Fraction(part.epsilon) * size


def test_group_at_the_edges() -> None:
    assert group(Guarantee(0, ITEM, delta=0.125), 3, USER) == Guarantee(0, USER, delta=0.375)
    assert group(Guarantee(500, ITEM, delta=1e-18), 3, USER).delta == 1
    tiny = group(Guarantee(100, ITEM, delta=1e-200), 3, USER).delta
    assert tiny == pytest.approx(1e-200 * (1 + math.exp(100) + math.exp(200)), rel=1e-12)
    assert group(Guarantee(500, ITEM), 3, USER).delta == 0
    assert group(Guarantee(1, ITEM, delta=0.3), 1, USER) == Guarantee(1, USER, delta=0.3)
    assert group(Guarantee.none("why", ITEM), 3, USER) == Guarantee.none("why", USER)
    assert group(Guarantee(1.7e308, ITEM), 3, USER).reason
    with pytest.raises(BadParameter):
        group(Guarantee(1, ITEM), 0, USER)
