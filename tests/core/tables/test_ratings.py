from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadParameter, BadTable, MissingData
from noisefloor.tables import ratings
from noisefloor.tables.ratings import load_ratings
from noisefloor.tables.reading import load_table

OWN = "user,item,rating\nann,7,5\nann,3,1\nbob,7,3\ncy,9,2\ncy,3,4\n"


def own(folder: Path, text: str = OWN) -> Path:
    """Write a table of ratings."""
    path = folder / "own.csv"
    path.write_text(text)
    return path


def test_an_own_table_becomes_a_matrix_with_the_most_rated_first(tmp_path: Path) -> None:
    found = load_ratings(source=own(tmp_path))
    assert found.users.tolist() == ["ann", "bob", "cy"]
    assert found.items.tolist() == [3, 7, 9]  # two, two and one; of equals the lower id
    assert found.rated.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert found.rating.tolist() == [[0, 1, 0], [0, 0.5, 0], [0.75, 0, 0.25]]
    assert found.rating.dtype == np.float32


def test_fewer_items_keep_all_users(tmp_path: Path) -> None:
    found = load_ratings(1, source=own(tmp_path))
    assert found.items.tolist() == [3]
    assert found.rated.tolist() == [[True], [False], [True]]
    assert load_ratings(50, source=own(tmp_path)).rated.shape == (3, 3)


def test_another_scale_is_used_as_it_is_given(tmp_path: Path) -> None:
    found = load_ratings(source=own(tmp_path), scale=(0, 10))
    assert found.rating.max() == np.float32(0.5)


@pytest.mark.parametrize("line", ["bob,1,6", "bob,1,0.5"])
def test_a_rating_outside_the_scale_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadTable, match=r"own\.csv: column 'rating': .* in \[1, 5\]"):
        load_ratings(source=own(tmp_path, f"{OWN}{line}\n"))


def test_a_rating_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="column 'rating': Expected numbers, found another in row"):
        load_ratings(source=own(tmp_path, f"{OWN}bob,1,good\n"))


def test_two_ratings_of_one_item_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="at most one rating"):
        load_ratings(source=own(tmp_path, f"{OWN}ann,7,5\n"))


def test_a_table_without_users_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="column 'user': Expected this column"):
        load_ratings(source=own(tmp_path, "item,rating\n1,1\n"))


@pytest.mark.parametrize("scale", [(5.0, 1.0), (1.0, 1.0), (0.0, float("inf"))])
def test_a_scale_has_to_rise(tmp_path: Path, scale: tuple[float, float]) -> None:
    with pytest.raises(BadParameter, match="scale"):
        load_ratings(source=own(tmp_path), scale=scale)


def test_a_matrix_that_would_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ratings, "MOST_CELLS", 8)
    with pytest.raises(BadParameter, match="Expected most_ads=3 <= 2 with 3 users"):
        load_ratings(source=own(tmp_path))
    assert load_ratings(2, source=own(tmp_path)).rated.shape == (3, 2)


def test_no_items_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="most_ads"):
        load_ratings(0, source=own(tmp_path))


def test_movielens_that_was_not_fetched_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch movielens-100k"):
        load_ratings(100)


def test_movielens_is_what_it_is_said_to_be(real_data: Callable[[str], None]) -> None:
    real_data("movielens-100k")
    found = load_ratings()
    assert found.rated.shape == (943, 1_682)
    assert int(found.rated.sum()) == 100_000
    assert int(found.rated.sum(axis=1).min()) == 20
    assert set(np.unique(found.rating[found.rated])) == {0, 0.25, 0.5, 0.75, 1}
    assert not found.rating[~found.rated].any()


def test_movielens_keeps_each_rating_in_its_place(real_data: Callable[[str], None]) -> None:
    real_data("movielens-100k")
    raw = load_table("movielens-100k")
    found = load_ratings(100)
    row = np.searchsorted(found.users, raw["user_id"])
    column = {item: place for place, item in enumerate(found.items.tolist())}
    place = np.array([column.get(item, -1) for item in raw["movie_id"].tolist()])
    is_rated = place >= 0
    assert int(is_rated.sum()) == int(found.rated.sum()) == 29_931
    expected = (raw["rating"][is_rated] - 1) / 4
    assert np.array_equal(found.rating[row[is_rated], place[is_rated]], expected)


def test_the_catalogue_is_the_most_rated_films(real_data: Callable[[str], None]) -> None:
    real_data("movielens-100k")
    found = load_ratings(50)
    counts = found.rated.sum(axis=0)
    assert counts[0] == 583
    assert np.array_equal(counts, np.sort(counts)[::-1])
    assert np.array_equal(found.items, load_ratings(100).items[:50])
