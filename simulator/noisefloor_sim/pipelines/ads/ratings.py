"""Which ratings devices train on, which are held out, and whose are scored.

Scoring a model of the ads on held-out ratings, beside what needs no training or no privacy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads import training
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.api import Metric, SimulationContext
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import Cohort, TasteModel, cohort_sizes

MOST_SCORED = 1 << 15
"""Users whose held-out ratings are scored: their error is then known to half a per cent."""

MOST_CELLS = 1 << 24
"""Users times ads that are scored at most: with many ads, fewer users."""


@dataclass(frozen=True, slots=True)
class RatingSplit:
    """Ratings of some users, cut in two.

    Attributes:
        kept: What devices train on and fit their tastes to.
        held_out: What only scoring looks at.
        truth: What is truly liked, of every ad.
    """

    kept: training.Ratings
    held_out: training.Ratings
    truth: training.Ratings


def kept_ratings(scenario: Scenario, tastes: TasteModel, cohort: Cohort) -> training.Ratings:
    """Return the ratings that devices train on and fit their tastes to."""
    user_ratings = tastes.draw_ratings(cohort)
    return training.Ratings(
        user_ratings.rated & ~_held_out(scenario, tastes, cohort), user_ratings.rating
    )


def split_ratings(scenario: Scenario, tastes: TasteModel, cohort: Cohort) -> RatingSplit:
    """Return the ratings that devices train on, those held out, and what is truly liked."""
    user_ratings, back = tastes.draw_ratings(cohort), _held_out(scenario, tastes, cohort)
    return RatingSplit(
        training.Ratings(user_ratings.rated & ~back, user_ratings.rating),
        training.Ratings(user_ratings.rated & back, user_ratings.rating),
        training.Ratings(np.ones_like(user_ratings.rated), tastes.liking(cohort)),
    )


def _held_out(scenario: Scenario, tastes: TasteModel, cohort: Cohort) -> NDArray[np.bool_]:
    """Return which ratings are held back; of a person whom several users share, the same ones."""
    source = SeededSource(scenario.seed, "pipeline", "ads", "held-out")
    share, ads = block_of(scenario).training.held_out, scenario.ad_behaviour.ads
    persons = tastes.persons(cohort)
    if persons is None:
        draw = source.child(cohort.number).generator()
        return np.asarray(draw.random((len(cohort), ads), dtype=np.float32) < share)
    draw = source.child("persons").generator()
    # Row by row, so that the user with the largest number changes no other.
    back = draw.random((int(persons.max(initial=0)) + 1, ads), dtype=np.float32) < share
    return np.asarray(back[persons])


def scored_ratings(scenario: Scenario, context: SimulationContext) -> RatingSplit:
    """Return the ratings of the first users, as many as scoring takes."""
    most = min(MOST_SCORED, max(1, MOST_CELLS // scenario.ad_behaviour.ads))
    parts: list[RatingSplit] = []
    people = scenario.population
    for number in range(len(cohort_sizes(people.users, people.cohort))):
        if number * people.cohort >= most:
            break
        parts.append(split_ratings(scenario, context.ad_world.tastes, context.cohort(number)))
    return RatingSplit(
        _stack([part.kept for part in parts], most),
        _stack([part.held_out for part in parts], most),
        _stack([part.truth for part in parts], most),
    )


def _stack(parts: list[training.Ratings], most: int) -> training.Ratings:
    rated = np.concatenate([part.rated for part in parts])[:most]
    return training.Ratings(rated, np.concatenate([part.rating for part in parts])[:most])


BASELINES = ("item_means", "global_mean", "untrained", "open")
"""Means per ad, one mean for all, factors at random, and ratings in the open."""


ENOUGH = 1 << 13
"""People whose bare ratings settle a model of this size."""


def evaluate(model: training.AdModel, split: RatingSplit, ridge: float) -> list[Metric]:
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
        tastes = training.fit_tastes(made, kept, ridge)
        scores[name] = (
            training.rmse(made, tastes, held_out),
            training.hit_rate(made, tastes, truth),
        )
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


def means_of(kept: training.Ratings, dimension: int) -> training.AdModel:
    """Return the model that predicts each ad's mean for everybody."""
    return training.mean_model(training.item_means(kept), kept.rated.shape[1], dimension)


def open_model(kept: training.Ratings, dimension: int, ridge: float) -> training.AdModel:
    """Return what a server learns that is shown ratings: some thousand people's are enough."""
    # More factors than ads would tell nothing more.
    return training.nonprivate(kept[:ENOUGH], min(dimension, kept.rated.shape[1]), ridge=ridge)


def _baselines(
    model: training.AdModel, kept: training.Ratings, ridge: float
) -> dict[str, training.AdModel]:
    ads, dimension = model.ads, model.dimension
    made = (
        means_of(kept, dimension),
        training.mean_model(training.global_mean(kept), ads, dimension),
        training.random_model(ads, dimension, 0, scale=0.1),
        open_model(kept, dimension, ridge),
    )
    return dict(zip(BASELINES, made, strict=True))
