"""What devices do with one day's clicks: whom they pay for, what they send, what they keep.

The days are made by hand. Where what is sent is compared with what happened, a bit is flipped with
probability 3e-9 at most, and there are fewer than a hundred of them.
"""

import numpy as np
import pytest

from noisefloor.accounting.entries import MICRO
from noisefloor.wire.frames import decode_frame
from noisefloor_sim.pipelines.clicks.block import vector_report_of
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics, exhausted_metrics
from noisefloor_sim.pipelines.clicks.delivered_pipeline import DeliveredPipeline, build
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.sending import ReportCache, SentReports
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world.behaviour import DayActivity
from noisefloor_sim.world.budgets import BudgetAccount, Exhausted
from noisefloor_sim.world.population import Cohort
from worlds import small_world, with_clicks

Clicks = ClickPipeline | DeliveredPipeline
Row = tuple[int, ...]

USERS, ADS, DAYS = 5, 6, 4
OWNS = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=np.bool_)
"""Two devices or one; the last user leaves after the first day."""

SILENT = np.zeros((USERS, 3, DAYS), dtype=np.bool_)
SILENT[0, 1] = SILENT[3] = True
"""User 0 has a silent second device; all of user 3 is silent."""

SEEN = ((0, 0, 2), (0, 1, 4), (1, 0, 5), (2, 0, 1), (2, 1, 1), (3, 0, 0), (4, 0, 3))
"""User, device and ad of each impression; all are clicked."""

KNOWN = {0: 2, 1: 5, 2: 1, 4: 3}
"""The ad that was clicked on a device in contact, by user."""


def world(*, budget: float, epsilon: float, **clicks: object) -> Scenario:
    return with_clicks(small_world(days=DAYS, budget=budget), epsilon=epsilon, **clicks)


def pipeline_of(scenario: Scenario) -> Clicks:
    pipeline = build(scenario)
    assert isinstance(pipeline, ClickPipeline | DeliveredPipeline)
    return pipeline


def cohort() -> Cohort:
    interests = np.full((USERS, 2), 0.5, dtype=np.float32)
    leaves = np.array([DAYS, DAYS, DAYS, DAYS, 1])
    return Cohort(0, 0, interests, np.ones(USERS), OWNS, SILENT, leaves)


def events() -> DayActivity:
    user, device, ad = np.array(SEEN).T
    views = np.bincount(user, minlength=USERS)
    hour = np.zeros(len(user), dtype=np.uint8)
    clicked = np.ones(len(user), dtype=np.bool_)
    return DayActivity(
        USERS, views, user, device.astype(np.uint8), hour, ad.astype(np.uint16), clicked
    )


def open_account(scenario: Scenario) -> BudgetAccount:
    return BudgetAccount.open(OWNS, round(scenario.budget * MICRO))


def sent(pipeline: Clicks, day: int, account: BudgetAccount) -> list[Row]:
    """Return the reports of a day, in an order that does not depend on the frames."""
    kinds = {kind.name: kind for kind in pipeline.kinds}
    found: list[Row] = []
    for data in pipeline.wake_with_ads(cohort(), day, events(), account):
        frame = decode_frame(data.data, kinds)
        assert frame.epoch == day
        rows = np.asarray(frame.kind.rows(frame.batch))
        found += [tuple(np.flatnonzero(row)) if row.ndim else (int(row),) for row in rows]
    return sorted(found)


def ones(*users: int) -> list[Row]:
    return sorted((KNOWN[user],) for user in users)


def clicks_on(*ads: int) -> list[Row]:
    return [(2 * ad + 1,) for ad in ads]


def left(account: BudgetAccount) -> list[int]:
    return [int(row.sum()) for row in account.device_budgets.left]


@pytest.mark.parametrize("form", ["one-click", "delivered", "memoised"])
def test_nobody_who_cannot_pay_sends_anything(form: str) -> None:
    poor = world(budget=3.0, epsilon=6.0, form=form)
    pipeline, account = pipeline_of(poor), open_account(poor)
    for day in range(DAYS):
        assert sent(pipeline, day, account) == []
        assert pipeline.days[day].fresh == pipeline.days[day].spent == 0
    assert left(account) == [3 * MICRO] * USERS
    assert pipeline.days[0].refused == 4


@pytest.mark.parametrize("form", ["one-click", "delivered", "memoised"])
def test_every_report_is_paid_for_and_what_is_spent_is_what_is_missing(form: str) -> None:
    """The shares of a user's devices are pooled only where both are in contact: user 0 pays 1."""
    rich = world(budget=14.0, epsilon=6.0, form=form)
    pipeline, account = pipeline_of(rich), open_account(rich)
    fresh = [len(sent(pipeline, day, account)) for day in range(DAYS)]
    assert fresh == ([4, 3, 3, 3] if form == "memoised" else [4, 2, 0, 0])
    assert fresh == [stats.fresh for stats in pipeline.days]
    times = [1, 1, 1, 0, 1] if form == "memoised" else [1, 2, 2, 0, 1]
    assert left(account) == [14 * MICRO - 6 * MICRO * paid for paid in times]
    assert sum(stats.spent for stats in pipeline.days) == 6 * MICRO * sum(times)


@pytest.mark.parametrize("form", ["split", "memoised"])
def test_vectors_hold_the_clicks_of_devices_in_contact_and_no_others(form: str) -> None:
    rich = world(budget=1_000.0, epsilon=20.0 * ADS, form=form, first_share=0.99)
    pipeline, account = pipeline_of(rich), open_account(rich)
    assert sent(pipeline, 0, account) == ones(0, 1, 2, 4)
    assert sent(pipeline, 1, account) == ones(0, 1, 2)
    assert pipeline.days[0].reported.tolist() == [0, 1, 1, 1, 0, 1]
    assert pipeline.days[0].clicked.tolist() == [1, 1, 1, 1, 1, 1]
    assert [stats.out_of_contact for stats in pipeline.days[:2]] == [1, 1]


def test_a_delivered_ad_is_reported_with_its_click() -> None:
    rich = world(budget=1_000.0, epsilon=20.0, form="delivered")
    pipeline, account = pipeline_of(rich), open_account(rich)
    assert sent(pipeline, 0, account) == clicks_on(1, 2, 3, 5)
    assert sent(pipeline, 1, account) == clicks_on(1, 2, 5)


@pytest.mark.parametrize("form", ["one-click", "delivered"])
def test_a_device_without_budget_sends_the_very_report_that_it_sent_last(form: str) -> None:
    """At epsilon 0.5 nearly half of the bits are noise: drawn again, they would be others."""
    poor = world(budget=1.0, epsilon=0.5, form=form, exhausted="memory")
    pipeline, account = pipeline_of(poor), open_account(poor)
    days = [sent(pipeline, day, account) for day in range(DAYS)]
    # User 0 can pay on one day, users 1 and 2 on two.
    assert [(stats.fresh, stats.repeated) for stats in pipeline.days] == [
        (4, 0),
        (2, 1),
        (0, 3),
        (0, 3),
    ]
    assert days[2] == days[3]
    assert len([row for row in days[1] if row in days[2]]) == 3
    assert left(account)[:3] == [MICRO // 2, 0, 0]


def test_permanent_answers_are_drawn_once_and_kept() -> None:
    """The first report may reveal all but 1e-9 of epsilon: fresh coins flip next to nothing."""
    rich = world(budget=6.0, epsilon=6.0, form="memoised", first_share=1 - 1e-9)
    pipeline, account = pipeline_of(rich), open_account(rich)
    days = [sent(pipeline, day, account) for day in range(1, DAYS)]
    assert days[0] == days[1] == days[2]
    assert days[0] != ones(0, 1, 2)


def test_delivered_bits_are_counted_by_their_value_and_by_what_was_reported() -> None:
    """Of the optimised encoding at epsilon 20 no zero is reported as one, and half of the ones."""
    rich = world(budget=1_000.0, epsilon=20.0, form="one-click")
    pipeline, account = pipeline_of(rich), open_account(rich)
    reported = sum(len(row) for day in range(DAYS) for row in sent(pipeline, day, account))
    counts = np.sum([stats.delivered for stats in pipeline.days], axis=0)
    # 4 and then 3 clicks a day; the ad on user 0's silent device was shown, too.
    assert counts.tolist() == [[DAYS, 0], [13 - reported, reported]]
    assert 0 < reported < 13


@pytest.mark.parametrize(
    ("form", "most", "kept"), [("capped", 3, 3), ("pad-and-sample", 2, 2), ("capped", 9, ADS)]
)
def test_the_cap_on_clicks_is_that_of_the_scenario(form: str, most: int, kept: int) -> None:
    report = vector_report_of(world(budget=6.0, epsilon=1.0, form=form, most_clicks=most))
    assert (report.form.value, report.most_clicks) == (form, kept)


def test_what_is_sent_again_comes_with_what_it_was_made_of() -> None:
    memory, stats = ReportCache(Exhausted.MEMORY), ClickDayStatistics.empty(2, 2)
    everybody, payers = np.ones(3, dtype=np.bool_), np.array([True, False, True])
    fresh = SentReports(
        np.array([[True, False], [False, True]]), np.array([[True, True], [True, False]])
    )
    none = SentReports(fresh.reports[:0], fresh.inputs[:0])
    first, nobody = memory.complete(0, everybody, payers, fresh, stats)
    again, who = memory.complete(0, everybody, ~everybody, none, stats)
    assert not nobody.any()
    assert who.tolist() == payers.tolist()
    for kept in (first, again):
        assert np.array_equal(kept.reports, fresh.reports)
        assert np.array_equal(kept.inputs, fresh.inputs)
    assert (stats.repeated, stats.refused) == (2, 2)


def test_users_are_exhausted_who_cannot_pay_one_more_report() -> None:
    account = BudgetAccount.open(OWNS, 10)
    account.device_budgets.left[:] = [[6, 4, 0], [9, 0, 0], [5, 4, 0], [10, 0, 0], [0, 0, 0]]
    joined = np.array([False, False, True, False, False])
    for has_joined, two in (({}, 2.0), ({0: joined}, 1.0)):
        one_device, two_devices, three = exhausted_metrics({0: account}, 10, has_joined)
        assert (one_device.name, one_device.value, one_device.n) == ("exhausted.devices_1", 1.0, 2)
        assert (two_devices.value, two_devices.n) == (two, 3)
        assert (three.name, three.n) == ("exhausted.devices_3", 0)
