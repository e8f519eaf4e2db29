"""Every way to publish a classifier: planned without records, proved, released, described."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from labelled_tables import ADD, SCHEMA, SWAP, a_cost, visits
from noisefloor.errors import BadParameter
from noisefloor.privacy import Neighbours
from noisefloor.publication import PublishedModel
from noisefloor.publication.methods import anonymising_first
from noisefloor.publication.methods.logistic import LogisticMethodPlan
from noisefloor.publication.methods.model_plan import ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec, Parameter
from noisefloor.publication.methods.registry import MODEL_METHODS, plan_model
from noisefloor.publication.published_model import classification_scores
from noisefloor.randomness import SeededSource
from noisefloor.tables import Schema

RECORDS = visits(600)
QUICK: dict[str, dict[str, Parameter]] = {
    "logistic": {"steps": 20},
    "private-sgd": {"hidden": 8, "epochs": 2, "batch": 60},
    "anonymising-first": {"epochs": 2},
    "learning-first": {"hidden": 8, "epochs": 2},
    "anonymised-learning": {"hidden": 8, "epochs": 2},
    "synthetic-table": {},
}
"""What makes each method quick."""

MODELS = [name for name in MODEL_METHODS if name != "synthetic-table"]
NOISY = ("learning-first", "anonymised-learning")


@cache
def planned(
    name: str,
    epsilon: float = 1.0,
    neighbours: Neighbours = SWAP,
    *,
    delta: float = 1e-5,
    public: int | None = 600,
    **more: Parameter,
) -> ModelPlan:
    parameters = {"label": "buys", **QUICK[name], **more}
    cost = a_cost(epsilon, neighbours, delta)
    return plan_model(name, ModelSpec.read(SCHEMA, cost, parameters, public))


def accuracy(content: bytes) -> float:
    model = PublishedModel.read(content)
    examples = model.encoding.examples(RECORDS)
    return classification_scores(
        model.predict_classes(examples.features), examples.labels, 2
    ).accuracy


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("name", [name for name in MODEL_METHODS if name not in NOISY])
def test_what_is_proved_is_within_what_is_paid(name: str, neighbours: Neighbours) -> None:
    plan = planned(name, 0.7, neighbours)
    (whole,) = plan.claims
    assert whole.about == "whole model"
    assert whole.claim.proved == plan.proved
    assert whole.claim.verdict == "holds"
    assert 0.69 < plan.proved.epsilon <= 0.7
    assert plan.proved.neighbours is neighbours


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_released_and_described_by_plan_and_file_alone(name: str) -> None:
    plan = planned(name, 5.0)
    content = plan.release(RECORDS, SeededSource(1, "release", name))
    model = PublishedModel.read(content)
    said = plan.describe(content)
    assert said["parameter_count"] == model.parameters
    assert said["widths"][0] == model.encoding.width
    assert said["widths"][-1] == 2
    assert said["label"] == "buys"
    assert said["record"] == "one visit"
    assert json.loads(json.dumps(said)) == said
    assert "hidden" in said["training"] or "steps" in said["training"]
    assert len(model.predict({"age": [17, 70], "country": ["CH", "DE"], "pages": [3, 1]})) == 2
    other = plan.release(RECORDS, SeededSource(2, "release", name))
    assert other != content
    assert plan.describe(other)["training"] == said["training"]


@pytest.mark.parametrize("name", ["logistic", "private-sgd", "anonymising-first"])
def test_with_budget_enough_everything_is_fitted(name: str) -> None:
    """The rule of the table is linear, and noise is small at epsilon 10."""
    more: dict[str, dict[str, Any]] = {
        "private-sgd": {"epochs": 20, "learning_rate": 0.1},
        "anonymising-first": {"epochs": 50, "learning_rate": 1.0},
    }
    plan = planned(name, 10.0, **more.get(name, {}))
    assert accuracy(plan.release(RECORDS, SeededSource(3, "learnt", name))) > 0.9


@pytest.mark.parametrize("name", NOISY)
def test_the_paper_noise_is_paid_as_often_as_there_are_parameters(name: str) -> None:
    plan = planned(name, 1.0, delta=0.0)
    assert plan.proved.epsilon <= 1.0
    whole, one = plan.claims
    assert (whole.about, one.about) == ("whole model", "one parameter")
    assert "not the model's" in one.note
    assert whole.claim.verdict == "holds"
    content = plan.release(RECORDS, SeededSource(4, "count", name))
    count = PublishedModel.read(content).parameters
    clamped = planned(name, 1.0, delta=0.0, variant="clamped", parameter_epsilon=0.01)
    assert 0.0099 * count < clamped.proved.epsilon <= 0.01 * count * (1 + 1e-9)
    whole, one = clamped.claims
    assert one.claim.claimed.epsilon == 0.01
    # A parameter of LearningFirst is what it is claimed to be; one of the other is all of them.
    assert one.claim.verdict == ("holds" if name == "learning-first" else "overclaimed")
    printed = planned(name, 1.0, delta=0.0, variant="paper")
    assert not printed.proved.is_finite
    assert printed.proved.reason
    assert {each.claim.verdict for each in printed.claims} == {"overclaimed"}
    assert accuracy(printed.release(RECORDS, SeededSource(5, "printed", name))) > 0


def test_synthetic_tables_hold_counts_and_rows() -> None:
    from noisefloor.publication import read_tensors

    plan = planned("synthetic-table", 40.0, delta=0.0, tables="label-histograms", rows=77)
    content = plan.release(RECORDS, SeededSource(6, "tables"))
    tensors = read_tensors(content)
    assert {name for name in tensors if name.startswith("rows/")} == {
        f"rows/{name}" for name in SCHEMA.columns
    }
    for name in SCHEMA.columns:
        rows = tensors[f"rows/{name}"]
        assert len(rows) == 77
        assert 0 <= rows.min() and rows.max() < SCHEMA.column(name).size
    # Noise of scale 6 / 40 on each count: off by 5 with a probability of e**-33 each.
    assert np.abs(tensors["tables/age"] - RECORDS.counts(("buys", "age"))).max() < 5
    said = plan.describe(content)
    assert said["tensors"]["rows/age"] == {"dtype": "int32", "shape": [77]}
    assert said["training"]["rows"] == 77


def test_few_cells_make_a_model_of_few_columns() -> None:
    plan = planned("anonymising-first", tables="cells", columns="age")
    content = plan.release(RECORDS, SeededSource(7, "cells"))
    assert PublishedModel.read(content).encoding.columns == ("age",)
    assert plan.describe(content)["learnt_from"] == ["age"]


def test_without_a_size_tables_tell_how_many_there_were() -> None:
    plan = planned("anonymising-first", 20.0, ADD, public=None)
    assert "noisy tables" in plan.settings["rows"]
    assert accuracy(plan.release(RECORDS, SeededSource(8, "size"))) > 0.5


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("private-sgd", {"label": "town"}, "label='<text>' one of age, country, pages, buys"),
        ("private-sgd", {"label": 3}, "label='<text>' one of"),
        ("private-sgd", {"depth": 3}, "parameters='<name>' some of hidden, epochs, batch"),
        ("private-sgd", {"hidden": "9999"}, "hidden='<text>' none, or at most 4 widths"),
        ("private-sgd", {"hidden": "8,8,8,8,8"}, "hidden='<text>' none, or at most 4 widths"),
        ("private-sgd", {"hidden": "8;8"}, "hidden="),
        ("private-sgd", {"hidden": ""}, "hidden="),
        ("private-sgd", {"hidden": -1}, "hidden=-1 none"),
        ("private-sgd", {"hidden": 0}, "hidden=0 none"),
        ("private-sgd", {"hidden": 1.5}, "hidden=1.5 none"),
        ("private-sgd", {"hidden": True}, "hidden=True none"),
        ("private-sgd", {"epochs": 1_000_000}, r"epochs=1000000 a number in \[0.01, 200\]"),
        ("private-sgd", {"epochs": float("nan")}, "epochs='<number>' a number"),
        ("private-sgd", {"epochs": "many"}, "epochs='<text>' a number"),
        ("private-sgd", {"batch": 601}, r"batch=601 a whole number in \[1, 600\]"),
        ("private-sgd", {"epochs": 200, "batch": 1}, "batch=1 so large that at most 20000 steps"),
        ("private-sgd", {"clip": 0}, "clip=0 a number in"),
        ("private-sgd", {"learning_rate": -1.0}, "learning_rate=-1.0 a number in"),
        ("private-sgd", {"size": 0}, "size=0 a whole number in"),
        ("logistic", {"steps": 1 << 30}, r"steps=1073741824 a whole number in \[1, 1000\]"),
        ("logistic", {"epochs": 1}, "parameters='<name>' some of steps, clip"),
        ("anonymising-first", {"tables": "all"}, "tables='<text>' one of label-histograms"),
        ("anonymising-first", {"tables": "cells"}, "columns='<text>' one or several of age"),
        ("anonymising-first", {"tables": "cells", "columns": "buys"}, "columns="),
        ("anonymising-first", {"columns": "age"}, "columns='<text>' left out: only cells"),
        ("anonymising-first", {"rows": 1 << 40}, "rows=1099511627776 a whole number"),
        ("synthetic-table", {"rows": 1 << 22}, "rows=4194304 at most 2097152 for 4 columns"),
        ("synthetic-table", {"hidden": 8}, "parameters='<name>' some of tables"),
        ("learning-first", {"variant": "other"}, "variant='<text>' one of corrected, clamped"),
        ("learning-first", {"epochs": 501}, r"epochs=501 a whole number in \[1, 500\]"),
        ("learning-first", {"parameter_epsilon": 1}, "parameter_epsilon='<number>' left out"),
        ("anonymised-learning", {"clamps": 1}, "clamps=1 true or false"),
        ("anonymised-learning", {"norm": 0}, "norm=0 a number in"),
    ],
)
def test_bad_parameters_are_refused_by_name_and_rule(
    name: str, more: dict[str, Parameter], said: str
) -> None:
    with pytest.raises(BadParameter, match=said) as caught:
        planned(name, **more)
    assert "town" not in str(caught.value) and "many" not in str(caught.value)


@pytest.mark.parametrize("name", ["logistic", "private-sgd"])
def test_a_private_size_has_to_be_declared(name: str) -> None:
    with pytest.raises(BadParameter, match="size='<none>' declared, a whole number"):
        planned(name, 1.0, ADD, public=None)
    assert planned(name, 1.0, ADD, public=None, size=500).spec.size == 500


def test_costs_that_a_method_cannot_keep_to_are_refused() -> None:
    for name in ("logistic", "private-sgd"):
        with pytest.raises(BadParameter, match=r"delta=0\.0 > 0"):
            planned(name, delta=0.0)
    for name in NOISY:
        with pytest.raises(BadParameter, match="record-substitute: batches and thresholds"):
            planned(name, 1.0, ADD)
    with pytest.raises(BadParameter, match="record-add-remove or record-substitute"):
        planned("logistic", 1.0, Neighbours.USER)
    with pytest.raises(BadParameter, match="method='<text>' one of logistic, private-sgd"):
        plan_model("forest", planned("logistic").spec)


def test_torch_is_not_loaded_by_a_plan() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, noisefloor.publication, noisefloor.roles; "
            "print(sorted({'torch', 'opacus', 'sklearn', 'scipy', 'dp_accounting'} "
            "& set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"


def test_the_label_of_the_schema_is_used_where_none_is_named() -> None:
    schema = Schema(SCHEMA.record, SCHEMA.columns, "country")
    assert ModelSpec.read(schema, a_cost(), {}).encoding.label == "country"
    assert ModelSpec.read(schema, a_cost(), {"label": "buys"}).encoding.label == "buys"
    with pytest.raises(BadParameter, match="label='<text>' one of age"):
        ModelSpec.read(SCHEMA, a_cost(), {})


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("private-sgd", {"hidden": "256,256,256,256", "epochs": 60, "batch": 600}),
        ("anonymising-first", {"hidden": "64,64,64,64", "batch": 1}),
        ("learning-first", {"hidden": "64,64,64,64"}),
        (
            "anonymised-learning",
            {"hidden": "64,64,64,64", "batch": 1, "norm": 1e6, "decay": 0.0, "clamps": False},
        ),
    ],
)
def test_no_parameters_make_a_release_fail_once_it_is_paid(
    name: str, more: dict[str, Parameter]
) -> None:
    """A failure would be seen, tell of the records, and be drawn anew for nothing."""
    plan = planned(name, 1.0, learning_rate=10.0, **more)
    with np.errstate(all="ignore"):
        content = plan.release(RECORDS, SeededSource(1, "astray", name))
    assert PublishedModel.read(content).parameters


@pytest.mark.parametrize(("neighbours", "apart"), [(ADD, (1.0, 1.0)), (SWAP, (2**0.5, 2.0))])
def test_the_canary_of_a_fit_moves_no_further_than_rows_and_gradients_can(
    neighbours: Neighbours, apart: tuple[float, float]
) -> None:
    """Rows of features in [0, 1] lie less than two lengths apart; clipped gradients do not."""
    plan = planned("logistic", 1.0, neighbours)
    assert isinstance(plan, LogisticMethodPlan)
    sums, *steps = plan.canary.multipliers
    half = 1 if neighbours is ADD else 2
    noise = plan.plan.multipliers
    assert half / sums == pytest.approx(apart[0] / noise[0])
    assert [half / step for step in steps] == pytest.approx([apart[1] / noise[1]] * 20)


def test_no_more_rows_are_made_than_can_be_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file too large would fail once it is drawn, and be drawn anew for nothing."""
    monkeypatch.setattr(anonymising_first, "MOST_BYTES", 4 * 4 * 100)
    plan = planned("synthetic-table", 5.0, ADD, public=None)
    content = plan.release(RECORDS, SeededSource(1, "too many"))
    assert plan.describe(content)["tensors"]["rows/age"]["shape"] == [100]
