from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadTable
from noisefloor.tables.impressions import read_impressions

OWN = "item,position,click,campaign\n0,1,0,spring\n2,2,1,spring\n1,1,1,autumn\n"


def own(folder: Path, text: str = OWN) -> Path:
    """Write a table of impressions."""
    path = folder / "own.csv"
    path.write_text(text)
    return path


def test_an_own_table_is_read(tmp_path: Path) -> None:
    seen = read_impressions(own(tmp_path))
    assert len(seen) == 3
    assert seen.item.tolist() == [0, 2, 1]
    assert seen.position.tolist() == [1, 2, 1]
    assert seen.click.tolist() == [False, True, True]
    assert np.isnan(seen.propensity).all()
    assert seen.campaign.tolist() == ["", "", ""]


def test_rows_of_one_campaign_are_kept(tmp_path: Path) -> None:
    seen = read_impressions(own(tmp_path), campaign="spring")
    assert seen.item.tolist() == [0, 2]
    assert seen.campaign.tolist() == ["spring", "spring"]
    assert seen.policy.tolist() == ["", ""]


def test_a_campaign_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="column 'campaign': Expected rows of campaign 'winter'"):
        read_impressions(own(tmp_path), campaign="winter")


def test_a_policy_is_not_made_up(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="column 'policy': Expected this column"):
        read_impressions(own(tmp_path), policy="random")


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("-1,1,0,x", "item"),
        (f"{1 << 20},1,0,x", "item"),
        ("0.5,1,0,x", "item"),
        ("0,0,0,x", "position"),
        ("0,1,2,x", "click"),
        ("0,1,no,x", "click"),
    ],
)
def test_a_value_outside_its_bounds_is_refused(tmp_path: Path, line: str, column: str) -> None:
    with pytest.raises(BadTable, match=f"column '{column}': Expected"):
        read_impressions(own(tmp_path, f"{OWN}{line}\n"))


def test_clicks_may_be_true_and_false(tmp_path: Path) -> None:
    seen = read_impressions(own(tmp_path, "item,position,click\n0,1,true\n0,1,false\n"))
    assert seen.click.tolist() == [True, False]
