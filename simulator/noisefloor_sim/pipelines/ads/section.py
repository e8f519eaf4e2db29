"""What the report shows of the ad pipeline."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.ads.delivery_figures import delivery_figures
from noisefloor_sim.pipelines.ads.fraud_figures import fraud_figures
from noisefloor_sim.pipelines.ads.ledger_tables import ledger_tables
from noisefloor_sim.pipelines.ads.market_figures import market_figures
from noisefloor_sim.pipelines.ads.training_figures import training_figures
from noisefloor_sim.pipelines.base import PointFindings
from noisefloor_sim.pipelines.curves import Axis
from noisefloor_sim.pipelines.figures import attack_plots
from noisefloor_sim.report.spec import Section

USUAL = {
    "pipelines.ads.epsilon": "claimed epsilon of training, and of each request and report",
    "pipelines.ads.training.epsilon": "claimed epsilon of training",
    "pipelines.ads.delivery.epsilon": "claimed epsilon of one request",
}

GAMES = {
    "favourite": "the favourite ad, from one request",
    "favourite_all_days": "the favourite ad, from all fresh requests linked",
    "favourite_reused": "the favourite ad, from all impressions of a day that share a request",
    "topic": "the favourite topic, from one request",
    "topic_all_days": "the favourite topic, from all fresh requests linked",
    "linking": "the other device of the same person, among twenty",
    "rated": "whether an ad is rated, from all training reports",
    "rating": "a rating of 0 or 1, from all training reports",
    "membership": "whether a person took part in training, among 64",
    "activity": "who is busy, from when and how often a device asks",
    "null": "the favourite ad, from a request drawn blindly",
    "planted": "the favourite ad, from a request in the open",
}

_READING = "Measured success lies on its closed form, where there is one, and below the bound."
_READINGS = {
    "favourite_reused": "Showing one request's ad again tells nothing new: the same success as "
    "from one request.",
    "linking": "As if the two devices asked each on their own; devices in contact share requests, "
    "and are safer. " + _READING,
    "activity": "No epsilon speaks of how often a device asks, or when: this lies outside the "
    "guarantee, and no bound is drawn. A constant number of requests is the remedy.",
    "membership": "Among so few people; with more of them a person disappears.",
    "rated": "The adversary even knows the person's taste. " + _READING,
    "null": "The game itself, tried on requests that say nothing: no better than the prior.",
    "planted": "The game itself, tried on requests that say everything: always right.",
}


def section(points: Sequence[PointFindings]) -> Section:
    """Describe prediction, delivery, sales, attacks and what was spent."""
    axis = Axis.of(points, USUAL)
    groups = axis.grouped(points)
    return Section(
        "Advertising without identifiers",
        "Devices keep ratings and taste. They help to train the ads' model with protected "
        "reports, ask for ads with protected requests, and may have their impressions sold by "
        "what they released. Ratings that were held out, and what people truly like, score it.",
        (
            *training_figures(groups, axis),
            *delivery_figures(groups, axis),
            *market_figures(groups, axis),
            *fraud_figures(groups, axis),
            *attack_plots(groups, axis, GAMES, _READINGS, usual=_READING),
            *ledger_tables(groups),
        ),
    )
