"""The joint response: one answer for a sampled tuple, with the whole epsilon."""

import itertools
import math

import numpy as np
import pytest

from enumeration import Distribution, enumerate_distribution, likelihoods
from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.collection.encoding.joint_response import JointResponse, kept_share, response_over
from noisefloor.collection.encoding.report_columns import (
    JOINT_ROWS,
    columns_of,
    joint_rows,
    joint_rows_kind,
    reports_of,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import exact_epsilon
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles.kind_registry import kind_description, kinds_from_sizes
from noisefloor.wire.kinds import Reduction
from record_worlds import mixed_schema, two_groups
from statistics_of_tests import FALSE_ALARM, chi_square_p, tilted


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 5.0, 10.0, 20.0])
@pytest.mark.parametrize("sizes, chosen", [((2, 2), 1), ((4,) * 30, 5), ((2, 3, 7, 5), 3)])
def test_a_report_costs_what_was_requested(
    epsilon: float, sizes: tuple[int, ...], chosen: int
) -> None:
    response = JointResponse(sizes, chosen, epsilon)
    assert epsilon - 1e-6 <= response.guarantee().epsilon <= epsilon
    assert math.isinf(response.guarantee(Neighbours.DOCUMENT).epsilon)


def distribution_of(response: JointResponse, record: tuple[int, ...]) -> Distribution:
    return enumerate_distribution(lambda source: response.randomise(np.array([record]), source))


@pytest.mark.parametrize("labels", [1, 2, 3])
def test_the_exact_distribution_is_the_stated_one_for_every_record(labels: int) -> None:
    response = JointResponse((2, 3, 2), 2, 1.5, labels > 1, max(labels, 2))
    assert response.labels == labels
    outputs, worst = response.outputs(), 0.0
    assert len(np.unique(outputs, axis=0)) == len(outputs)
    distributions = []
    for record in itertools.product(
        range(2), range(3), range(2), *([range(labels)] * (labels > 1))
    ):
        distribution = distribution_of(response, record)
        stated = likelihoods(response, outputs, record)
        assert set(distribution) == set(stated)
        assert all(abs(math.log(distribution[key]) - stated[key]) < 1e-9 for key in distribution)
        distributions.append(stated)
    for one, other in itertools.combinations(distributions, 2):
        worst = max(worst, *(abs(one[key] - other[key]) for key in one))
    assert worst == pytest.approx(exact_epsilon(response), abs=1e-12)
    assert 1.5 - 1e-6 <= worst <= response.guarantee().epsilon + 1e-12


def test_the_sizes_of_a_tuple_are_all_that_can_be_drawn() -> None:
    assert JointResponse((4,) * 30, 5, 1.0).spaces == (2 * 4**5,)
    assert JointResponse((2, 3, 3, 4), 2, 1.0).spaces == (12, 16, 18, 24)
    assert JointResponse((2, 3, 3, 4), 4, 1.0, labelled=False).spaces == (72,)


@pytest.mark.parametrize("epsilon, space", [(1.0, 8), (5.0, 50), (10.0, 2592)])
def test_the_share_of_truth_is_the_closed_form(epsilon: float, space: int) -> None:
    power = math.exp(epsilon)
    kept = kept_share(response_over(space, epsilon))
    assert kept == pytest.approx((power - 1) / (power + space - 1), rel=1e-9)


def test_which_attributes_are_drawn_does_not_depend_on_the_record() -> None:
    response, drawn = JointResponse((3,) * 6, 2, 1.0), []
    for fill in (0, 2):
        rows = np.full((500, 7), fill)
        rows[:, -1] = fill // 2
        with new_run():
            drawn.append(response.randomise(rows, SeededSource(1, "draw"))[:, :2])
    assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.statistical
def test_every_subset_is_equally_likely(seed: int) -> None:
    """n = 60 000; false alarm FALSE_ALARM. The twin has half of the subsets 5 % too often."""
    response, n = JointResponse((2,) * 5, 3, 1.0), 60_000
    reports = response.randomise(np.zeros((n, 6), np.int64), SeededSource(seed, "subsets"))
    codes = (reports[:, :3].astype(np.int64) @ [25, 5, 1]).tolist()
    listed = [25 * a + 5 * b + c for a, b, c in itertools.combinations(range(5), 3)]
    counts = [codes.count(code) for code in listed]
    assert sum(counts) == n
    assert chi_square_p(counts, np.full(10, 0.1)) > FALSE_ALARM
    assert chi_square_p(counts, tilted(np.full(10, 0.1), 1.05)) < FALSE_ALARM


def test_shares_are_estimated_without_bias_whatever_the_sizes() -> None:
    """n = 200,000; 22 shares within 5.7 standard errors: false alarm below 1e-6.

    The twin forgets that owners of small tuples lie less, and is off by far more.
    """
    schema = mixed_schema()
    classes, n = Discretiser(schema, 4), 200_000
    records = two_groups(schema, n, "joint shares")
    rows = joint_rows(classes.codes(records.values), records.labels)
    response = JointResponse(classes.sizes, 2, 3.0)
    assert len(response.spaces) > 1
    tally = response.tally(response.randomise(rows, SeededSource(3, "joint shares")))
    found = response.estimate(tally, n)
    true = np.concatenate(
        [
            np.bincount(2 * rows[:, place].astype(int) + records.labels, minlength=2 * size) / n
            for place, size in enumerate(classes.sizes)
        ]
    )
    # A sampled tuple varies by who drew the attribute, too.
    error = np.hypot(found.standard_error, np.sqrt(true * (1 - true) / (n / 2)))
    assert (np.abs(found.value - true) < 5.7 * error).all()
    naive = tally.reshape(len(response.spaces), -1).sum(axis=0)
    kept = response.kept_shares.mean()
    flat = np.repeat(2 * np.array(classes.sizes), 2 * np.array(classes.sizes))
    twin = (naive / (n / 2) - (1 - kept) / flat) / kept
    assert (np.abs(twin - true) > 5.7 * error).any()


def test_the_standard_error_is_that_of_the_spaces_weighed_together() -> None:
    """Each space alone has variance s (1 - s) / (n kept**2); its weight is n kept**2 of the sum.

    The second attribute is drawn in tuples of 12 symbols and of 18. Of those in each space a
    share of 1 / 4 and of 1 / 8 told its first class with label 0.
    """
    response = JointResponse((2, 3, 3), 2, 1.0)
    assert response.spaces == (12, 18)
    tally = np.zeros((2, response.cells), dtype=np.int64)
    cell, drawn, counted = response.starts[1], np.array([4_000, 8_000]), np.array([1_000, 1_000])
    tally[:, cell], tally[:, cell + 1] = counted, drawn - counted
    kept = np.array([kept_share(response_over(space, 1.0)) for space in response.spaces])
    share, weight = counted / drawn, drawn * kept**2 / (drawn * kept**2).sum()
    variance = share * (1 - share) / (drawn * kept**2)
    found = response.estimate(tally.reshape(-1), 12_000)
    assert found.value[cell] == pytest.approx(weight @ ((share - (1 - kept) / 6) / kept))
    assert found.standard_error[cell] == pytest.approx(math.sqrt(weight**2 @ variance))


def test_an_attribute_that_nobody_drew_has_even_shares_and_no_certainty() -> None:
    response = JointResponse((2, 4), 1, 1.0)
    tally = response.tally(np.array([[0, 1, 1]], dtype=np.uint16))
    found = response.estimate(tally, 1)
    assert np.allclose(found.value[4:], 1 / 8)
    assert np.isinf(found.standard_error[4:]).all()


@pytest.mark.parametrize(
    "sizes, chosen, name",
    [
        ((3, 3), 3, "chosen"),
        ((3, 3), 0, "chosen"),
        ((1, 3), 1, "size"),
        ((), 1, "attributes"),
        ((4096,) * 3, 3, "chosen"),
        (tuple(range(2, 200)), 6, "chosen"),
    ],
)
def test_impossible_sizes_are_refused(sizes: tuple[int, ...], chosen: int, name: str) -> None:
    with pytest.raises(BadParameter, match=f"Expected {name}="):
        JointResponse(sizes, chosen, 1.0)


@pytest.mark.parametrize(
    "report", [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 1, 2, 0, 0], [0, 1, 0, 0, 2]]
)
def test_reports_outside_the_domain_are_refused(report: list[int]) -> None:
    response = JointResponse((2, 3, 2), 2, 1.0)
    with pytest.raises(OutOfDomain):
        response.tally(np.array([report], dtype=np.uint16))


@pytest.mark.parametrize("row", [[2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]])
def test_records_with_a_class_that_an_attribute_does_not_have_are_refused(row: list[int]) -> None:
    response = JointResponse((2, 3, 2), 2, 1.0)
    with pytest.raises(OutOfDomain, match="below the sizes"):
        response.randomise(np.array([[1, 2, 1, 1], row]), SeededSource(1, "outside"))


def test_too_many_reports_are_not_listed() -> None:
    with pytest.raises(BadParameter, match="reports"):
        JointResponse((6,) * 30, 5, 1.0).outputs()


# Frames.


def test_reports_travel_as_columns_and_come_back() -> None:
    response = JointResponse((3, 2, 4), 2, 2.0)
    rows = np.zeros((50, 4), dtype=np.int64)
    reports = response.randomise(rows, SeededSource(4, "frames"))
    kind = joint_rows_kind(attributes=3, classes=4, chosen=2)
    batch = kind.encode(columns_of(reports))
    kind.check(batch)
    assert np.array_equal(reports_of(kind.decode(batch)), reports)


def test_the_kind_is_listed_and_collects() -> None:
    sizes = {"attributes": 30, "classes": 6, "chosen": 2}
    kind = kinds_from_sizes({JOINT_ROWS: sizes})[JOINT_ROWS]
    assert kind.reduction is Reduction.COLLECT
    names = [name for name, _ in kind.columns]
    assert names == ["attribute_1", "attribute_2", "class_1", "class_2", "label"]
    assert kinds_from_sizes({JOINT_ROWS: kind_description(kind)})[JOINT_ROWS] == kind
    with pytest.raises(BadParameter, match="chosen"):
        joint_rows_kind(attributes=2, classes=3, chosen=3)
