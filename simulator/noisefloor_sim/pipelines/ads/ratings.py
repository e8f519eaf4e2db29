"""Which ratings devices train on, which are held out, and whose are scored."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.factors import Ratings
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.base import Stage
from noisefloor_sim.population import Cohort, cohort_sizes
from noisefloor_sim.scenario.model import Scenario
from noisefloor_sim.tastes import Tastes

MOST_SCORED = 1 << 15
"""Users whose held-out ratings are scored: their error is then known to half a per cent."""

MOST_CELLS = 1 << 24
"""Users times ads that are scored at most: with many ads, fewer users."""


@dataclass(frozen=True, slots=True)
class Split:
    """Ratings of some users, cut in two.

    Attributes:
        kept: What devices train on and fit their tastes to.
        held_out: What only scoring looks at.
        truth: What is truly liked, of every ad.
    """

    kept: Ratings
    held_out: Ratings
    truth: Ratings


def kept_ratings(scenario: Scenario, tastes: Tastes, cohort: Cohort) -> Ratings:
    """Return the ratings that devices train on and fit their tastes to."""
    held = tastes.hold_ratings(cohort)
    return Ratings(held.rated & ~_held_out(scenario, tastes, cohort), held.rating)


def split_ratings(scenario: Scenario, tastes: Tastes, cohort: Cohort) -> Split:
    """Return the ratings that devices train on, those held out, and what is truly liked."""
    held, back = tastes.hold_ratings(cohort), _held_out(scenario, tastes, cohort)
    return Split(
        Ratings(held.rated & ~back, held.rating),
        Ratings(held.rated & back, held.rating),
        Ratings(np.ones_like(held.rated), tastes.liking(cohort)),
    )


def _held_out(scenario: Scenario, tastes: Tastes, cohort: Cohort) -> NDArray[np.bool_]:
    """Return which ratings are held back; of a person whom several users share, the same ones."""
    source = SeededSource(scenario.seed, "pipeline", "ads", "held-out")
    share, ads = block_of(scenario).training.held_out, scenario.behaviour.ads
    persons = tastes.persons(cohort)
    if persons is None:
        draw = source.child(cohort.number).generator()
        return np.asarray(draw.random((len(cohort), ads), dtype=np.float32) < share)
    draw = source.child("persons").generator()
    # Row by row, so that whoever has the largest number moves nobody.
    back = draw.random((int(persons.max(initial=0)) + 1, ads), dtype=np.float32) < share
    return np.asarray(back[persons])


def scored_ratings(scenario: Scenario, stage: Stage) -> Split:
    """Return the ratings of the first users, as many as scoring takes."""
    most = min(MOST_SCORED, max(1, MOST_CELLS // scenario.behaviour.ads))
    parts: list[Split] = []
    people = scenario.population
    for number in range(len(cohort_sizes(people.users, people.cohort))):
        if number * people.cohort >= most:
            break
        parts.append(split_ratings(scenario, stage.world.tastes, stage.cohort(number)))
    return Split(
        _stack([part.kept for part in parts], most),
        _stack([part.held_out for part in parts], most),
        _stack([part.truth for part in parts], most),
    )


def _stack(parts: list[Ratings], most: int) -> Ratings:
    rated = np.concatenate([part.rated for part in parts])[:most]
    return Ratings(rated, np.concatenate([part.rating for part in parts])[:most])
