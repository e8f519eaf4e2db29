import re
from pathlib import PurePosixPath

import pytest

from noisefloor.errors import UnknownDataSet
from noisefloor.tables.data_sets import DATA_SETS, DataSet, find_data_set
from noisefloor.tables.fetching import leads_outside
from noisefloor.tables.reading import TABLE_FORMATS

EACH = pytest.mark.parametrize("data_set", DATA_SETS.values(), ids=lambda it: it.name)
HASH = re.compile(r"[0-9a-f]{64}")


@EACH
def test_every_data_set_says_where_it_comes_from_and_under_which_terms(data_set: DataSet) -> None:
    assert data_set.title
    assert data_set.licence
    assert data_set.source
    assert data_set.note.endswith(".")
    assert data_set.rows > 0
    assert data_set.columns > 0
    assert re.fullmatch(r"[\w-]+==[\d.]+", data_set.archive.requirement)


@EACH
def test_every_file_is_pinned_and_has_a_plain_name(data_set: DataSet) -> None:
    assert HASH.fullmatch(data_set.archive.sha256)
    assert data_set.members
    for member in data_set.members:
        assert HASH.fullmatch(member.sha256)
        assert member.size > 0
        assert not leads_outside(member.path)
        assert PurePosixPath(member.file).name == member.file
        if data_set.unit == "rows":
            assert PurePosixPath(member.file).suffix in TABLE_FORMATS


def test_files_of_one_data_set_do_not_overwrite_each_other() -> None:
    for data_set in DATA_SETS.values():
        assert len({it.file for it in data_set.members}) == len(data_set.members)


def test_movielens_may_not_be_handed_on() -> None:
    assert not find_data_set("movielens-100k").redistributable
    assert "redistribution" in find_data_set("movielens-100k").note


def test_a_name_with_a_slip_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownDataSet, match=r"'movielens'\. Did you mean 'movielens-100k'\?"):
        find_data_set("movielens")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UnknownDataSet) as caught:
        find_data_set("zzz")
    assert "Did you mean" not in str(caught.value)
    assert all(name in str(caught.value) for name in DATA_SETS)
    assert ".csv" in str(caught.value)
