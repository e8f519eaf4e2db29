"""Scoring a model of the ads on held-out ratings, beside what needs no training or no privacy."""

import numpy as np

from noisefloor.ads.baselines import global_mean, item_means, mean_model, nonprivate
from noisefloor.ads.evaluation import hit_rate, rmse
from noisefloor.ads.factors import AdModel, Ratings, fit_tastes, random_model
from noisefloor_sim.pipelines.ads.ratings import Split
from noisefloor_sim.pipelines.base import Metric

BASELINES = ("item_means", "global_mean", "untrained", "open")
"""Means per ad, one mean for all, factors at random, and ratings in the open."""


ENOUGH = 1 << 13
"""People whose bare ratings settle a model of this size."""


def evaluate(model: AdModel, split: Split, ridge: float) -> list[Metric]:
    """Return error and hits of the model and of its baselines, and by how much it leads.

    Devices fit their tastes to the ratings that were kept. The error is that of held-out ratings;
    a hit is a user whose best ad is the one that is predicted to be. Where nobody rates anything
    there is nothing to score.
    """
    kept, held_out, truth = split.kept, split.held_out, split.truth
    count = int(np.count_nonzero(held_out.rated))
    if not count or not kept.rated.any():
        return []
    metrics = []
    models = {"": model} | {
        f".{name}": made for name, made in _baselines(model, kept, ridge).items()
    }
    scores = {}
    for name, made in models.items():
        tastes = fit_tastes(made, kept, ridge)
        scores[name] = rmse(made, tastes, held_out), hit_rate(made, tastes, truth)
        metrics += [
            Metric(f"rmse{name}", scores[name][0], n=count),
            Metric(f"hits{name}", scores[name][1], n=len(truth)),
        ]
    lead = scores[".item_means"][0] - scores[""][0]
    return [
        *metrics,
        Metric("rmse_lead", lead, n=len(truth)),
        Metric("hits_lead", scores[""][1] - scores[".item_means"][1], n=len(truth)),
        Metric("rmse_lead_untrained", scores[".untrained"][0] - scores[""][0], n=len(truth)),
        Metric("hits_lead_untrained", scores[""][1] - scores[".untrained"][1], n=len(truth)),
    ]


def means_of(kept: Ratings, dimension: int) -> AdModel:
    """Return the model that predicts each ad's mean for everybody."""
    return mean_model(item_means(kept), kept.rated.shape[1], dimension)


def open_model(kept: Ratings, dimension: int, ridge: float) -> AdModel:
    """Return what a server learns that is shown ratings: some thousand people's are enough."""
    # More factors than ads would tell nothing more.
    return nonprivate(kept[:ENOUGH], min(dimension, kept.rated.shape[1]), ridge=ridge)


def _baselines(model: AdModel, kept: Ratings, ridge: float) -> dict[str, AdModel]:
    ads, dimension = model.ads, model.dimension
    made = (
        means_of(kept, dimension),
        mean_model(global_mean(kept), ads, dimension),
        random_model(ads, dimension, 0, scale=0.1),
        open_model(kept, dimension, ridge),
    )
    return dict(zip(BASELINES, made, strict=True))
