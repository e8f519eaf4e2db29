"""Any plan from frozen states to what is published, and what is refused before it is charged."""

import numpy as np
import pytest
from torch import nn

from fine_tuning_cases import COST, POOLED, RECORDS, STEPS, TinyCase, tiny_case
from noisefloor.errors import BadParameter, UnsupportedModule
from noisefloor.publication.fine_tuning import run_frozen, tokenise
from noisefloor.publication.fine_tuning.methods.head_then_adapters import HeadThenAdaptersPlan
from noisefloor.publication.fine_tuning.methods.planned_training import (
    check_module,
    last_training,
    train_planned,
)
from noisefloor.randomness import SecureSource, SeededSource
from noisefloor.tables import Categories, TextSchema

SCHEMA = TextSchema("a review", {"text": 12}, "mood", Categories(("bad", "good")))
TEXTS = {"text": ["good film", "the plot is dull and the actor is weak"] * (RECORDS // 2)}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TinyCase:
    return tiny_case(tmp_path_factory.mktemp("models"))


def test_an_encoder_that_private_sgd_cannot_train_is_refused_by_its_plan(case: TinyCase) -> None:
    """A layer that couples examples: nothing of the records was needed to see it."""
    check_module(case.plan("full"), case.module(), 12, SecureSource())
    coupled = case.module()
    coupled.layers[0].add_module("norm", nn.BatchNorm1d(4, affine=False))
    with pytest.raises(UnsupportedModule):
        check_module(case.plan("full"), coupled, 12, SecureSource())
    with pytest.raises(BadParameter, match="the one that the plan was made for"):
        check_module(case.plan("full"), TinyCase(case.backbone, 2).module(), 12, SecureSource())


def test_the_last_training_is_published_and_the_first_one_is_in_it(case: TinyCase) -> None:
    plan = HeadThenAdaptersPlan(case.plan("head"), case.plan("lora"), COST)
    assert last_training(plan) is plan.adapters and last_training(plan.head) is plan.head
    assert list(plan.parts) == ["head step", "adapters step"]
    assert plan.in_words.startswith("a head first, then adapters of rank 8 on matrices")
    tokens = tokenise(case.backbone, SCHEMA, TEXTS)
    states = run_frozen(case.backbone, tokens, POOLED, train_layers=1)
    labels, parts = np.arange(RECORDS) % 2, list[str]()
    found = train_planned(
        plan,
        case.module(),
        states,
        labels,
        SeededSource(1, "planned"),
        residuals=lambda vector: parts.append(vector.part),
    )
    assert set(found) == set(plan.adapters.published_shapes)
    assert parts == ["head step"] * (STEPS.steps or 0) + ["adapters step"] * (STEPS.steps or 0)
