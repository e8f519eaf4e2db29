"""What an attack came to, as metrics: success with interval, prior, bound and closed form."""

from noisefloor.adversary.audit import AttackOutcome
from noisefloor_sim.pipelines.api import Metric


def attack_metrics(name: str, outcome: AttackOutcome) -> list[Metric]:
    """Tell how often an attack was right, beside what it could reach."""
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
