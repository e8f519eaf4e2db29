"""Classes: corrected ones are all declared; the paper's have one that nobody declared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.collection.encoding.discretisation import Discretiser, PrintedDiscretiser
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.tables.scaled_records import Categorical, Continuous, Label, ScaledSchema

LABEL = Label("y", "0", "1")


def ranges(count: int = 1) -> ScaledSchema:
    return ScaledSchema(tuple(Continuous(f"x{i}", 0, 1) for i in range(count)), LABEL)


def listed(*counts: int) -> ScaledSchema:
    return ScaledSchema(
        tuple(
            Categorical(f"c{place}", tuple(map(str, range(count))))
            for place, count in enumerate(counts)
        ),
        LABEL,
    )


def places(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.linspace(-1, 1, count).reshape(-1, 1)


@pytest.mark.parametrize("most", [2, 3, 5, 4096])
def test_both_ends_of_a_range_have_a_declared_class(most: int) -> None:
    codes = Discretiser(ranges(), most).codes(np.array([[-1.0], [1.0]]))
    assert codes.tolist() == [[0], [most - 1]]


def test_a_class_has_its_upper_end_and_not_its_lower() -> None:
    codes = Discretiser(ranges(), 4).codes(
        np.array([[-1.0], [-0.5], [-0.49], [0.0], [0.01], [0.5]])
    )
    assert codes[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50), st.integers(2, 60))
def test_a_value_lies_within_half_a_class_of_what_its_class_stands_for(
    values: list[float], most: int
) -> None:
    classes, column = Discretiser(ranges(), most), np.array(values).reshape(-1, 1)
    codes = classes.codes(column)
    assert codes.max() < most
    assert np.abs(classes.values(codes) - column).max() <= 1 / most + 1e-12


@pytest.mark.parametrize(("count", "most", "size"), [(2, 5, 2), (5, 5, 5), (6, 5, 5), (12, 4, 4)])
def test_categories_keep_their_class_or_share_it_with_neighbours(
    count: int, most: int, size: int
) -> None:
    classes = Discretiser(listed(count), most)
    codes = classes.codes(places(count))[:, 0]
    assert classes.sizes == (size,)
    assert sorted(set(codes.tolist())) == list(range(size))
    assert (np.diff(codes.astype(int)) >= 0).all()
    counts = np.bincount(codes)
    assert counts.max() - counts.min() <= 1
    if count == size:
        assert np.allclose(classes.values(classes.codes(places(count))), places(count))


def test_chosen_columns_have_their_own_classes() -> None:
    classes = Discretiser(
        ScaledSchema((Continuous("x", 0, 1), Categorical("c", ("a", "b"))), LABEL), most=4
    )
    both = classes.codes(np.array([[0.9, 1.0]]))
    assert both.tolist() == [[3, 1]]
    assert classes.codes(np.array([[1.0, 0.9]]), [1, 0]).tolist() == [[1, 3]]
    assert classes.values(np.array([[1, 3]], dtype=np.uint16), [1, 0]).tolist() == [[1.0, 0.75]]


@pytest.mark.parametrize("columns", [[], [0, 0], [2], [-1], [True]])
def test_columns_that_are_not_there_are_refused(columns: list[int]) -> None:
    with pytest.raises(BadParameter):
        Discretiser(ranges(2), 3).codes(np.zeros((1, len(columns))), columns)


@pytest.mark.parametrize("most", [1, 0, 4097, True])
def test_one_class_tells_nothing_and_is_refused(most: int) -> None:
    with pytest.raises(BadParameter, match="classes"):
        Discretiser(ranges(), most)
    with pytest.raises(BadParameter, match="classes"):
        PrintedDiscretiser(ranges(), most)


@pytest.mark.parametrize("value", [np.nan, 1.5, -1.01])
def test_values_outside_are_refused_and_never_a_silent_class(value: float) -> None:
    for classes in (Discretiser(ranges(), 3), PrintedDiscretiser(ranges(), 3)):
        with pytest.raises(OutOfDomain):
            classes.codes(np.array([[value]]))


def test_many_records_are_coded_as_few_are() -> None:
    values = np.linspace(-1, 1, 3 * 100_003).reshape(-1, 3)
    classes = Discretiser(ranges(3), 5)
    codes = classes.codes(values)
    some = slice(100_000, 100_003)
    assert (codes[some] == classes.codes(values[some])).all()


# As printed.


def test_the_printed_minimum_is_a_class_of_its_own() -> None:
    printed, fair = PrintedDiscretiser(ranges(), 4), Discretiser(ranges(), 4)
    values = places(101)
    codes = printed.codes(values)[:, 0]
    assert (codes == 0).sum() == 1
    assert codes[0] == 0
    assert (codes[1:] == fair.codes(values)[1:, 0] + 1).all()
    assert printed.values(np.array([[0]], dtype=np.uint16))[0, 0] == -1.25


def test_the_printed_label_is_class_zero_for_every_negative_one() -> None:
    codes = PrintedDiscretiser(ranges(), 4).label_codes(np.array([False, True, False]))
    assert codes.tolist() == [0, 4, 0]


def test_printed_categories_wrap_around_and_mix() -> None:
    printed = PrintedDiscretiser(listed(5), 4)
    assert printed.size(0) == 5  # one more than there are classes is taken to fit
    assert printed.codes(places(5))[:, 0].tolist() == [1, 2, 3, 0, 1]
    assert PrintedDiscretiser(listed(9), 4).size(0) == 4
