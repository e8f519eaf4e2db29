"""Kinds are listed in one place, and what is not listed does not exist."""

import pytest

from noisefloor.errors import BadParameter
from noisefloor.roles import KIND_BUILDERS, kinds_from_sizes
from noisefloor.wire import symbol_kind


def test_kinds_are_made_by_name_and_size() -> None:
    assert kinds_from_sizes({"impressions": {"size": 20}}) == {
        "impressions": symbol_kind("impressions", 20)
    }
    assert kinds_from_sizes({}) == {}


def test_an_unknown_kind_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BadParameter, match="impressions"):
        kinds_from_sizes({"clicks-of-mars": {}})


@pytest.mark.parametrize("sizes", [{}, {"width": 3}, {"size": 3, "more": 1}, {"size": 0}])
def test_wrong_sizes_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(BadParameter):
        kinds_from_sizes({"impressions": sizes})


def test_a_kind_has_the_name_under_which_it_is_listed() -> None:
    with pytest.raises(BadParameter, match="called b"):
        kinds_from_sizes({"b": {}}, {"b": lambda: symbol_kind("a", 2)})


def test_the_list_cannot_be_changed_at_run_time() -> None:
    with pytest.raises(TypeError):
        KIND_BUILDERS["new"] = symbol_kind  # type: ignore[index]  # the fault
