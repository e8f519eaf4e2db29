"""Outcomes as metrics: shares with intervals; an attack with prior, bound and closed form."""

import math
from collections.abc import Iterable

from noisefloor.adversary.audit import AttackOutcome, lower_limit, upper_limit
from noisefloor_sim.pipelines.api import Findings, Metric


def attack_metrics(name: str, outcome: AttackOutcome) -> list[Metric]:
    """Return how often an attack was right, beside what it could reach."""
    low, high = outcome.interval
    metrics = [
        Metric(f"attack.{name}.success", outcome.success, low, high, outcome.n),
        Metric(f"attack.{name}.prior", outcome.baseline, n=outcome.n),
    ]
    if outcome.is_covered:
        metrics.append(Metric(f"attack.{name}.bound", outcome.bound, n=outcome.n))
    if outcome.closed_form is not None:
        metrics.append(Metric(f"attack.{name}.closed_form", outcome.closed_form, n=outcome.n))
    return metrics


def game_metrics(name: str, outcome: AttackOutcome) -> list[Metric]:
    """Return the metrics of an attack, the advantage over its prior, and among how many it is."""
    low, high = (end - outcome.baseline for end in outcome.interval)
    return [
        *attack_metrics(name, outcome),
        Metric(f"attack.{name}.advantage", outcome.advantage, low, high, outcome.n),
        Metric(f"attack.{name}.candidates", float(outcome.candidates), n=outcome.n),
    ]


def proportion_metric(name: str, right: int, of: int) -> Metric:
    """Return a share with its 95 % Clopper-Pearson interval."""
    low, high = float(lower_limit(right, of, 0.025)), float(upper_limit(right, of, 0.025))
    return Metric(name, right / of, low, high, of)


_TRUTHS = (
    ("attack.", ".success", ".closed_form"),
    ("fraud.", "bias", "bias_formula"),
    ("training.noise.", "measured", "formula"),
)
"""Metrics with intervals whose truth a formula tells: how they begin, end, and what tells it."""


def intervals_with_truth(metrics: Iterable[Metric]) -> list[tuple[Metric, float]]:
    """Return metrics with an interval, each with its truth, where another metric tells it."""
    by_name = {metric.name: metric for metric in metrics}
    found = []
    for name, metric in by_name.items():
        for begins, ends, formula in _TRUTHS:
            truth = by_name.get(name.removesuffix(ends) + formula)
            is_meant = name.startswith(begins) and name.endswith(ends) and truth is not None
            if is_meant and truth is not None and not math.isnan(metric.low):
                found.append((metric, truth.value))
    return found


def formula_coverage(findings: Iterable[Findings]) -> list[Metric]:
    """Tell the share of intervals that cover what a formula says; nothing where none does."""
    pairs = [pair for found in findings for pair in intervals_with_truth(found.metrics)]
    if not pairs:
        return []
    covered = sum(metric.low <= truth <= metric.high for metric, truth in pairs)
    return [Metric("formula_coverage", covered / len(pairs), n=len(pairs))]
