"""Kinds hold exactly what they declare: encoded, checked, tallied and read back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from between_processes import sent
from noisefloor.ads.delivery import SlateRows
from noisefloor.ads.training import GradientRows, SignPairs
from noisefloor.ads.training.columns import LIMIT
from noisefloor.errors import BadFrame, BadParameter, NoisefloorError, OutOfDomain
from noisefloor.wire import (
    Bits,
    Integers,
    Kind,
    Reduction,
    Symbols,
    Text,
    bit_vector_kind,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.columns import LARGEST_INTEGER, MOST_CELLS, Column
from noisefloor.wire.frames import MOST_ROWS
from noisefloor.wire.kinds import LINKING_WORDS, joined, sorted_rows

PLATFORM = Path(__file__).resolve().parents[3] / "platform"
RECORD = record_kind("record", {"age": Integers(0, 120), "note": Text(8), "flags": Bits(3)})
SECRET = 98_765


def bits_batch(rows: bytes, width: int) -> pa.RecordBatch:
    array = pa.array([rows[i : i + width] for i in range(0, len(rows), width)], pa.binary(width))
    schema = pa.schema([pa.field("bits", pa.binary(width), nullable=False)])
    return pa.RecordBatch.from_arrays([array], schema=schema)


@given(st.data(), st.integers(1, 40), st.integers(0, 50))
def test_bit_vectors_come_back_and_add_up(data: st.DataObject, size: int, rows: int) -> None:
    kind = bit_vector_kind("clicks", size)
    bits = data.draw(hnp.arrays(np.bool_, (rows, size)))
    batch = kind.encode(bits)
    kind.check(batch)
    assert np.array_equal(kind.rows(batch), bits)
    assert np.array_equal(kind.tally(batch), bits.sum(axis=0))
    assert kind.tally(batch).dtype == np.int64


@given(st.data(), st.integers(1, 70_000))
def test_symbols_come_back_and_are_counted(data: st.DataObject, size: int) -> None:
    kind = symbol_kind("symbol", size)
    symbols = data.draw(
        hnp.arrays(np.int64, st.integers(0, 30), elements=st.integers(0, size - 1))
    )
    batch = kind.encode(symbols)
    kind.check(batch)
    assert np.array_equal(kind.rows(batch), symbols)
    assert np.array_equal(kind.tally(batch), np.bincount(symbols, minlength=size))


@given(
    st.lists(st.integers(-LARGEST_INTEGER, LARGEST_INTEGER), min_size=2, max_size=2),
    st.data(),
)
def test_grid_integers_come_back_and_are_summed(bounds: list[int], data: st.DataObject) -> None:
    low, high = sorted(bounds)
    kind = grid_kind("grid", low, high)
    values = data.draw(hnp.arrays(np.int64, st.integers(0, 30), elements=st.integers(low, high)))
    batch = kind.encode(values)
    kind.check(batch)
    assert np.array_equal(kind.rows(batch), values)
    assert kind.tally(batch).tolist() == [sum(values.tolist())]


def test_ones_of_a_full_frame_are_counted_beyond_what_two_bytes_hold() -> None:
    kind = bit_vector_kind("bits", 2)
    batch = kind.encode(np.tile([True, False], (MOST_ROWS, 1)))
    assert kind.tally(batch).tolist() == [MOST_ROWS, 0] == [1 << 16, 0]


@given(
    st.lists(st.tuples(st.integers(0, 120), st.text(max_size=2), st.tuples(*[st.booleans()] * 3)))
)
def test_records_come_back_column_by_column(records: list[tuple[int, str, tuple[bool]]]) -> None:
    flags = np.array([record[2] for record in records], dtype=np.bool_).reshape(-1, 3)
    ages = np.array([record[0] for record in records], dtype=np.int64)
    batch = RECORD.encode({"age": ages, "note": [record[1] for record in records], "flags": flags})
    RECORD.check(batch)
    read = RECORD.decode(batch)
    assert read["age"].tolist() == ages.tolist()
    assert read["note"].tolist() == [record[1] for record in records]
    assert np.array_equal(read["flags"], flags)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, "uint8"), (256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")],
)
def test_symbols_take_the_narrowest_type(size: int, expected: str) -> None:
    assert str(Symbols(size).type) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-128, 127, "int8"),
        (-128, 128, "int16"),
        (-5, -3, "int8"),
        (0, 255, "uint8"),
        (-LARGEST_INTEGER, LARGEST_INTEGER - 1, "int32"),
        (-LARGEST_INTEGER, LARGEST_INTEGER, "int64"),
    ],
)
def test_integers_take_the_narrowest_type(low: int, high: int, expected: str) -> None:
    assert str(Integers(low, high).type) == expected


def test_a_sum_kind_of_several_columns_has_their_cells_in_order() -> None:
    kind = Kind("both", (("symbol", Symbols(3)), ("value", Integers(-9, 9))))
    batch = kind.encode({"symbol": np.array([2, 0, 2]), "value": np.array([-9, 4, 4])})
    assert kind.cells == 4
    assert kind.tally(batch).tolist() == [1, 0, 2, -1]


@pytest.mark.parametrize(
    ("kind", "reports"),
    [
        (bit_vector_kind("k", 3), np.full((2, 3), SECRET)),
        (bit_vector_kind("k", 3), np.zeros((2, 4), dtype=np.bool_)),
        (symbol_kind("k", 3), np.array([0, SECRET])),
        (symbol_kind("k", 3), np.array([0.5])),
        (grid_kind("k", -3, 3), np.array([SECRET])),
        (RECORD, np.array([1])),
        (RECORD, {"age": np.array([1])}),
        (record_kind("k", {"note": Text(4)}), [str(SECRET)]),
        (record_kind("k", {"note": Text(4)}), [SECRET]),
        (record_kind("k", {"note": Text(4)}), "abc"),
        (record_kind("k", {"note": Text(4)}), ["\ud800"]),
        (
            RECORD,
            {"age": np.array([1, 2]), "note": [""], "flags": np.zeros((1, 3), dtype=np.bool_)},
        ),
    ],
)
def test_reports_outside_the_domain_are_refused_without_being_shown(
    kind: Kind, reports: object
) -> None:
    with pytest.raises(OutOfDomain) as caught:
        kind.encode(reports)
    assert str(SECRET) not in str(caught.value)


def test_padding_bits_have_to_be_zero() -> None:
    kind = bit_vector_kind("clicks", 10)
    kind.check(bits_batch(b"\xff\x03" * 3, 2))
    with pytest.raises(BadFrame, match=r"bits has padding bits that are not zero"):
        kind.check(bits_batch(b"\xff\x03\xff\x07\xff\x03", 2))


@pytest.mark.parametrize(
    ("kind", "wide"),
    [(symbol_kind("k", 200), 201), (grid_kind("k", -3, 3), -4), (grid_kind("k", -3, 3), 4)],
)
def test_a_number_outside_the_range_is_found_and_not_shown(kind: Kind, wide: int) -> None:
    column = kind.schema.field(0)
    array = pa.array([0, wide, 1], column.type)
    with pytest.raises(BadFrame, match=rf"{column.name} has a number outside") as caught:
        kind.check(pa.RecordBatch.from_arrays([array], schema=kind.schema))
    assert str(wide) not in str(caught.value)


def test_nulls_and_long_texts_are_found() -> None:
    kind = record_kind("k", {"note": Text(4)})
    for values, rule in ((["a", None], "has nulls"), (["a", "abcde"], "more than 4 bytes")):
        batch = pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=kind.schema)
        with pytest.raises(BadFrame, match=f"note .*{rule}"):
            kind.check(batch)


def test_another_schema_is_refused() -> None:
    with pytest.raises(BadFrame, match="schema is not that of k"):
        symbol_kind("k", 3).check(symbol_kind("k", 300).encode(np.array([1])))


def test_checks_and_tallies_look_at_a_slice_only() -> None:
    bits = np.eye(5, dtype=np.bool_)
    kind = bit_vector_kind("k", 5)
    part = kind.encode(bits).slice(1, 3)
    kind.check(part)
    assert np.array_equal(kind.rows(part), bits[1:4])
    assert kind.tally(part).tolist() == [0, 1, 1, 1, 0]
    texts = record_kind("t", {"note": Text(9)}).encode(["123456789", "a", "b"]).slice(1)
    record_kind("t", {"note": Text(1)}).check(texts)


@pytest.mark.parametrize("name", ["", "Clicks", "1st", "a_b", "a" * 33, "a\n", "ü"])
def test_a_kind_with_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadParameter, match="name"):
        symbol_kind(name, 2)


@pytest.mark.parametrize("word", sorted(LINKING_WORDS))
def test_no_column_may_tie_a_report_to_a_person(word: str) -> None:
    for name in (word, f"{word}_hash", f"last_{word}"):
        with pytest.raises(BadParameter, match="ties a report to a person"):
            record_kind("k", {name: Integers(0, 1)})


@pytest.mark.parametrize(
    "columns",
    [
        (),
        (("note", Text(4)),),
        (("a", Symbols(2)), ("a", Symbols(2))),
        (("A", Symbols(2)),),
    ],
)
def test_impossible_sum_kinds_are_refused(columns: tuple[tuple[str, Column], ...]) -> None:
    with pytest.raises(BadParameter):
        Kind("k", columns, Reduction.SUM)


@pytest.mark.parametrize("size", [0, -1, MOST_CELLS + 1, True, 2.0])
def test_impossible_sizes_are_refused(size: int) -> None:
    for build in (bit_vector_kind, symbol_kind):
        with pytest.raises(BadParameter, match="size"):
            build("k", size)


def test_what_is_collected_has_no_sum() -> None:
    batch = RECORD.encode(
        {"age": np.array([3]), "note": ["x"], "flags": np.zeros((1, 3), np.bool_)}
    )
    assert RECORD.cells == 0
    for refused in (RECORD.tally, RECORD.rows):
        with pytest.raises(NoisefloorError):
            refused(batch)
    with pytest.raises(BadParameter):
        Text(3).tally(batch.column(1))


def test_a_kind_is_a_value_that_can_be_sent_to_a_worker() -> None:
    assert sent(RECORD) == RECORD
    assert hash(symbol_kind("k", 3)) == hash(symbol_kind("k", 3))
    assert symbol_kind("k", 3) != symbol_kind("k", 4)


@given(hnp.arrays(np.bool_, (6, 3)), st.permutations(range(6)))
def test_sorted_rows_forget_their_order(bits: NDArray[np.bool_], order: list[int]) -> None:
    kind = bit_vector_kind("k", 3)
    first, second = sorted_rows(kind.encode(bits)), sorted_rows(kind.encode(bits[order]))
    assert first.equals(second)
    assert kind.tally(first).tolist() == bits.sum(axis=0).tolist()


def test_batches_are_joined_and_none_is_an_empty_batch() -> None:
    kind = symbol_kind("k", 3)
    assert joined(kind, []).num_rows == 0
    assert kind.tally(joined(kind, [])).tolist() == [0, 0, 0]
    two = joined(kind, [kind.encode(np.array([1])), kind.encode(np.array([2]))])
    assert kind.rows(two).tolist() == [1, 2]


@pytest.mark.parametrize("package", ["mechanisms", "accounting", "adversary"])
def test_the_core_loads_without_arrow(package: str) -> None:
    code = f"import sys, noisefloor.{package}; print('pyarrow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PLATFORM, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_sensitivity_is_the_most_that_one_report_changes_the_cells() -> None:
    slates, gradients = SlateRows(6, 2), GradientRows(2, 1)
    cases: list[tuple[Kind, list[object]]] = [
        (bit_vector_kind("bits", 3), [[[1, 1, 1]], [[0, 1, 0]]]),
        (symbol_kind("symbols", 4), [[3], [0]]),
        (grid_kind("grid", -7, 5), [[-7], [5]]),
        (Kind("slates", (("slate", slates),)), [[[0, 5]]]),
        (Kind("signs", (("signs", SignPairs(4)),)), [[[1, 1, 1, 1]], [[0, 1, 0, 1]]]),
        (Kind("gradients", (("rows", gradients),)), [[[[1, LIMIT], [1, -LIMIT]]]]),
    ]
    for kind, reports in cases:
        changes = [np.abs(kind.tally(kind.encode(np.array(one)))).sum() for one in reports]
        assert max(changes) == kind.sensitivity, kind.name
    assert record_kind("notes", {"note": Text(3)}).sensitivity == 1
