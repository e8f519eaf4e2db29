"""Every way to ask for an ad, at the epsilon of this point, for score rows of this world."""

import numpy as np

from noisefloor.ads.delivery import Choice
from noisefloor.ads.utility import utility_of
from noisefloor.errors import BadParameter
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import DeliveryPhase, delivery_of
from noisefloor_sim.pipelines.base import Metric, Stage

ROWS = 256
"""Users whose scores are weighed by exact laws: enough for two digits."""

MOST_ADS = 1_000
"""Ads beyond which exact laws would take longer than the world itself."""


def choice_metrics(delivery: DeliveryPhase, stage: Stage) -> list[Metric]:
    """Return how often the best ad is shown, and the mean score shown, by each choice."""
    scenario = delivery.scenario
    if scenario.behaviour.ads > MOST_ADS:
        return []
    block = block_of(scenario)
    rows = delivery.scores(stage.world, stage.cohort(0))[:ROWS].astype(np.float64)
    metrics = [Metric("utility.epsilon", block.request_epsilon, n=len(rows))]
    for choice in Choice:
        if choice in (Choice.PRINTED, Choice.EXACT):
            continue
        try:
            asked = delivery_of(scenario, choice)
        except BadParameter:
            continue  # this choice cannot be had at this epsilon, with so many ads
        found = utility_of(asked, rows)
        score = found.expected_score / block.delivery.score_range
        metrics += [
            Metric(f"utility.top_one.{choice.value}", found.top_one, n=len(rows)),
            Metric(f"utility.score.{choice.value}", score, n=len(rows)),
        ]
    return metrics
