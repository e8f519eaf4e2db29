"""Outcomes as metrics: shares with intervals; an attack with prior, bound and closed form."""

from noisefloor.adversary.audit import AttackOutcome, lower_limit, upper_limit
from noisefloor_sim.pipelines.api import Metric


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
