"""The unified mechanism: a record costs its budget; the paper's record costs more, or all."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from enumeration import Distribution, enumerate_distribution, exact_worst, key_of, likelihoods
from noisefloor.collection.encoding.discretisation import PrintedDiscretiser
from noisefloor.collection.encoding.printed_response import PrintedUnified
from noisefloor.collection.encoding.unified_response import UnifiedResponse, share_of
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import Mechanism, exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import Categorical, Continuous, Label, ScaledSchema
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted


def distribution_of(mechanism: Mechanism, record: tuple[int, ...]) -> Distribution:
    return enumerate_distribution(lambda source: mechanism.randomise(np.array([record]), source))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 31, 4097])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10 / 3, 21.4])
def test_parts_are_never_more_than_the_whole(epsilon: float, parts: int) -> None:
    share = share_of(epsilon, parts)
    assert Decimal(share) * parts <= Decimal(epsilon)
    assert share == pytest.approx(epsilon / parts, rel=1e-15)


@pytest.mark.parametrize("sizes", [(2,), (2, 2, 2), (3, 5, 4, 2), (4,) * 30 + (2,), (2000, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 25.0])
def test_a_record_costs_what_was_requested(sizes: tuple[int, ...], epsilon: float) -> None:
    mechanism = UnifiedResponse(sizes, epsilon)
    assert epsilon - 1e-6 <= mechanism.guarantee().epsilon <= epsilon
    item = mechanism.guarantee(Neighbours.ITEM).epsilon
    assert epsilon / len(sizes) - 1e-6 <= item <= epsilon / len(sizes) + 1e-12
    assert math.isinf(mechanism.guarantee(Neighbours.DOCUMENT).epsilon)


def test_one_value_costs_its_share() -> None:
    mechanism = UnifiedResponse((3, 2), 2.0)
    assert exact_epsilon(mechanism, Neighbours.ITEM) == pytest.approx(1.0, abs=1e-6)


def test_places_of_one_size_are_answered_by_one_distribution_wherever_they_stand() -> None:
    mixed = UnifiedResponse((2, 3, 2), 2.0)
    for record in itertools.product(range(2), range(3), range(2)):
        distribution = distribution_of(mixed, record)
        stated = likelihoods(mixed, mixed.outputs(), record)
        assert distribution.keys() == stated.keys()
        for report, chance in distribution.items():
            assert math.log(chance) == pytest.approx(stated[report], abs=1e-11)


def test_shares_of_classes_are_estimated_without_bias() -> None:
    """n = 40,000; each of 5 shares within 5.5 standard errors: false alarm below 1e-6."""
    mechanism, n = UnifiedResponse((3, 2), 3.0), 40_000
    codes = np.column_stack([np.arange(n) % 4 // 2, np.arange(n) % 5 == 0])
    reports = mechanism.randomise(codes, SeededSource(3, "shares"))
    found = mechanism.estimate(mechanism.tally(reports), n)
    truth = np.array([0.5, 0.5, 0.0, 0.8, 0.2])
    assert (np.abs(found.value - truth) < 5.5 * found.standard_error).all()
    assert (np.abs(found.value - truth[::-1]) > 5.5 * found.standard_error).any()


@pytest.mark.parametrize("sizes", [(3, 2, 4), (4, 4, 4)])
def test_classes_are_counted_value_by_value(sizes: tuple[int, ...]) -> None:
    reports = np.array([[0, 1, 0], [2, 0, 3], [2, 0, 0]], dtype=np.uint16)
    expected = [
        int((reports[:, place] == one).sum())
        for place, size in enumerate(sizes)
        for one in range(size)
    ]
    assert UnifiedResponse(sizes, 3.0).tally(reports).tolist() == expected


def test_more_rows_than_can_be_listed_are_refused() -> None:
    with pytest.raises(BadParameter, match="rows to list"):
        UnifiedResponse((4,) * 30, 5.0).outputs()


@pytest.mark.parametrize("sizes", [(), (1, 2), (2, 5000), (2, True)])
def test_sizes_that_say_nothing_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(BadParameter):
        UnifiedResponse(sizes, 1.0)


@pytest.mark.parametrize("epsilon", [0, -1, 1e-12, math.nan, 1e9])
def test_an_epsilon_that_cannot_be_kept_is_refused(epsilon: float) -> None:
    with pytest.raises(BadParameter, match="epsilon"):
        UnifiedResponse((2, 2), epsilon)


@pytest.mark.parametrize("rows", [[[0, 2]], [[3, 0]], [[-1, 0]], [[0.0, 1.0]], [[0]], [0, 1]])
def test_rows_outside_the_classes_are_refused(rows: object) -> None:
    with pytest.raises(OutOfDomain):
        UnifiedResponse((3, 2), 1.0).randomise(np.array(rows), SeededSource(1, "bad"))


# As printed.


@pytest.mark.parametrize("lies", ["classes", "symbols"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_printed_distribution_is_the_stated_likelihood(lies: str, epsilon: float) -> None:
    mechanism = PrintedUnified((3, 2), epsilon, lies)  # type: ignore[arg-type]
    for record in itertools.product(range(4), range(3)):
        distribution = distribution_of(mechanism, record)
        stated = likelihoods(mechanism, mechanism.outputs(), record)
        for report, log in stated.items():
            assert float(distribution.get(report, 0)) == pytest.approx(math.exp(log), rel=1e-11)


def test_a_negative_label_shows_beyond_doubt() -> None:
    mechanism = PrintedUnified((4, 4), 1.0)
    distributions = [distribution_of(mechanism, (2, label)) for label in (0, 4)]
    assert exact_worst([(distributions[0], distributions[1])]) == Decimal("Infinity")
    assert not any(key_of(np.array(report))[1] == 0 for report in distributions[1])  # type: ignore[index]
    assert math.isinf(exact_epsilon(mechanism))
    assert math.isinf(mechanism.guarantee().epsilon)
    assert "class 0" in mechanism.guarantee().reason


@pytest.mark.parametrize("size", [2, 4, 5])
def test_lies_from_every_symbol_hide_class_zero_and_cost_more_than_claimed(size: int) -> None:
    mechanism = PrintedUnified((size,) * 3, 1.0, "symbols")
    expected = 1 + 3 * math.log(size / (size - 1))
    assert mechanism.guarantee().epsilon == pytest.approx(expected, abs=1e-6)
    assert exact_epsilon(mechanism) == pytest.approx(expected, abs=1e-6)


def test_printed_codes_go_through_the_printed_mechanism() -> None:
    schema = ScaledSchema(
        (Continuous("x", 0, 1), Categorical("c", tuple("abcde"))), Label("y", "0", "1")
    )
    classes = PrintedDiscretiser(schema, 4)
    labels = np.array([False, True, False])
    codes = np.column_stack(
        [classes.codes(np.array([[-1, -1], [0, 0.5], [1, 1]])), classes.label_codes(labels)]
    )
    mechanism = PrintedUnified((classes.size(0), classes.size(1), 4), 60.0)
    # At epsilon 20 each, a lie has probability 1e-8.
    assert (mechanism.randomise(codes, SeededSource(1, "printed")) == codes).all()


def test_printed_reports_follow_the_distribution(seed: int) -> None:
    """n = 60,000 reports of one record over 12 rows; false alarm 1e-6; a tenth off is seen."""
    mechanism, n = PrintedUnified((3, 2), 3.0), 60_000
    reports = mechanism.randomise(np.tile([0, 2], (n, 1)), SeededSource(seed, "printed law"))
    outputs = mechanism.outputs()
    counts = [int((reports == row).all(axis=1).sum()) for row in outputs]
    distribution = np.exp(mechanism.log_likelihood(outputs, (0, 2)))
    assert chi_square_p(counts, distribution) > FALSE_ALARM
    assert chi_square_p(counts, tilted(distribution, 1.1)) < FALSE_ALARM


def test_an_unknown_kind_of_lies_is_refused() -> None:
    with pytest.raises(BadParameter, match="lies"):
        PrintedUnified((2, 2), 1.0, "white")  # type: ignore[arg-type]
