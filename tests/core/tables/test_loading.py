from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadParameter, MissingData, UnknownDataSet
from noisefloor.tables.data_sets import DATA_SETS, find_data_set
from noisefloor.tables.reading import load_table


def test_a_file_of_ones_own_is_taken_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b\n1,x\n")
    assert list(load_table(tmp_path / "own.csv")) == ["a", "b"]
    assert list(load_table(str(tmp_path / "own.csv"), ["b"])) == ["b"]


def test_what_is_neither_a_name_nor_a_file_is_unknown() -> None:
    with pytest.raises(UnknownDataSet, match="Did you mean 'adult'"):
        load_table("adlut")


def test_a_data_set_that_was_not_fetched_is_an_error_and_no_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch adult"):
        load_table("adult")


def test_a_data_set_of_several_files_is_not_one_table() -> None:
    with pytest.raises(BadParameter, match="of one file"):
        load_table("open-bandit")


def test_a_data_set_that_is_no_table_is_not_read_as_one() -> None:
    with pytest.raises(BadParameter, match="to be a table"):
        load_table("places")


@pytest.mark.parametrize(
    "name",
    [it.name for it in DATA_SETS.values() if len(it.members) == 1 and it.unit == "rows"],
)
def test_real_tables_have_the_rows_and_columns_of_the_registry(
    name: str, real_data: Callable[[str], None]
) -> None:
    real_data(name)
    table = load_table(name)
    assert len(table) == find_data_set(name).columns
    assert {len(column) for column in table.values()} == {find_data_set(name).rows}


def test_adult_is_the_census_with_its_missing_answers(real_data: Callable[[str], None]) -> None:
    real_data("adult")
    table = load_table("adult")
    texts = [column for column in table.values() if column.dtype.kind == "O"]
    complete = ~np.any([column == "?" for column in texts], axis=0)
    assert int(complete.sum()) == 45_222
    assert set(table["income"]) == {"<=50K", ">50K"}
    assert table["age"].min() == 17
    assert table["age"].max() == 90


def test_ionosphere_has_two_classes_and_a_constant(real_data: Callable[[str], None]) -> None:
    real_data("ionosphere")
    table = load_table("ionosphere")
    assert int((table["y"] == "g").sum()) == 225
    assert int((table["y"] == "b").sum()) == 126
    features = [column for name, column in table.items() if name != "y"]
    assert len(features) == 34
    assert all(column.min() >= -1 and column.max() <= 1 for column in features)
    assert [name for name, column in table.items() if len(set(column)) == 1] == ["a2"]
