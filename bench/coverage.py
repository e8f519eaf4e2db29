"""How often 95 % intervals cover: every interval that a run prints, over many small worlds.

Of each world and kind of interval one is looked at, another ad and day for each seed, so that
trials are independent. An exact binomial test rejects a coverage of 0.95 or more with a false
alarm of 1e-4 over all kinds together. Truths come from what the simulated people did, from closed
forms, or, where a metric is a mean or a share of a sample, from the distribution that it was drawn
from. The last column is the twin: the same intervals, cut to 0.6 of their length.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, norm

# `python bench/coverage.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned

from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.pipelines.ads.sales import mean_of
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.clicks.delivered_pipeline import DeliveredPipeline
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.collection.pipeline import CollectionPipeline
from noisefloor_sim.pipelines.collection.synthetic_wearables import health_records
from noisefloor_sim.pipelines.plotting import student_interval
from noisefloor_sim.pipelines.scoring import intervals_with_truth, proportion_metric
from noisefloor_sim.runs.engine import Engine, RunOutcome
from noisefloor_sim.scenario import loads

FALSE_ALARM = 1e-4
"""That any interval of all kinds is rejected, if all cover as often as they say."""

LEVEL, CUT = 0.95, 0.6
SEEDS, QUICK_SEEDS = 200, 20
OTHERS = 50_000
"""People whose records tell what the accuracy of a model is."""

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

Interval = tuple[str, float, float, float]
"""What it is of, its ends, and the truth."""


@dataclass(slots=True)
class Coverage:
    """How many intervals of one kind covered, and how many would have, cut short.

    Attributes:
        seeds: Intervals.
        covered: Those with the truth in them.
        cut: Those with the truth in their middle part.
    """

    seeds: int = 0
    covered: int = 0
    cut: int = 0

    def see(self, low: float, high: float, truth: float) -> None:
        """Count one interval."""
        self.seeds += 1
        self.covered += low <= truth <= high
        if math.isinf(high):
            self.cut += low <= truth
            return
        middle, half = (low + high) / 2, CUT * (high - low) / 2
        self.cut += middle - half <= truth <= middle + half

    @staticmethod
    def p_value(covered: int, seeds: int) -> float:
        """Return how likely so few, or fewer, cover if each does with probability 0.95."""
        return float(binom.cdf(covered, seeds, LEVEL))


def run(document: dict[str, Any], seed: int) -> tuple[Engine, RunOutcome]:
    """Let a small world live, and return it with what came out."""
    settings = {"name": "cover", "question": "?", **document, "seed": seed}
    with new_run():
        engine = Engine(loads(json.dumps(settings), BLOCKS), PIPELINES)
        return engine, engine.run()


def clicks_world(seed: int, users: int = 500, **block: Any) -> dict[str, Any]:
    """Return a world of clicks; each seed has the next epsilon of a grid."""
    epsilon = EPSILONS[seed % len(EPSILONS)]
    clicks = {"epsilon": epsilon, "canaries": 1000, **block}
    return {
        "days": 2,
        "population": {"users": users, "cohort": 256},
        "behaviour": {"ads": 6},
        "attacks": ["clicks.single-bit", "clicks.profiles", "clicks.all-days", "clicks.vector"],
        "pipelines": {"clicks": clicks},
    }


def click_intervals(name: str, document: dict[str, Any], seed: int) -> Iterator[Interval]:
    """Yield the intervals of one world of clicks: of one ad, and on one day."""
    engine, outcome = run(document, seed)
    clicks = engine.pipelines["clicks"]
    assert isinstance(clicks, ClickPipeline | DeliveredPipeline)  # noqa: S101  narrows a type
    metrics = {one.name: one for one in outcome.findings["clicks"].metrics}
    days, limit = clicks.days, clicks.mechanism.limit
    ad, day = seed % 6, seed % len(days)
    kept, reported = (np.array([one.kept(some) for one in days]) for some in (limit, None))
    shown: dict[str, tuple[Metric, float]] = {}
    for rate in ("kept_rate", "ctr"):
        found = metrics.get(f"{rate}.ad_{ad}")
        if found is not None:
            truth = (kept if rate == "kept_rate" else reported)[:, ad].sum() / found.n
            shown[rate] = found, truth
    label = "estimate" if limit is None else "kept"
    shown[f"{label} of a day"] = metrics[f"{label}.day_{day}.ad_{ad}"], kept[day, ad]
    if "dropped_per_kept" in metrics and isinstance(clicks, ClickPipeline) and clicks.counting:
        dropped = math.fsum(one.dropped(clicks.counting.mechanism) for one in days)
        shown["dropped per kept"] = metrics["dropped_per_kept"], dropped / kept.sum()
    for what, (metric, truth) in shown.items():
        yield f"{name}: {what}", metric.low, metric.high, float(truth)
    for metric, truth in intervals_with_truth(metrics.values()):
        yield f"{name}: {metric.name}", metric.low, metric.high, truth


CLICK_FORMS: dict[str, dict[str, Any]] = {
    "one-click": {"form": "one-click", "counting_share": 0.2},
    "capped": {"form": "capped", "most_clicks": 2, "counting_share": 0.2},
    "padded": {"form": "pad-and-sample", "most_clicks": 3, "counting_share": 0.2},
    "split": {"form": "split"},
    "delivered": {"form": "delivered"},
    "memoised": {"form": "memoised"},
}


def all_clicks(seed: int) -> Iterator[Interval]:
    """Yield the intervals of every form of click report."""
    for name, block in CLICK_FORMS.items():
        yield from click_intervals(name, clicks_world(seed, **block), seed)
    paper = {**clicks_world(seed), "variant": "paper"}
    yield from click_intervals("paper", paper, seed)


def ads_and_fraud(seed: int) -> Iterator[Interval]:
    """Yield the intervals of the ad pipeline that a formula tells the truth of, with fakes."""
    document = {
        "days": 2,
        "population": {"users": 600, "cohort": 256},
        "behaviour": {"ads": 6},
        "tastes": {"source": "low-rank"},
        "threat": {"fakes": 0.05, "pushed_ad": 2, "forgery": ("evasive", "input")[seed % 2]},
        "pipelines": {
            "ads": {
                "canaries": 1000,
                "epsilon": EPSILONS[seed % len(EPSILONS)],
                "training": {"method": "bits", "rounds": 2},
            },
            "clicks": {"canaries": 1000, "form": "one-click"},
        },
    }
    _, outcome = run(document, seed)
    for name, found in outcome.findings.items():
        for metric, truth in intervals_with_truth(found.metrics):
            yield f"{name}: {metric.name}", metric.low, metric.high, truth


def collected_records(seed: int) -> Iterator[Interval]:
    """Yield attacks on records, and the accuracy of a model on people like those asked."""
    document = {
        "days": 2,
        "population": {"users": 1200, "cohort": 256},
        "pipelines": {"collection": {"canaries": 1000, "epsilon": EPSILONS[seed % 6]}},
    }
    engine, outcome = run(document, seed)
    collection = engine.pipelines["collection"]
    assert isinstance(collection, CollectionPipeline)  # noqa: S101  narrows a type
    metrics = {one.name: one for one in outcome.findings["collection"].metrics}
    for metric, truth in intervals_with_truth(metrics.values()):
        yield f"collection: {metric.name}", metric.low, metric.high, truth
    others = health_records(OTHERS, SeededSource(seed, "others").generator())
    right = collection.task.predict(collection.content, others) == others.labels
    accuracy = metrics["accuracy.device"]
    yield "collection: accuracy.device", accuracy.low, accuracy.high, float(np.mean(right))


def shares(seed: int) -> Iterator[Interval]:
    """Yield shares of right guesses and right answers: accuracies are these, of test records."""
    draws = SeededSource(seed, "shares").generator()
    for n, truth in ((40, 0.9), (1_000, 0.5), (4_000, 0.999)):
        found = proportion_metric("share", int(draws.binomial(n, truth)), n)
        yield f"share of {n:,} at {truth:g}", found.low, found.high, truth


def means(seed: int) -> Iterator[Interval]:
    """Yield means over seeds, and means over impressions of users who see few or many."""
    draws = SeededSource(seed, "means").generator()
    low, high = student_interval(draws.normal(2.0, 1.0, 3).tolist())
    yield "mean over three seeds (plots, area under ROC)", low, high, 2.0
    user = np.repeat(np.arange(400), 1 + draws.poisson(2 * draws.pareto(3.0, 400)))
    own = draws.normal(0.0, 1.0, 400)[user]
    clicked = draws.random(len(user)) < norm.cdf((own - 1) / math.sqrt(2))
    mean = mean_of(clicked.astype(np.float64), user)
    reach = norm.ppf(0.975) * mean.standard_error
    truth = float(norm.cdf(-1 / math.sqrt(3)))
    yield "mean over impressions (auction)", mean.value - reach, mean.value + reach, truth


KINDS: dict[str, Callable[[int], Iterator[Interval]]] = {
    "clicks": all_clicks,
    "ads": ads_and_fraud,
    "collection": collected_records,
    "shares": shares,
    "means": means,
}


def measure(kinds: list[str], seeds: range) -> dict[str, Coverage]:
    """Return how often each kind of interval covers."""
    found: dict[str, Coverage] = {}
    for seed in seeds:
        for kind in kinds:
            for name, low, high, truth in KINDS[kind](seed):
                found.setdefault(name, Coverage()).see(low, high, truth)
    return found


def main() -> int:
    """Print the table; end with 1 if any kind of interval is rejected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SEEDS} seeds only")
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    count = QUICK_SEEDS if args.quick else args.seeds
    found = measure(args.only, range(args.first, args.first + count))
    least = FALSE_ALARM / len(found)
    rows, rejected = [], 0
    for name, one in found.items():
        p_value = Coverage.p_value(one.covered, one.seeds)
        rejected += p_value < least
        verdict = "REJECTED" if p_value < least else "covers"
        twin = "found" if Coverage.p_value(one.cut, one.seeds) < least else "missed"
        share = f"{one.covered / one.seeds:.3f}"
        rows.append([name, str(one.seeds), share, f"{p_value:.2g}", verdict, twin])
    header = ["interval", "seeds", "covered", "p-value", "verdict", f"cut to {CUT:g}"]
    print(aligned(header, rows))
    print(
        f"{rejected} of {len(rows)} rejected, each below {least:.2g}: false alarm {FALSE_ALARM:g}"
    )
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main())
