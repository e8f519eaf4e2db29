"""Every way to ask for an ad, weighed by exact distributions with one model: one without errors.

Users score ads by what they truly like. So the mechanism alone makes the difference, between the
paper's and the corrected one as between any two, and rows do not depend on what was trained.
"""

from collections.abc import Iterator

import numpy as np

from noisefloor.ads.delivery import AdDelivery, AdSelection, utility_of
from noisefloor.adversary.ads import RequestGame
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.candidates import CandidateProfiles
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.request_distribution import RequestDistribution
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.scenario import Scenario

ROWS = 256
"""Users whose likings are weighed by exact distributions: enough for two digits."""

MOST_ADS = 1_000
"""Ads beyond which exact distributions would take longer than the world itself."""


def choice_metrics(scenario: Scenario, context: SimulationContext) -> list[Metric]:
    """Return what each choice shows, proves and gives away, at the epsilon of a request."""
    if scenario.ad_behaviour.ads > MOST_ADS:
        return []
    block, people = block_of(scenario), CandidateProfiles.of(scenario, context)
    span = block.delivery.score_range
    rows = span * context.ad_world.tastes.liking(context.cohort(0))[:ROWS].astype(np.float64)
    metrics = [Metric("utility.epsilon", block.request_epsilon, n=len(rows))]
    for choice in AdSelection:
        if choice is AdSelection.EXACT:
            continue
        try:
            asked = delivery_of(scenario, choice)
        except BadParameter:
            continue  # this choice cannot be had at this epsilon and number of ads
        metrics += _weighed(asked, rows, span * people.liking)
    return metrics


def _weighed(asked: AdDelivery, rows: Floats, candidates: Floats) -> Iterator[Metric]:
    """Yield what is shown of the ads that rows like, and how often a candidate is named."""
    found, name = utility_of(asked, rows), asked.choice.value
    proved = asked.guarantee(Neighbours.USER).epsilon
    yield Metric(f"utility.top_one.{name}", found.top_one, n=len(rows))
    yield Metric(f"utility.score.{name}", found.expected_score / asked.high, n=len(rows))
    yield Metric(f"utility.proved.{name}", proved, n=len(rows))
    # Slates are too many to list in any world of the usual size.
    if not asked.is_slate and len(candidates) > 1:
        success = RequestGame(RequestDistribution(asked), candidates).closed_form
        if success is not None:
            yield Metric(f"utility.favourite.{name}", success, n=len(candidates))
