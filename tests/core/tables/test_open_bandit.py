from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from noisefloor.errors import BadParameter, MissingData
from noisefloor.tables.impressions import ITEMS, POLICIES, click_rates, load_impressions

OWN = "item,position,click\n0,1,0\n0,2,1\n2,1,1\n2,1,0\n"


def test_rates_are_posterior_means(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(OWN)
    found = click_rates(None, None, source=tmp_path / "own.csv", prior_impressions=10)
    assert found.clicks.tolist() == [1, 0, 1]
    assert found.impressions.tolist() == [2, 0, 2]
    assert found.prior == pytest.approx((5.0, 5.0))  # (2 + 1/2) / (4 + 1) is one half
    assert found.rate == pytest.approx([6 / 12, 5 / 10, 6 / 12])
    assert found.position_clicks.tolist() == [1, 1]
    assert found.position_impressions.tolist() == [3, 1]
    assert found.position_rate == pytest.approx([6 / 13, 6 / 11])


def test_rates_without_a_click_are_small_and_not_nought(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,position,click\n0,1,0\n1,1,0\n")
    found = click_rates(None, None, source=tmp_path / "own.csv")
    assert 0 < found.rate.min() <= found.rate.max() < 0.2


def test_a_heavier_prior_draws_rates_together(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,position,click\n0,1,0\n1,1,1\n")
    spreads = [
        np.ptp(click_rates(None, None, source=tmp_path / "own.csv", prior_impressions=w).rate)
        for w in (0.1, 1, 10, 100)
    ]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[0] > 0.9
    assert spreads[-1] < 0.01


@pytest.mark.parametrize("weight", [0, -1, float("nan")])
def test_a_prior_has_weight(weight: float) -> None:
    with pytest.raises(BadParameter, match="prior_impressions"):
        click_rates(prior_impressions=weight)


def test_names_that_there_are_not_are_refused() -> None:
    with pytest.raises(BadParameter, match="campaign='kids' to be one of all, men, women"):
        load_impressions("kids")
    with pytest.raises(BadParameter, match="policy='best' to be one of random, bts"):
        click_rates("all", "best")
    with pytest.raises(BadParameter, match="each has items of its own"):
        click_rates(None)


def test_open_bandit_that_was_not_fetched_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch open-bandit"):
        click_rates()


def test_open_bandit_is_what_it_is_said_to_be(real_data: Callable[[str], None]) -> None:
    real_data("open-bandit")
    seen = load_impressions()
    assert len(seen) == 60_000
    assert int(seen.click.sum()) == 287
    assert set(seen.position.tolist()) == {1, 2, 3}
    assert 0 < seen.propensity.min() <= seen.propensity.max() < 1
    for policy in POLICIES:
        for campaign, items in ITEMS.items():
            rows = (seen.policy == policy) & (seen.campaign == campaign)
            assert int(rows.sum()) == 10_000
            assert set(seen.item[rows].tolist()) == set(range(items))


def test_the_random_policy_chooses_evenly(real_data: Callable[[str], None]) -> None:
    real_data("open-bandit")
    for campaign, items in ITEMS.items():
        seen = load_impressions(campaign, "random")
        assert len(seen) == 10_000
        assert seen.propensity == pytest.approx(1 / items)


@pytest.mark.parametrize(
    ("policy", "campaign", "clicks"),
    [
        *(("random", "all", 38), ("random", "men", 46), ("random", "women", 46)),
        *(("bts", "all", 42), ("bts", "men", 69), ("bts", "women", 46)),
    ],
)
def test_rates_of_a_campaign_count_every_impression(
    policy: str, campaign: str, clicks: int, real_data: Callable[[str], None]
) -> None:
    real_data("open-bandit")
    found = click_rates(campaign, policy)
    for some, shown in (
        (found.clicks, found.impressions),
        (found.position_clicks, found.position_impressions),
    ):
        assert int(some.sum()) == clicks
        assert int(shown.sum()) == 10_000
    assert len(found.rate) == ITEMS[campaign]
    assert len(found.position_rate) == 3
    assert 0 < found.rate.min() < clicks / 10_000 < found.rate.max() < 0.05
