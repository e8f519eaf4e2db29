"""Labels from products of DR.WA: naive Bayes against its sum, the sign of raw ranges, twins."""

import itertools

import numpy as np
import pytest

from attack_outcomes import assert_caught, assert_met
from noisefloor.adversary.records.products import (
    PopulationMarginals,
    attack_products,
    centres_of,
    draw_attribute_indices,
    guess_labels,
    marginals_of,
    products,
    products_success,
)
from noisefloor.checks import Floats
from noisefloor.collection.encoding.discretisation import Codes, Discretiser
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import (
    Categorical,
    Continuous,
    Label,
    Labels,
    ScaledRecords,
    ScaledSchema,
)
from record_worlds import mixed_schema, ranges, two_groups
from statistics_of_tests import FALSE_ALARM, binomial_p

OWNERS = 20_000


def known_world(classes: int, columns: int) -> tuple[PopulationMarginals, tuple[Floats, ...]]:
    """A population of stated marginals, 35 % of it positive, and centres in [-1, 1]."""
    draw = SeededSource(3, "marginals", classes).generator()
    tables = tuple(draw.dirichlet(np.full(classes, 2.0), 2) for _ in range(columns))
    centres = (2 * np.arange(classes) + 1) / classes - 1
    return PopulationMarginals(np.array([0.65, 0.35]), tables), (centres,) * columns


def drawn_from(known: PopulationMarginals, n: int, seed: int) -> tuple[Codes, Labels]:
    """Owners whose values are independent given the label."""
    draw = SeededSource(seed, "owners", n).generator()
    labels = draw.random(n) < known.labels[1]
    codes = np.empty((n, len(known.classes)), dtype=np.uint16)
    for place, table in enumerate(known.classes):
        ends = np.cumsum(table, axis=1)[labels.astype(int)]
        codes[:, place] = np.minimum(
            (draw.random(n)[:, None] > ends).sum(axis=1), len(ends[0]) - 1
        )
    return codes, np.asarray(labels)


@pytest.mark.statistical
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_labels_are_named_as_often_as_the_sum_says(classes: int, count: int, seed: int) -> None:
    # n = 20,000 owners, values independent given the label; false alarm FALSE_ALARM. The twin:
    # products that are shuffled among owners, whose labels they then do not tell.
    known, centres = known_world(classes, count)
    codes, labels = drawn_from(known, OWNERS, seed)
    attributes = np.tile(np.arange(count), (OWNERS, 1))
    sent = products(codes, labels, attributes, centres)
    right = int(np.count_nonzero(guess_labels(sent, attributes, centres, known) == labels))
    success = products_success(known, centres, range(count))
    assert success is not None
    assert binomial_p(right, OWNERS, success) > FALSE_ALARM
    wrong = int(np.count_nonzero(guess_labels(sent[::-1], attributes, centres, known) == labels))
    assert binomial_p(wrong, OWNERS, success) < FALSE_ALARM


def test_the_sum_is_that_over_all_rows_of_products() -> None:
    known, centres = known_world(3, 3)
    chances: dict[tuple[float, ...], list[float]] = {}
    for sign, codes in itertools.product((-1, 1), itertools.product(range(3), repeat=3)):
        row = tuple(round(sign * centres[at][code], 6) + 0.0 for at, code in enumerate(codes))
        label = int(sign > 0)
        chance = known.labels[label]
        for at, code in enumerate(codes):
            chance *= known.classes[at][label][code]
        chances.setdefault(row, [0.0, 0.0])[label] += chance
    brute = sum(max(pair) for pair in chances.values())
    assert products_success(known, centres, range(3)) == pytest.approx(brute)
    assert len(chances) == 27
    assert products_success(*known_world(4, 12), range(12)) is None


@pytest.mark.statistical
def test_one_product_of_real_rows_tells_as_much_as_its_sum_and_more_tell_more(seed: int) -> None:
    # n = 20,000 owners; false alarm FALSE_ALARM. The twin: the baseline.
    source, schema = SeededSource(seed, "rows"), ranges(10)
    classes, mirrored = Discretiser(schema, 4), two_groups(schema, OWNERS, "products", 0.4)
    records = ScaledRecords(np.clip(mirrored.values - 0.3, -1, 1), mirrored.labels)
    found = [
        attack_products(classes, records, count, source.child(count)) for count in (1, 2, 4, 10)
    ]
    assert_met(found[0])
    assert_caught(found[0], found[0].baseline)
    assert [one.closed_form for one in found[1:]] == [None] * 3
    for fewer, more in itertools.pairwise(found):
        assert more.interval[0] > fewer.interval[1]
    assert found[-1].success > 0.99


@pytest.mark.statistical
def test_owners_who_mirror_each_other_are_not_distinguished(seed: int) -> None:
    # n = 20,000 owners, values of either label around +-0.2; false alarm FALSE_ALARM: the null of
    # the test above, where all values lie lower.
    schema = ranges(10)
    records = two_groups(schema, OWNERS, "mirrored", 0.4)
    outcome = attack_products(Discretiser(schema, 4), records, 4, SeededSource(seed, "mirrored"))
    assert binomial_p(outcome.right, outcome.n, outcome.baseline) > FALSE_ALARM


def test_the_sign_of_a_product_of_positive_numbers_is_the_label() -> None:
    label = Label("y", "0", "1")
    schema = ScaledSchema((Continuous("a", 3.0, 9.0), Categorical("b", ("x", "y", "z"))), label)
    records = two_groups(schema, 500, "raw", 0.0)  # the label tells nothing of the values
    classes = Discretiser(schema, 3)
    raw = attack_products(classes, records, 1, SeededSource(1, "raw"), "raw")
    assert raw.success == raw.closed_form == raw.bound == 1.0
    centred = attack_products(classes, records, 1, SeededSource(1, "centred"))
    assert centred.success < 0.8
    assert centres_of(classes, "raw")[0].tolist() == [4.0, 6.0, 8.0]
    assert centres_of(classes, "raw")[1].tolist() == [1.0, 2.0, 3.0]


def test_owners_are_queried_about_different_attributes_and_send_what_they_hold() -> None:
    schema = mixed_schema()
    classes, records = Discretiser(schema, 3), two_groups(schema, 200, "sent")
    attributes = draw_attribute_indices(200, 4, 3, SeededSource(1, "asked"))
    assert all(len(set(row)) == 3 for row in attributes.tolist())
    codes = classes.codes(records.values)
    sent = products(codes, records.labels, attributes, centres_of(classes, "centred"))
    values = np.take_along_axis(classes.values(codes), attributes, axis=1)
    assert sent == pytest.approx(values * np.where(records.labels, 1, -1)[:, None])


def test_what_cannot_be_attacked_is_refused() -> None:
    schema = ranges(2)
    classes, records = Discretiser(schema, 2), two_groups(schema, 20, "bad")
    with pytest.raises(BadParameter, match="count"):
        attack_products(classes, records, 3, SeededSource(1, "count"))
    with pytest.raises(BadParameter, match="scale"):
        centres_of(classes, "log")  # type: ignore[arg-type]  # what it must refuse
    one = ScaledRecords(records.values, np.zeros(20, dtype=np.bool_))
    with pytest.raises(BadParameter, match="labels"):
        marginals_of(classes.codes(one.values), one.labels, classes.sizes)
