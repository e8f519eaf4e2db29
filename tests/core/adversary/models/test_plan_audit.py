"""Canaries of plans reach no more than is proved; a plan with too little noise is found out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from labelled_tables import ADD, SCHEMA, SWAP, a_cost
from noisefloor.adversary.models.canary_audit import audit_canary, audit_plan, games_for
from noisefloor.privacy import Neighbours
from noisefloor.publication.methods.canaries import IncrementCanary, ParameterCanary
from noisefloor.publication.methods.gradient_canaries import GradientCanary, NormalCanary
from noisefloor.publication.methods.model_plan import Canary, LogRatios
from noisefloor.publication.methods.model_spec import ModelSpec, Parameter
from noisefloor.publication.methods.registry import plan_model
from noisefloor.publication.networks import LearningFirst
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor.randomness import SeededSource, Source

GAMES = 4_000


def sgd(multiplier: float, neighbours: Neighbours, batch: int = 600) -> GradientCanary:
    plan = SgdPlan(
        examples=600,
        expected_batch=batch,
        steps=10,
        noise_multiplier=multiplier,
        neighbours=neighbours,
    )
    return GradientCanary(plan)


CANARIES: list[tuple[str, Canary, float]] = [
    # mu of the whole game: the root of the steps, over the noise, doubled by substitution.
    ("gradients, all", sgd(4.0, ADD), math.sqrt(10) / 4),
    ("gradients, swapped", sgd(8.0, SWAP), math.sqrt(10) / 4),
    ("releases", NormalCanary((4.0,) * 10, ADD), math.sqrt(10) / 4),
    ("releases, swapped", NormalCanary((8.0,) * 10, SWAP), math.sqrt(10) / 4),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "canary", "mu"), CANARIES, ids=lambda one: str(one)[:20])
def test_scores_of_normal_noise_have_their_closed_form(
    name: str, canary: Canary, mu: float
) -> None:
    """Log-likelihood ratios are normal: mean plus or minus mu**2 / 2, deviation mu.

    With n = 4,000 a mean is off by five standard errors with probability 6e-7.
    """
    inside, outside = canary.scores(GAMES, SeededSource(1, "closed", name))
    error = 5 * mu / math.sqrt(GAMES)
    assert abs(inside.mean() - mu**2 / 2) < error
    assert abs(outside.mean() + mu**2 / 2) < error
    assert 0.9 < inside.std() / mu < 1.1
    # The twin: noise a quarter too small is seen by the same measure.
    assert abs(inside.mean() - (mu / 0.75) ** 2 / 2) > error


def identity(canary: Canary, name: str) -> float:
    """Return how far the mean of e**score on the second input lies from 1, in standard errors."""
    _, outside = canary.scores(GAMES, SeededSource(2, "identity", name))
    weights = np.exp(outside)
    return float(abs(weights.mean() - 1) / (weights.std() / math.sqrt(GAMES)))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "canary"),
    [
        ("sampled", sgd(1.0, ADD, batch=60)),
        ("sampled, swapped", sgd(2.0, SWAP, batch=60)),
        ("parameters", ParameterCanary(LearningFirst(1.0, 20, "corrected"))),
        ("increments", IncrementCanary(0.1, 10)),
        ("increments of many", IncrementCanary(0.02, 5, 8)),
        (
            "tables",
            plan_model(
                "synthetic-table",
                ModelSpec.read(SCHEMA, a_cost(1.0, SWAP, 0.0), {"label": "buys"}),
            ).canary,
        ),
        (
            "gaussian tables",
            plan_model(
                "synthetic-table",
                ModelSpec.read(SCHEMA, a_cost(1.0, ADD, 1e-5), {"label": "buys"}),
            ).canary,
        ),
    ],
)
def test_scores_are_likelihood_ratios(name: str, canary: Canary) -> None:
    """A ratio of two distributions has the mean 1 under the second: n = 4,000, five standard
    errors."""
    assert identity(canary, name) < 5


@pytest.mark.statistical
def test_a_score_that_is_no_likelihood_ratio_is_found() -> None:
    class Wrong(IncrementCanary):
        def scores(self, games: int, source: Source) -> tuple[LogRatios, LogRatios]:
            inside, outside = IncrementCanary.scores(self, games, source)
            return inside + 0.2, outside + 0.2

    assert identity(Wrong(0.1, 10), "wrong") > 5


@pytest.mark.parametrize(
    ("method", "delta", "more"),
    [
        ("logistic", 1e-5, {}),
        ("anonymising-first", 0.0, {"tables": "cells", "columns": "age"}),
        ("anonymised-learning", 0.0, {"epochs": 2}),
        ("learning-first", 0.0, {"hidden": "none"}),
    ],
)
def test_an_audit_stays_below_what_is_proved(
    method: str, delta: float, more: dict[str, Parameter]
) -> None:
    """A bound is wrong with probability 1e-6."""
    spec = ModelSpec.read(SCHEMA, a_cost(2.0, SWAP, delta), {"label": "buys", **more}, 600)
    plan = plan_model(method, spec)
    assert plan.canary is not None
    bound = audit_canary(plan.canary, delta, f"below {method}", games=20_000)
    assert bound.epsilon <= plan.proved.epsilon
    assert (bound.confidence, bound.trials) == (1 - 1e-6, 10_000)
    if method != "learning-first":  # its noise is for all parameters at once: little to see
        assert bound.epsilon > 0.3


def test_too_little_noise_is_found() -> None:
    """The planted fault: noise for a third of the record's reach, under the same proof."""
    honest = NormalCanary((4.0,) * 10, ADD)
    proved = 3.0  # (3, 1e-5) holds at mu = 0.79; the fault has mu = 2.4
    assert audit_canary(honest, 1e-5, "honest", games=20_000).epsilon <= proved
    planted = replace(honest, multipliers=(4.0 / 3,) * 10)
    assert audit_canary(planted, 1e-5, "planted", games=20_000).epsilon > proved


def test_the_paper_noise_is_audited_above_its_claim_and_more_so_with_more_parameters() -> None:
    """LearningFirst as the paper has it claims epsilon 0.1, for each parameter."""
    reached = [
        audit_canary(
            ParameterCanary(LearningFirst(0.1, count, "clamped")), 0.0, f"P {count}", games=4_000
        ).epsilon
        for count in (1, 100, 400)
    ]
    assert reached[0] <= 0.1 < reached[1] < reached[2]


def test_games_are_as_many_as_take_some_seconds() -> None:
    assert games_for(NormalCanary((1.0,), ADD)) == 100_000
    assert games_for(NormalCanary((1.0,) * 1_000, ADD)) == 10_000
    assert games_for(ParameterCanary(LearningFirst(1.0, 1 << 14, "clamped"))) == 500


def test_the_draws_follow_from_the_seed() -> None:
    from noisefloor.randomness import new_run

    canary, found = IncrementCanary(0.2, 5), []
    for _ in range(2):
        with new_run():
            found.append(audit_canary(canary, 0.0, "again", games=2_000))
    assert found[0] == found[1]


EVERY_CANARY: list[Canary] = [
    sgd(4.0, ADD, batch=60),
    NormalCanary((4.0,) * 10, SWAP),
    ParameterCanary(LearningFirst(1.0, 20, "corrected")),
    IncrementCanary(0.1, 10),
    *(
        canary
        for delta in (0.0, 1e-5)
        if (
            canary := plan_model(
                "synthetic-table",
                ModelSpec.read(SCHEMA, a_cost(1.0, SWAP, delta), {"label": "buys"}),
            ).canary
        )
    ),
]


@pytest.mark.parametrize("canary", EVERY_CANARY, ids=lambda one: type(one).__name__)
def test_a_share_of_the_noise_makes_games_easier(canary: Canary) -> None:
    """Half of the noise at least doubles the squared distance: 400 games a side see that.

    Honest means differ by less than five standard errors; the share of 1 is the same game.
    """
    same, weak = canary.with_noise(1.0), canary.with_noise(0.5)
    assert same.text == canary.text and weak.work == canary.work
    name = f"{type(canary).__name__} {canary.work}"
    inside, outside = weak.scores(400, SeededSource(3, "weak", name))
    plain, other = canary.scores(400, SeededSource(3, "plain", name))
    assert (inside - outside).mean() > (plain - other).mean()


def test_an_audit_comes_with_a_null_and_a_planted_fault() -> None:
    """At delta 0 twenty thousand games find noise a quarter too small; each alarm has 1e-6."""
    found = audit_plan(IncrementCanary(1.0, 1), 0.0, "worth", games=40_000)
    assert found.null.epsilon == 0
    assert found.audited.epsilon <= 1 < found.planted.epsilon
    assert found.planted_share == 0.75
    assert found.audited.trials == found.planted.trials == 20_000
    few = audit_plan(IncrementCanary(1.0, 1), 0.0, "few", games=400)
    assert few.planted.epsilon < 1
