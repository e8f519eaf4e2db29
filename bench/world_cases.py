"""One measured world in a process of its own: ``python -m bench.world_cases CASE SCENARIO``.

Takes the text of a scenario, prints what was measured as JSON.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bench.world_baseline import World
from numpy.typing import ArrayLike, NDArray

from noisefloor.randomness import new_run
from noisefloor_sim.inspection import DeviceFrame
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.api import PipelineType
from noisefloor_sim.pipelines.clicks.block import ClickBlock, block_of
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.section import report_section
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import Scenario, loads
from noisefloor_sim.world.behaviour import DayActivity
from noisefloor_sim.world.budgets import BudgetAccount, in_contact
from noisefloor_sim.world.population import Cohort

Answer = dict[str, Any]  # JSON


class Recorder(ClickPipeline):
    """Click statistics that also note what each user did; nothing else is different."""

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = (self.scenario.population.users, self.scenario.days)
        names = ("impressions", "clicks", "reports")
        self.counts = {name: np.zeros(shape, dtype=np.int64) for name in names}

    def wake_with_ads(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Note a cohort's day, then let it report."""
        users = slice(cohort.first, cohort.first + len(cohort))
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        clickers = activity.user[activity.clicked]
        self.counts["impressions"][users, day] = np.bincount(activity.user, minlength=len(cohort))
        self.counts["clicks"][users, day] = np.bincount(clickers, minlength=len(cohort))
        self.counts["reports"][users, day] = contact.any(axis=1)
        yield from super().wake_with_ads(cohort, day, activity, account)


def _moments(counted: ArrayLike) -> dict[str, float]:
    """Return mean and variance per user-day, with their standard errors.

    Users are independent of each other, their days are not: errors are those over users.
    """
    counts: NDArray[np.float64] = np.asarray(counted, dtype=np.float64)
    by_user = counts.mean(axis=1)
    mean, root = by_user.mean(), math.sqrt(len(counts))
    away = ((counts - mean) ** 2).mean(axis=1)
    mean_se, variance_se = by_user.std(ddof=1) / root, away.std(ddof=1) / root
    figures = {"mean": mean, "mean_se": mean_se, "variance": away.mean()}
    return {name: float(value) for name, value in (figures | {"variance_se": variance_se}).items()}


def engine(scenario: Scenario) -> Answer:
    """Time ours: people, network, frames, aggregator, estimates and the adversary's games."""
    start = time.process_time()
    with new_run():
        world = Engine(scenario, PIPELINES)
        world.run()
    cpu_s = time.process_time() - start
    clicks = world.pipelines["clicks"]
    assert isinstance(clicks, ClickPipeline)  # noqa: S101  narrows a type
    reports = sum(stats.fresh for stats in clicks.days)
    assert world.ads is not None  # noqa: S101  narrows a type
    return {"cpu_s": cpu_s, "events": world.ads.counts.events() + reports}


def engine_moments(scenario: Scenario) -> Answer:
    """Run ours and return the moments of what users did, which add up to the engine's sums."""
    types = {"clicks": PipelineType("clicks", ClickBlock, Recorder, report_section)}
    with new_run():
        world = Engine(scenario, types)
        world.run()
    clicks = world.pipelines["clicks"]
    assert isinstance(clicks, Recorder)  # noqa: S101  narrows a type
    totals = {name: int(counted.sum()) for name, counted in clicks.counts.items()}
    reports = sum(stats.fresh for stats in clicks.days)
    assert world.ads is not None  # noqa: S101  narrows a type
    seen = world.ads.counts
    sums = {"impressions": seen.impressions, "clicks": seen.clicks, "reports": reports}
    if totals != sums:
        raise RuntimeError(f"recorded {totals}, but the engine counted {sums}")
    return {name: _moments(counted) for name, counted in clicks.counts.items()}


def baseline(scenario: Scenario) -> Answer:
    """Time one SimPy process per user."""
    start = time.process_time()
    world = World(scenario, block_of(scenario).epsilon)
    world.run()
    return {"cpu_s": time.process_time() - start, "events": world.events()}


def baseline_moments(scenario: Scenario) -> Answer:
    """Run one SimPy process per user and return the moments of what users did."""
    world = World(scenario, block_of(scenario).epsilon)
    world.run()
    return {name: _moments(counted) for name, counted in world.counts().items()}


CASES: dict[str, Callable[[Scenario], Answer]] = {
    case.__name__: case for case in (engine, engine_moments, baseline, baseline_moments)
}


def main() -> None:
    """Run the case, and print what it gave."""
    case, text = sys.argv[1:]
    print(json.dumps(CASES[case](loads(text, BLOCKS))))


if __name__ == "__main__":
    main()
