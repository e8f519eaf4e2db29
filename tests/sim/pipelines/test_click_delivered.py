"""Clicks on delivered ads in the world: who reports on what, errors, budgets, attacks."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from noisefloor.ads.clicks.delivered_click import DeliveredClick
from noisefloor.adversary.audit.intervals import lower_limit, upper_limit
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.ads.block import AdsBlock, ChoiceName, DeliveryBlock
from noisefloor_sim.pipelines.api import Findings, PointFindings
from noisefloor_sim.pipelines.clicks import CLICKS
from noisefloor_sim.pipelines.clicks.attacks import closed_form, delivered_games_of, play
from noisefloor_sim.pipelines.clicks.block import report_of
from noisefloor_sim.pipelines.clicks.delivered_pipeline import DeliveredPipeline, build, day_ads
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.runs.engine import Engine, explain_spending
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world.behaviour import DayActivity
from statistics_of_tests import FALSE_ALARM
from worlds import small_world, with_clicks, with_section

DELIVERED = with_clicks(small_world(), form="delivered")


def ads_by(choice: ChoiceName) -> AdsBlock:
    """Return the settings of a pipeline that serves ads by this choice."""
    return AdsBlock(delivery=DeliveryBlock(choice=choice))


def findings(scenario: Scenario) -> Findings:
    with new_run():
        return Engine(scenario, PIPELINES).run().findings["clicks"]


def value(found: Findings, name: str) -> float:
    return next(metric.value for metric in found.metrics if metric.name == name)


def test_a_user_reports_on_the_first_slot_of_a_device_in_contact() -> None:
    # User 0 clicks the ad later, on another device in contact; user 1 only on a silent one;
    # user 2 has no slot in contact; user 3 has no slot at all.
    events = DayActivity(
        users=4,
        views=np.array([3, 2, 1, 0]),
        user=np.array([0, 0, 0, 1, 1, 2]),
        device=np.array([0, 1, 1, 2, 0, 1], dtype=np.uint8),
        hour=np.zeros(6, dtype=np.uint8),
        ad=np.array([5, 3, 5, 2, 2, 4], dtype=np.uint16),
        clicked=np.array([False, True, True, True, False, True]),
    )
    contact = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 1]], dtype=np.bool_)
    found = day_ads(events, contact)
    assert found.has.tolist() == [True, True, False, False]
    assert found.ad[:2].tolist() == [5, 2]
    assert found.clicked.tolist() == [True, False, False, False]


def test_it_claims_what_is_proved_given_the_ad() -> None:
    (named,) = findings(DELIVERED).claims
    assert named.mechanism == "clicks-delivered"
    assert named.claim.verdict == "holds"
    assert named.claim.claimed.epsilon == 2.0
    assert "given the delivered ad" in named.claim.proved.reason
    assert named.claim.audited is not None
    assert 0.0 < named.claim.audited.epsilon <= 2.0


@pytest.mark.statistical
def test_the_error_follows_the_closed_form() -> None:
    # 6 ads on 12 days, over 100 reports each: 72 squared errors over their variances
    # shown * lie (1 - lie) / (1 - 2 lie)**2 are chi-square in the limit; false alarm FALSE_ALARM
    # on either side. The twin: a third of the variance is rejected.
    scenario = small_world(days=12, pipelines=DELIVERED.pipelines)
    with new_run():
        engine = Engine(scenario, PIPELINES)
        found = engine.run().findings["clicks"]
    clicks = engine.pipelines["clicks"]
    assert isinstance(clicks, DeliveredPipeline)
    lie = clicks.mechanism.response.flip / ONE
    total = 0.0
    for day, stats in enumerate(clicks.days):
        tally, _ = engine.aggregator.release("delivered-clicks", day)
        shown = clicks.mechanism.shown(tally)
        assert shown.min() > 100
        misses = clicks.mechanism.clicks(tally).value - stats.reported
        total += float((misses**2 * (1 - 2 * lie) ** 2 / (shown * lie * (1 - lie))).sum())
    assert FALSE_ALARM < chi2.sf(total, 72) < 1 - FALSE_ALARM
    assert chi2.sf(3 * total, 72) < FALSE_ALARM
    # 72 intervals of 95 %: fewer than 57 cover with probability below 1e-6.
    assert value(found, "coverage") >= 57 / 72


def test_only_users_with_a_slot_report_and_pay() -> None:
    found, vectors = findings(DELIVERED), findings(small_world())
    assert 0 < value(found, "reports_fresh") <= value(vectors, "reports_fresh")
    users = DELIVERED.population.users
    assert value(found, "spent.day_2") == pytest.approx(2 * value(found, "reports_fresh") / users)
    assert value(found, "reported_share") < value(vectors, "reported_share")
    for name in ("clicks_mean", "error_relative", "ctr_error", "exhausted.devices_1"):
        assert math.isfinite(value(found, name))
    quiet = with_section(DELIVERED, "population", engagement=_no_views(DELIVERED))
    silent = findings(quiet)
    assert value(silent, "reports_fresh") + value(silent, "reports_refused") < 0.2 * users


def _no_views(scenario: Scenario) -> object:
    return scenario.population.engagement.model_copy(update={"mean_views_per_day": 0.01})


def test_an_exhausted_budget_refuses_or_answers_from_memory() -> None:
    poor = DELIVERED.model_copy(update={"days": 5, "budget": 4.0})  # two reports of epsilon 2
    refusing = findings(poor)
    assert value(refusing, "reports_refused") > 0
    assert value(refusing, "reports_repeated") == 0
    assert value(refusing, "spent.day_4") <= 4.0
    remembering = findings(with_clicks(poor, exhausted="memory"))
    assert value(remembering, "reports_fresh") == value(refusing, "reports_fresh")
    # A few could not even pay a first one: their share of the budget was on another device.
    again, never = (value(remembering, f"reports_{name}") for name in ("repeated", "refused"))
    assert again + never == value(refusing, "reports_refused")
    assert again > never


def test_explaining_a_user_agrees_with_what_the_run_spent() -> None:
    with new_run():
        engine = Engine(DELIVERED, PIPELINES)
        engine.run()
    for user in (0, 1_499):
        number, row = divmod(user, DELIVERED.population.cohort)
        left = int(engine.accounts[number].device_budgets.left[row].sum()) / 1e6
        with new_run():
            assert explain_spending(DELIVERED, PIPELINES, user)[-1].endswith(f"{left:.6f} left")


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_attacks_succeed_as_the_closed_form_says_and_never_above_the_bound(
    epsilon: float, seed: int
) -> None:
    # 20,000 canaries; 3 epsilons times 2 games share FALSE_ALARM, by exact binomial limits. The
    # twin: the closed form of twice the epsilon, where it differs enough.
    click, n, alpha = DeliveredClick(8, epsilon), 20_000, FALSE_ALARM / 12
    source = SeededSource(seed, "delivered", str(epsilon))
    for game in delivered_games_of(5, is_linked=True):
        found = {metric.name: metric.value for metric in play(click, game, n, source)}
        right = round(found[f"attack.{game.name}.success"] * n)
        low, high = float(lower_limit(right, n, alpha)), float(upper_limit(right, n, alpha))
        assert low <= found[f"attack.{game.name}.closed_form"] <= high
        assert low <= found[f"attack.{game.name}.bound"]
        twin = closed_form(DeliveredClick(8, 2 * epsilon), game)
        assert twin is not None
        assert epsilon > 1 or twin > high


def test_days_are_joined_only_by_a_server_that_can_link_them() -> None:
    linked = {metric.name for metric in findings(DELIVERED).metrics}
    unlinked = {
        metric.name for metric in findings(with_section(DELIVERED, "threat", linked=False)).metrics
    }
    assert "attack.all_days.success" in linked
    assert "attack.all_days.success" not in unlinked
    assert "attack.single_bit.closed_form" in unlinked


@pytest.mark.parametrize("choice", ["slate", "random-slate"])
def test_the_ad_of_a_slate_is_a_secret_and_is_not_reported(choice: ChoiceName) -> None:
    blocks = {**DELIVERED.pipelines, "ads": ads_by(choice)}
    slates = DELIVERED.model_copy(update={"pipelines": blocks})
    rule = rf"pipelines\.clicks\.form.* pipelines\.ads\.delivery\.choice '{choice}' it is a secret"
    with pytest.raises(BadParameter, match=rule):
        build(slates)
    paper = slates.model_copy(update={"variant": "paper"})
    assert isinstance(build(paper), ClickPipeline)


def test_the_form_goes_with_requests_that_name_an_ad_and_not_with_the_paper() -> None:
    blocks = {**DELIVERED.pipelines, "ads": ads_by("top-set")}
    assert isinstance(build(DELIVERED.model_copy(update={"pipelines": blocks})), DeliveredPipeline)
    paper = DELIVERED.model_copy(update={"variant": "paper"})
    (named,) = findings(paper).claims
    assert named.mechanism == "clicks-per-bit"
    with pytest.raises(BadParameter, match="form"):
        DeliveredPipeline(paper)
    assert report_of(DELIVERED).guarantee(Neighbours.USER).epsilon <= 2.0


def test_the_report_shows_what_there_is() -> None:
    found = findings(DELIVERED)
    section = CLICKS.section([PointFindings((), DELIVERED, found)])
    titles = " ".join(item.title for item in section.items)
    assert "one click or none, all fresh reports linked" in titles
    assert "farthest apart" not in titles
