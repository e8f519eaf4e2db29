"""Load columns by one name: that of a data set in the cache, or that of a user's own file."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa

from noisefloor.data import store
from noisefloor.data.registry import DataSet, Member, find
from noisefloor.data.table import Table, is_table_file, parse_table, read_table
from noisefloor.errors import BadParameter


def load_table(
    source: str | os.PathLike[str],
    columns: Iterable[str] | None = None,
    *,
    numbers: Collection[str] = (),
) -> Table:
    """Return the columns of a data set of one file, or of a file that ends as tables do.

    Args:
        source: A name of the registry, or a path that ends in .csv, .tsv or .parquet.
        columns: Those to read; all if left out.
        numbers: Those that have to hold numbers.

    Raises:
        UnknownDataSet: It is neither.
        MissingData: It was not fetched; the text says how.
        DamagedData: The cached file is not what was pinned.
        BadTable: A file of the user's breaks a rule.
    """
    if is_table_file(source):
        return read_table(source, columns, numbers=numbers)
    data_set = find(os.fspath(source))
    if len(data_set.members) > 1:
        raise BadParameter("source", data_set.name, "to be a data set of one file")
    return load_member(data_set, data_set.members[0], columns)


def load_member(data_set: DataSet, member: Member, columns: Iterable[str] | None = None) -> Table:
    """Return the columns of one file of a data set, checked against its hash."""
    return parse_table(
        pa.BufferReader(store.read(data_set, member)),
        Path(member.file).suffix,
        f"{data_set.name}/{member.file}",
        columns,
        extra_headers=member.extra_headers,
    )
