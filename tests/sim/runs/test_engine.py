"""The world as a whole: order, duplicates, losses and retries change no estimate."""

import math
from pathlib import Path

import numpy as np
import pytest

from noisefloor.randomness import new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.api import Findings, Metric
from noisefloor_sim.report import Table
from noisefloor_sim.runs.ad_serving import AdServing
from noisefloor_sim.runs.engine import Engine, RunOutcome, explain_spending
from noisefloor_sim.runs.pages import _world
from noisefloor_sim.runs.results import PointResult, RunDirectory
from noisefloor_sim.runs.tables import write_tables
from noisefloor_sim.scenario import Scenario, loads
from noisefloor_sim.scenario.sections import Outage
from worlds import small_world, with_section


def run(scenario: Scenario, order: list[int] | None = None) -> tuple[RunOutcome, Engine]:
    with new_run():
        engine = Engine(scenario, PIPELINES, order=order)
        return engine.run(), engine


def ads_of(engine: Engine) -> AdServing:
    assert engine.ads is not None
    return engine.ads


def pipeline_metrics(outcome: RunOutcome) -> list[Metric]:
    return list(outcome.findings["clicks"].metrics)


def world_metric(outcome: RunOutcome, name: str) -> float:
    return next(metric.value for metric in outcome.world if metric.name == name)


def same(one: list[Metric], other: list[Metric]) -> bool:
    return [repr(metric) for metric in one] == [repr(metric) for metric in other]


CLEAN = small_world()
ROUGH = with_section(
    CLEAN, "network", loss=0.3, duplicate=0.3, reorder=0.3, retries=40, retry_after_s=600.0
)


def test_cohorts_in_another_order_write_the_same_bytes(tmp_path: Path) -> None:
    for name, order in (("straight", None), ("backwards", [5, 4, 3, 2, 1, 0])):
        outcome, _ = run(CLEAN, order)
        findings = outcome.all_findings
        result = PointResult("p0", "", CLEAN.seed, CLEAN.variant, findings, 0.0, 0.0)
        directory = RunDirectory(tmp_path / name)
        directory.create("", force=False, resume=False)
        write_tables(directory, [result], ())
    for file in ("metrics.parquet", "metrics.csv", "privacy.json"):
        straight, backwards = (tmp_path / name / file for name in ("straight", "backwards"))
        assert straight.read_bytes() == backwards.read_bytes()


def test_duplicated_reordered_and_retried_frames_change_no_estimate() -> None:
    clean, _ = run(CLEAN)
    rough, engine = run(ROUGH)
    assert same(pipeline_metrics(clean), pipeline_metrics(rough))
    # The network did do all of it: otherwise the equality would say nothing.
    assert engine.network.traffic.lost > 0
    assert engine.network.traffic.duplicated > 0
    roles = (engine.aggregator.counters, ads_of(engine).server.counters)
    assert sum(role.duplicates for role in roles) == engine.network.traffic.duplicated
    assert all(role.late == 0 and role.is_conserved for role in roles)
    assert world_metric(clean, "impressions_counted") == world_metric(rough, "impressions_counted")


def test_with_a_short_grace_late_frames_are_counted_and_the_numbers_add_up() -> None:
    rough, engine = run(ROUGH.model_copy(update={"grace_h": 0.05}))
    traffic, roles = (
        engine.network.traffic,
        (engine.aggregator.counters, ads_of(engine).server.counters),
    )
    assert engine.aggregator.counters.late > 0
    assert all(role.is_conserved for role in roles)
    assert sum(role.accepted for role in roles) == traffic.delivered
    assert traffic.sent + traffic.duplicated == traffic.delivered + traffic.given_up
    assert sum(role.counted + role.late + role.duplicates for role in roles) == traffic.delivered
    assert not same(pipeline_metrics(rough), pipeline_metrics(run(CLEAN)[0]))


def test_an_outage_holds_frames_back_until_it_ends() -> None:
    dark = with_section(
        CLEAN,
        "network",
        outages=(Outage(start_h=23.0, end_h=30.0),),
        retries=40,
        retry_after_s=900.0,
    )
    outcome, engine = run(dark)
    assert engine.network.traffic.lost > 0
    assert same(pipeline_metrics(outcome), pipeline_metrics(run(CLEAN)[0]))


def test_frames_that_are_given_up_are_missing_and_said_to_be() -> None:
    hopeless = with_section(CLEAN, "network", loss=0.9, retries=0)
    outcome, engine = run(hopeless)
    assert world_metric(outcome, "frames_given_up") == engine.network.traffic.given_up > 0
    counted = world_metric(outcome, "frames_counted")
    assert counted == world_metric(outcome, "frames_sent") - engine.network.traffic.given_up


def test_a_slow_server_queues_and_loses_nothing() -> None:
    slow = with_section(CLEAN, "network", capacity_frames_per_s=0.01)
    outcome, engine = run(slow)
    assert engine.network.traffic.longest_queue >= 3
    assert same(pipeline_metrics(outcome), pipeline_metrics(run(CLEAN)[0]))


def test_what_was_shown_is_counted() -> None:
    outcome, engine = run(CLEAN)
    counts = ads_of(engine).counts
    assert counts.impressions == 2 * counts.views
    assert world_metric(outcome, "impressions_counted") == counts.impressions
    assert world_metric(outcome, "views_per_user_day") == pytest.approx(
        counts.views / engine.census.user_days
    )
    assert all(math.isfinite(metric.value) for metric in outcome.world)


def test_the_census_is_that_of_the_cohorts() -> None:
    """Half of the devices are silent on a day, and a fifth of the people leave each day."""
    days = 4
    scenario = with_section(small_world(days=days), "population", churn_per_day=0.2)
    outcome, engine = run(with_section(scenario, "devices", sync_per_day=0.5))
    cohorts = [engine.cohort(number) for number in range(6)]
    owns, leaves, silent = (
        np.concatenate([getattr(one, name) for one in cohorts])
        for name in ("owns", "leaves", "silent")
    )
    ratings = [engine.ad_world.tastes.draw_ratings(one) for one in cohorts]
    census = engine.census
    assert census.user_days == sum(int((leaves > day).sum()) for day in range(days))
    assert census.devices == int(owns.sum())
    assert census.silent == sum(int((owns & silent[:, :, day]).sum()) for day in range(days))
    assert census.left == int((leaves <= days - 1).sum()) > 500
    assert ads_of(engine).counts.ratings == sum(int(one.rated.sum()) for one in ratings)
    shares = {name: world_metric(outcome, name) for name in ("silent_share", "left_share")}
    assert shares["silent_share"] == census.silent / (census.devices * days)
    assert shares["left_share"] == census.left / scenario.population.users


def test_progress_ends_when_every_cohort_has_woken_on_every_day() -> None:
    steps: list[tuple[int, int]] = []
    with new_run():
        Engine(CLEAN, PIPELINES).run(lambda done, whole: steps.append((done, whole)))
    assert steps == [(done, 18) for done in range(1, 19)]


def test_each_day_of_a_user_is_explained_by_contact_and_by_leaving() -> None:
    days, budget = 4, 3.0  # one report of epsilon 2
    scenario = with_section(small_world(days=days, budget=budget), "population", churn_per_day=0.3)
    scenario = with_section(scenario, "devices", sync_per_day=0.5)
    cohort = Engine(scenario, PIPELINES).cohort(0)
    silent = np.asarray((~cohort.owns[:, :, None] | cohort.silent).all(axis=1))
    # Leaves during the run, and is out of contact on a day before that.
    user = int(np.flatnonzero((cohort.leaves == 2) & silent[:, 0] & ~silent[:, 1])[0])
    # And the first of the cohort, who is watched like any other.
    for chosen in (user, 0):
        with new_run():
            lines = explain_spending(scenario, PIPELINES, chosen)
        for day, line in enumerate(lines):
            is_gone = cohort.leaves[chosen] <= day
            assert ("the user has left" in line) is bool(is_gone)
            assert ("no device in contact" in line) is bool(silent[chosen, day] and not is_gone)
            is_asked = not silent[chosen, day] and not is_gone
            assert ("click report" in line) is bool(is_asked)
            assert ("1 x click report; 2 spent" in line) is (is_asked and " refused" not in line)
        left = [float(line.split()[-2]) for line in lines]
        assert left == sorted(left, reverse=True)
        assert set(left) <= {3.0, 1.0}


def test_same_seed_same_world_other_seed_other_world() -> None:
    again, _ = run(CLEAN)
    other, _ = run(CLEAN.model_copy(update={"seed": 12}))
    assert same(pipeline_metrics(again), pipeline_metrics(run(CLEAN)[0]))
    assert not same(pipeline_metrics(again), pipeline_metrics(other))


RECORDS = """
name: records
seed: 11
question: Does a world without ads hold the same people?
days: 3
population: {users: 1500, cohort: 256}
pipelines: {collection: {epsilon: 4.0, canaries: 1000, questions: protected}}
"""
CLICKS_TOO = RECORDS.replace("{collection:", "{clicks: {canaries: 1000}, collection:")
OF_ADS = {
    *("views_per_user_day", "impressions_per_user_day", "clicks_per_user_day"),
    *("click_rate", "ratings_per_user", "rating_mean", "impressions_counted"),
}


def test_a_world_without_ads_has_no_visits_and_no_ad_server() -> None:
    outcome, engine = run(loads(RECORDS, BLOCKS))
    assert engine.ads is None
    assert engine.hosted.servers.ad_server is None
    names = {metric.name for metric in outcome.world}
    assert not names & OF_ADS
    assert {"devices_per_user", "silent_share", "left_share", "frames_sent"} <= names
    with pytest.raises(TypeError, match="no ads"):
        _ = engine.ad_world
    with pytest.raises(TypeError, match="no impressions"):
        engine.hosted.servers.impressions(0)


def test_ads_in_the_world_change_nothing_for_a_pipeline_that_needs_none() -> None:
    alone, _ = run(loads(RECORDS, BLOCKS))
    beside, engine = run(loads(CLICKS_TOO, BLOCKS))
    assert ads_of(engine).counts.clicks > 0
    assert repr(beside.findings["collection"]) == repr(alone.findings["collection"])
    for name in ("devices_per_user", "silent_share", "left_share"):
        assert world_metric(alone, name) == world_metric(beside, name)


def test_the_page_shows_of_a_world_only_what_it_has() -> None:
    outcome, _ = run(loads(RECORDS, BLOCKS))
    found = {"world": Findings(outcome.world, ())}
    (table,) = _world([PointResult("p0", "", 11, "corrected", found, 0.0, 0.0)]).items
    assert isinstance(table, Table)
    words = [str(row[0]) for row in table.rows]
    assert "Devices per user" in words
    assert not any("Ads shown" in one or "Clicks" in one for one in words)
