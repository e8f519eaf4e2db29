"""Tables as columns: a user's own CSV, TSV or Parquet file, read strictly.

A table is a dictionary of arrays of one length. A hole, a NaN, an infinity, a ragged row or a
column twice is refused, and the error names file, column and row but never a value. Columns
without a name are left out: they are the row numbers that some tools write. Rows are counted from
1, without the header.

Load columns by one name: that of a data set in the cache, or that of a user's own file.
"""

import csv
import difflib
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables import cache
from noisefloor.tables.data_sets import DataSet, Member, find_data_set

Table = dict[str, NDArray[Any]]

TABLE_FORMATS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".parquet": None}
"""Endings of files that can be read, and what parts their cells."""

_LARGEST_BLOCK = 1 << 30

_TYPES = ("integer", "floating", "boolean", "null", "string", "large_string", "date", "timestamp")


def is_table_file(source: str | os.PathLike[str]) -> bool:
    """Say whether a source names a file by its ending; otherwise it names a data set."""
    return Path(source).suffix.lower() in TABLE_FORMATS


def read_table(
    path: str | os.PathLike[str],
    columns: Iterable[str] | None = None,
    *,
    numbers: Collection[str] = (),
    texts: Collection[str] = (),
) -> Table:
    """Read a file into columns.

    Args:
        path: A file that ends in ``.csv``, ``.tsv`` or ``.parquet``.
        columns: Those to read; all if left out. Only these are checked for holes.
        numbers: Those that have to hold numbers.
        texts: Those that hold texts, also where all of them look like numbers or like nothing.

    Raises:
        BadTable: Which file, which column and which rule.
    """
    import pyarrow as pa  # lazy: a published model is loaded where there is no pyarrow

    name, form = os.fspath(path), Path(path).suffix.lower()
    if form not in TABLE_FORMATS:
        raise BadTable(name, "Expected a file that ends in .csv, .tsv or .parquet.")
    if not Path(path).is_file():
        raise BadTable(name, "Expected a file, there is none of that name.")
    try:
        with pa.OSFile(name) as stream:
            return parse_table(stream, form, name, columns, numbers=numbers, texts=texts)
    except OSError as error:
        raise BadTable(name, f"Cannot be read: {error.strerror or 'input error'}.") from None


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a file's columns, without reading its rows; BadTable otherwise."""
    name, form = os.fspath(path), Path(path).suffix.lower()
    delimiter = TABLE_FORMATS.get(form)
    try:
        if delimiter is None:
            import pyarrow.parquet

            return [str(one) for one in pyarrow.parquet.read_schema(name).names if one]
        with open(name, encoding="utf-8-sig", newline="") as file:
            return [one for one in next(csv.reader(file, delimiter=delimiter), []) if one]
    except (OSError, ValueError, csv.Error):
        raise BadTable(name, "Expected a header with the names of the columns.") from None


def parse_table(
    stream: Any,  # a pyarrow.NativeFile: pyarrow has no types
    form: str,
    name: str,
    columns: Iterable[str] | None = None,
    *,
    numbers: Collection[str] = (),
    texts: Collection[str] = (),
    extra_headers: int = 0,
) -> Table:
    """Read an open file into columns, as ``read_table`` does.

    Args:
        stream: Of pyarrow.
        form: The ending, a key of ``TABLE_FORMATS``.
        name: Of the file, for errors.
        columns: Those to read; all if left out.
        numbers: Those that have to hold numbers.
        texts: Those that hold texts, also where all of them look like numbers or like nothing.
        extra_headers: Rows after the names of the columns that hold no data.
    """
    delimiter = TABLE_FORMATS[form]
    if delimiter is None:
        whole = _parquet(stream, name)
    else:
        whole = _separated(stream, name, delimiter, extra_headers, texts)
    names = _names(whole, name)
    chosen = names if columns is None else list(columns)
    _check_present(name, chosen, names)
    if not whole.num_rows:
        raise BadTable(name, "Expected at least one row.")
    return {it: _column(whole[it], name, it, is_number=it in numbers) for it in chosen}


def _parquet(stream: Any, name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(stream)
    except (pa.ArrowException, OSError):
        raise BadTable(name, "Expected a Parquet file, found damage or another form.") from None


def _separated(
    stream: Any, name: str, delimiter: str, extra_headers: int, texts: Collection[str]
) -> Any:
    """Read separated values; the types of columns are found from all rows, not from the first."""
    import pyarrow as pa
    import pyarrow.csv

    ragged = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "error"

    block = min(max(stream.size() + 1, 1 << 16), _LARGEST_BLOCK)
    try:
        return pyarrow.csv.read_csv(
            stream,
            # One thread: with more of them rows have no numbers.
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=block, skip_rows_after_names=extra_headers
            ),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string())),
        )
    except pa.ArrowInvalid:  # its text holds the row
        raise BadTable(name, _complaint(ragged)) from None


def _complaint(ragged: list[Any]) -> str:
    if not ragged:
        return "Expected a header and rows of one length and kind."
    row = ragged[0]
    return (
        f"Expected {row.expected_columns} cells a row, found {row.actual_columns} in row "
        f"{row.number - 1}."
    )


def _names(whole: Any, file: str) -> list[str]:
    """Return the names of the columns that have one, each once."""
    try:
        names = [name for name in whole.column_names if name]
    except UnicodeDecodeError:
        raise BadTable(file, "Expected UTF-8.") from None
    for name in names:
        if names.count(name) > 1:
            raise BadTable(file, "Expected each column once, found it twice.", name)
    return names


def _check_present(file: str, chosen: list[str], names: list[str]) -> None:
    for it in chosen:
        if it not in names:
            close = difflib.get_close_matches(it, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise BadTable(file, f"Expected this column, it is missing.{hint}", it)


def _column(values: Any, file: str, name: str, *, is_number: bool) -> NDArray[Any]:
    """Return one column as an array without holes."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        values = values.cast(kind)
    if pa.types.is_binary(kind):
        raise BadTable(file, "Expected UTF-8.", name)
    if not any(getattr(pa.types, f"is_{one}")(kind) for one in _TYPES):
        raise BadTable(file, f"Expected numbers, bits, texts or times, found {kind}.", name)
    holes = np.asarray(values.is_null(nan_is_null=True).to_numpy())
    if holes.any():
        raise BadTable(file, f"Expected a value in every row, found none in {_row(holes)}.", name)
    try:
        array = np.asarray(values.to_numpy())
    except (pa.ArrowException, UnicodeDecodeError):  # their texts hold the value
        raise BadTable(file, "Expected UTF-8.", name) from None
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadTable(
            file, f"Expected finite numbers, found another in {_row(~np.isfinite(array))}.", name
        )
    if is_number and array.dtype.kind not in "biuf":
        raise BadTable(file, f"Expected numbers, found another in {_first_text(array)}.", name)
    return array


def _row(faulty: NDArray[Any]) -> str:
    return f"row {int(np.argmax(faulty)) + 1}"


def _first_text(array: NDArray[Any]) -> str:
    """Say in which row the first value stands that cannot be read as a number."""
    for number, value in enumerate(array, start=1):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"row {number}"
    return "some row"


def load_table(
    source: str | os.PathLike[str],
    columns: Iterable[str] | None = None,
    *,
    numbers: Collection[str] = (),
    texts: Collection[str] = (),
) -> Table:
    """Return the columns of a data set of one file, or of a file that ends as tables do.

    Args:
        source: A name of the registry, or a path that ends in .csv, .tsv or .parquet.
        columns: Those to read; all if left out.
        numbers: Those that have to hold numbers.
        texts: Those of a file that hold texts, whatever they look like.

    Raises:
        UnknownDataSet: It is neither.
        MissingData: It was not fetched; the text says how.
        DamagedData: The cached file is not what was pinned.
        BadTable: A file of the user's breaks a rule.
    """
    if is_table_file(source):
        return read_table(source, columns, numbers=numbers, texts=texts)
    data_set = find_data_set(os.fspath(source))
    if len(data_set.members) > 1:
        raise BadParameter("source", data_set.name, "to be a data set of one file")
    if not is_table_file(data_set.members[0].file):
        raise BadParameter("source", data_set.name, "to be a table: it has a reader of its own")
    return load_member(data_set, data_set.members[0], columns)


def load_member(data_set: DataSet, member: Member, columns: Iterable[str] | None = None) -> Table:
    """Return the columns of one file of a data set, checked against its hash.

    Of a file that several data sets share, only the rows of this one are returned.
    """
    import pyarrow as pa

    chosen = None if columns is None else list(columns)
    needed = chosen
    if chosen is not None and member.only is not None:
        needed = [*chosen, member.only[0]]
    table = parse_table(
        pa.BufferReader(cache.read_cached(data_set, member)),
        Path(member.file).suffix,
        f"{data_set.name}/{member.file}",
        needed,
        extra_headers=member.extra_headers,
    )
    if member.only is None:
        return table
    column, value = member.only
    rows = table[column] == value
    return {name: table[name][rows] for name in (chosen or table)}
