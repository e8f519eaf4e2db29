import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from between_processes import sent
from noisefloor.errors import BadTable
from noisefloor.tables.reading import is_table_file, read_table


def csv(folder: Path, text: str | bytes, name: str = "own.csv") -> Path:
    """Write a file of separated values."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def parquet(folder: Path, columns: dict[str, Any]) -> Path:
    """Write a Parquet file."""
    path = folder / "own.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def refusal(path: Path, **options: Any) -> BadTable:
    """Return the error that reading raises; it has to name the file, on one line."""
    with pytest.raises(BadTable) as caught:
        read_table(path, **options)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


def test_columns_come_with_the_kind_they_have(tmp_path: Path) -> None:
    text = "n,x,on,name,day\n1,0.5,true,a,2020-01-31\n2,1e3,false,?,2020-02-01\n"
    table = read_table(csv(tmp_path, text))
    assert [table[name].dtype.kind for name in table] == ["i", "f", "b", "O", "M"]
    assert table["n"].tolist() == [1, 2]
    assert table["x"].tolist() == [0.5, 1000.0]
    assert table["name"].tolist() == ["a", "?"]


def test_tabs_commas_and_parquet_give_the_same(tmp_path: Path) -> None:
    one = read_table(csv(tmp_path, "a,b\n1,x\n2,y\n"))
    two = read_table(csv(tmp_path, "a\tb\n1\tx\n2\ty\n", "OWN.TSV"))
    three = read_table(parquet(tmp_path, {"a": [1, 2], "b": ["x", "y"]}))
    for table in (two, three):
        assert list(table) == ["a", "b"]
        for name, values in one.items():
            assert np.array_equal(table[name], values)


def test_quotes_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    text = '\ufeffa,b\r\n1,"x, ""y""\nz"\r\n2,\r\n'
    table = read_table(csv(tmp_path, text))
    assert table["a"].tolist() == [1, 2]
    assert table["b"].tolist() == ['x, "y"\nz', ""]


def test_columns_without_a_name_are_left_out(tmp_path: Path) -> None:
    assert list(read_table(csv(tmp_path, ",a,\n0,5,x\n1,6,y\n"))) == ["a"]


def test_only_the_columns_that_are_requested_are_read_and_checked(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "a,b,c\n1,,2\n3,4,5\n"), ["c", "a"])
    assert list(table) == ["c", "a"]


def test_kinds_are_found_from_all_rows(tmp_path: Path) -> None:
    rows = "\n".join(str(number) for number in range(300_000))
    table = read_table(csv(tmp_path, f"a\n{rows}\nlast\n"))
    assert table["a"][-1] == "last"
    assert len(table["a"]) == 300_001


def test_a_dictionary_column_is_read_as_what_it_stands_for(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"a": pa.array(["x", "y", "x"]).dictionary_encode()})
    assert read_table(path)["a"].tolist() == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "Expected 2 cells a row, found 1 in row 2."),
        ("a,b\n1,2,3\n", "Expected 2 cells a row, found 3 in row 1."),
        ("a,b,a\n1,2,3\n", "column 'a': Expected each column once, found it twice."),
        ("", "Expected a header and rows of one length and kind."),
        ("a,b\n", "Expected at least one row."),
        ("a,b\n1,2\n3,\n", "column 'b': Expected a value in every row, found none in row 2."),
        ("a,b\n1,2\n3,nan\n", "column 'b': Expected a value in every row, found none in row 2."),
        ("a,b\n1,-inf\n", "column 'b': Expected finite numbers, found another in row 1."),
        (b"a,b\n1,\xe9\n", "column 'b': Expected UTF-8."),
        (b"\xe9,b\n1,2\n", "Expected UTF-8."),
    ],
)
def test_a_broken_file_is_refused_with_its_place_and_rule(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    assert str(refusal(csv(tmp_path, text))).endswith(f"own.csv: {message}")


def test_a_column_that_has_to_hold_numbers_is_checked(tmp_path: Path) -> None:
    path = csv(tmp_path, "rating,name\n3,a\nsecret,b\n")
    error = refusal(path, numbers=["rating"])
    assert error.column == "rating"
    assert error.rule == "Expected numbers, found another in row 2."
    assert read_table(path)["rating"].tolist() == ["3", "secret"]


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    error = refusal(csv(tmp_path, "user,ratings\n1,2\n"), columns=["user", "rating"])
    assert error.column == "rating"
    assert "Did you mean 'ratings'?" in error.rule


@pytest.mark.parametrize("text", ["a\nsecret\n1,secret\n", "a,b\nsecret\n", "a,a\nsecret,1\n"])
def test_no_error_shows_a_value(tmp_path: Path, text: str) -> None:
    assert "secret" not in str(refusal(csv(tmp_path, text), numbers=["a"]))


def test_a_hole_and_a_nan_of_parquet_are_refused(tmp_path: Path) -> None:
    for holes in ([1.0, None], [1.0, float("nan")], ["x", None], [None, None]):
        error = refusal(parquet(tmp_path, {"a": holes}))
        assert error.column == "a"
        assert "a value in every row" in error.rule


def test_nested_columns_are_refused(tmp_path: Path) -> None:
    for nested in ([[1, 2]], [{"x": 1}], [b"raw"]):
        assert refusal(parquet(tmp_path, {"a": nested})).column == "a"


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    assert "there is none" in refusal(tmp_path / "missing.csv").rule
    assert "ends in .csv" in refusal(csv(tmp_path, "a\n1\n", "own.xlsx")).rule
    assert "Expected a Parquet file" in refusal(csv(tmp_path, "a\n1\n", "own.parquet")).rule
    (tmp_path / "folder.csv").mkdir()
    assert "there is none" in refusal(tmp_path / "folder.csv").rule


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = csv(tmp_path, "a\n1\n")
    path.chmod(0)
    assert "Cannot be read" in refusal(path).rule


def test_the_error_comes_back_whole_from_a_worker() -> None:
    error = sent(BadTable("own.csv", "Expected more.", "a"))
    assert (error.file, error.rule, error.column) == ("own.csv", "Expected more.", "a")
    assert str(error) == "own.csv: column 'a': Expected more."


def test_files_are_distinguished_from_names_by_their_ending() -> None:
    assert all(is_table_file(it) for it in ("a.csv", "b/c.TSV", Path("d.parquet")))
    assert not any(is_table_file(it) for it in ("adult", "movielens-100k", "a.csv.gz", "csv"))
