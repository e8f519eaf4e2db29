"""The report's section on ads: whatever was swept or not measured, it is drawn."""

import itertools
from pathlib import Path

import pytest

from ads_worlds import BITS, ads_world, run_ads_world
from noisefloor_sim.pipelines.ads.block import ATTACKS
from noisefloor_sim.pipelines.ads.section import report_section
from noisefloor_sim.pipelines.api import Findings, Metric, PointFindings
from noisefloor_sim.report import readings
from noisefloor_sim.report.page import write
from noisefloor_sim.report.readings import caption
from noisefloor_sim.report.spec import Page, Plot, Section, Table
from noisefloor_sim.scenario import Scenario, game_of


def point(scenario: Scenario, **settings: object) -> PointFindings:
    """Return what was found at a point of a sweep."""
    keys = tuple((key.replace("__", "."), value) for key, value in settings.items())
    return PointFindings(keys, scenario, run_ads_world(scenario).found)


def titles(found: Section) -> list[str]:
    """Return the titles of what is shown."""
    return [item.title for item in found.items]


def table(found: Section, start: str) -> Table:
    """Return the table whose title begins so."""
    return next(it for it in found.items if isinstance(it, Table) and it.title.startswith(start))


def swept() -> list[PointFindings]:
    """Return a sweep over variants and ways to ask."""
    return [
        point(
            ads_world(
                {"epsilon": 1.0, "training": BITS, "delivery": {"fresh": fresh}},
                {"form": "one-click"},
                variant=variant,
            ),
            variant=variant,
            pipelines__ads__delivery__fresh=fresh,
        )
        for variant, fresh in itertools.product(("paper", "corrected"), ("day", "impression"))
    ]


def test_a_users_day_is_listed_flow_by_flow_and_adds_up() -> None:
    day = table(report_section(swept()), "A user's day")
    rows = {(row[0], row[1]): row for row in day.rows}
    curve = "paper, fresh impression"
    flows = [rows[curve, name] for name in ("training, all rounds", "ad requests")]
    flows.append(rows[curve, "report of clicks"])
    whole = rows[curve, "the whole day"]
    for column in (5, 6):
        assert sum(row[column] for row in flows) == pytest.approx(whole[column])  # type: ignore[misc]  # numbers
    assert whole[5] == pytest.approx(3.0)
    asked = rows[curve, "ad requests"]
    assert asked[5] == asked[3] == 1.0
    assert asked[6] == pytest.approx(asked[2] * asked[4])  # type: ignore[operator]  # numbers
    assert rows[curve, "ad requests, busiest user"][2] > asked[2]  # type: ignore[operator]  # numbers
    corrected = rows["corrected, fresh impression", "ad requests"]
    assert corrected[6] == pytest.approx(corrected[2] * corrected[4])  # type: ignore[operator]  # numbers
    assert corrected[5] == rows["corrected, fresh impression", "the whole day"][5] == 1_000.0


def test_a_single_point_is_drawn() -> None:
    scenario = ads_world({"training": BITS, "delivery": {"choice": "slate"}})
    found = report_section([point(scenario)])
    assert "Error of the impressions that slates hide" in titles(found)
    assert "Noise in one number of the averaged gradient" in titles(found)


def test_nothing_measured_is_nothing_drawn() -> None:
    empty = PointFindings((), ads_world(), Findings((), ()))
    assert report_section([empty]).items == ()
    little = Findings((Metric("relevance", 0.5), Metric("day.request.releases", 1.0)), ())
    found = report_section([PointFindings((), ads_world(), little)])
    assert titles(found) == ["How much people like the ads they are shown"]


def test_sweeps_over_methods_seeds_and_threats_are_drawn(tmp_path: Path) -> None:
    methods = [
        point(
            ads_world({"training": {"method": method, "rounds": 5}}, seed=seed, days=1),
            pipelines__ads__training__method=method,
            seed=seed,
        )
        for method in ("bits", "laplace")
        for seed in (11, 12)
    ]
    found = report_section(methods)
    paired = table(found, "Ways of training")
    assert len(paired.rows) == 2
    (error,) = (it for it in found.items if it.title == "Error of predicted ratings")
    assert isinstance(error, Plot)
    measured = [curve for curve in error.curves if curve.role == "measured"]
    # Two seeds make an interval, though one world has none.
    assert all(curve.low is not None for curve in measured)
    assert "How far the ads' factors moved in each round" in titles(found)
    threats = [
        point(
            ads_world({"training": BITS}, threat={"fakes": share, "pushed_ad": 1}, days=1),
            threat__fakes=share,
        )
        for share in (0.0, 0.2)
    ]
    attacked = report_section(threats)
    assert "How far fake devices pull the pushed ad in training" in titles(attacked)
    # A share of 0 has no place on a logarithmic axis.
    assert not any(it.log_x for it in attacked.items if isinstance(it, Plot))
    write(
        Page("ads", "What?", "", "This.", True, sections=(found, attacked)), tmp_path / "page.html"
    )
    assert "Detecting the fakes" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_page_says_where_means_were_learned_and_where_training_hurt() -> None:
    points = [
        point(
            ads_world({"training": BITS | {"fallback": fallback}, "epsilon": 1.0}, days=1),
            pipelines__ads__training__fallback=fallback,
        )
        for fallback in (False, True)
    ]
    found = report_section(points)
    plans = table(found, "Noise and signal")
    assert [row[3] for row in plans.rows] == [0.0, 1.0]
    assert min(readings.column(plans, "noise over signal")) > 1
    said = " ".join(readings.true_readings(plans))
    assert "means are learned instead, at 1 of 2 points" in said
    assert "At 1 of 2 points the predicted noise exceeds the signal and training goes on" in said
    assert "Training hurts at 1 of 2 points" in said
    # The twin: of the point that learned means alone, only the first sentence is true.
    alone = " ".join(readings.true_readings(table(report_section(points[1:]), "Noise and signal")))
    assert "goes on" not in alone
    assert "At none of 1 points has an untrained model the smaller error." in alone


def test_an_auction_shows_a_bid_request_as_it_was_sent() -> None:
    points = [
        point(
            ads_world(
                {
                    "training": {"method": "open"},
                    "delivery": {"choice": "argmax", "epsilon": epsilon},
                    "auction": {"run": True},
                }
            ),
            pipelines__ads__delivery__epsilon=epsilon,
        )
        for epsilon in (1.0, 4.0)
    ]
    found = report_section(points)
    shown = "\n".join(str(row[1]) for row in table(found, "A bid request").rows)
    assert '"segment"' in shown
    assert '"user"' not in shown
    assert "What a thousand impressions earn" in titles(found)
    shares = next(it for it in found.items if it.title.startswith("Share of tracking"))
    assert isinstance(shares, Plot)
    assert len(shares.curves) == 4
    # What is negative, behind the page or away from 0 is said, whatever it is.
    own, page, random = (
        next(curve for curve in shares.curves if curve.name == name)
        for name in ("released ad and page", "page alone", "nothing: at random")
    )
    said = caption(shares)
    negative = [at for at, y in zip(own.x, own.y, strict=True) if y < 0]
    assert ("is nowhere negative" in said) is (not negative)
    assert ("is negative at" in said) is bool(negative)
    ahead = sum(a >= b for a, b in zip(own.y, page.y, strict=True))
    assert f"at {ahead} of 2 places" in said
    assert random.low is not None and random.high is not None
    ends = zip(random.low, random.high, strict=True)
    assert f"contains 0 at {sum(low <= 0 <= high for low, high in ends)} of 2." in said


def test_a_protected_gain_below_zero_or_below_the_page_s_is_said() -> None:
    scenario = ads_world({"auction": {"run": True}})
    shares = {"protected": -0.1, "symbol": 0.0, "contextual": 0.2, "random": 0.0}
    metrics = [Metric.normal(f"auction.share.{name}", at, 0.01) for name, at in shares.items()]
    key = ("pipelines.ads.delivery.epsilon", 0.5)
    shown = report_section([PointFindings((key,), scenario, Findings(tuple(metrics), ()))])
    said = caption(next(it for it in shown.items if it.title.startswith("Share of tracking")))
    assert "The protected gain is negative at 0.5." in said
    assert "at 0 of 1 places; less at 0.5." in said
    assert "contains 0 at 1 of 1." in said


def test_every_game_that_was_played_has_a_title() -> None:
    for found in swept():
        names = [it.name.split(".") for it in found.findings.metrics]
        played = {name[1] for name in names if name[0] == "attack"}
        assert played <= {game_of(name) for name in ATTACKS}
