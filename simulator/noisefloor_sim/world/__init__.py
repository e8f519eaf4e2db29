"""The simulated world: people and their budgets, the network and, where there are any, ads.

``population``, ``budgets`` and ``spending`` are in every world, and so is ``network``.
``behaviour`` (visits, impressions, clicks) and ``tastes`` are there only if a pipeline needs ads.
"""

from noisefloor_sim.world.behaviour import (
    AdWorld,
    DayActivity,
    Visits,
    click_chances,
    draw_clicks,
    draw_pages,
    draw_visits,
)
from noisefloor_sim.world.budgets import BudgetAccount, Exhausted, SpendRecord, in_contact
from noisefloor_sim.world.network import HOUR_S, SimulatedNetwork, Steps, TrafficCounts
from noisefloor_sim.world.population import DEVICES, Cohort, cohort_sizes, make_cohort
from noisefloor_sim.world.spending import SpendingSummary, UserSpending, summarise
from noisefloor_sim.world.tastes import TasteModel

__all__ = [
    "DEVICES",
    "HOUR_S",
    "AdWorld",
    "BudgetAccount",
    "Cohort",
    "DayActivity",
    "Exhausted",
    "SimulatedNetwork",
    "SpendRecord",
    "SpendingSummary",
    "Steps",
    "TasteModel",
    "TrafficCounts",
    "UserSpending",
    "Visits",
    "click_chances",
    "cohort_sizes",
    "draw_clicks",
    "draw_pages",
    "draw_visits",
    "in_contact",
    "make_cohort",
    "summarise",
]
