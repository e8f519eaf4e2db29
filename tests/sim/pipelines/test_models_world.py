"""Published models in the world: whose records came, what was released, what was refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from model_worlds import WEEKLY, model_world, run_model_world, run_weekly_world
from noisefloor.errors import BadParameter, BadScenario, BadTable
from noisefloor.publication.published_model import PublishedModel
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines import PIPELINES
from noisefloor_sim.pipelines.models.record_assignment import UserRecordAssignment
from noisefloor_sim.pipelines.models.synthetic_customers import (
    LABEL,
    SCHEMA,
    TRAITS,
    customer_records,
)
from noisefloor_sim.pipelines.releases import NEVER, declared_size
from noisefloor_sim.runs.engine import Engine

METHODS = (
    "plain",
    "logistic",
    "private-sgd",
    "anonymising-first",
    "synthetic-table",
    "learning-first",
    "anonymised-learning",
)


def test_records_follow_their_stated_distribution() -> None:
    """100,000 people: a share has a standard error of 0.0016 at most; 0.01 is 6 of them."""
    records = customer_records(100_000, SeededSource(1, "law").generator())
    for trait in TRAITS:
        counts = np.bincount(records.codes[trait.name], minlength=len(trait.values))
        assert abs(counts[0] - counts[-1]) / 100_000 < 0.01, "cuts are even around the middle"
    assert np.bincount(records.codes["region"]).min() > 16_000
    assert 0.3 < records.codes[LABEL].mean() < 0.4
    higher = records.codes[LABEL][records.codes["income"] == 4].mean()
    assert higher > records.codes[LABEL][records.codes["income"] == 0].mean() + 0.3


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_published_and_scored(method: str) -> None:
    simulated = run_model_world(model_world({"method": method}))
    assert simulated.value("releases.made") == 1
    assert simulated.value("releases.refused") == 0
    accuracy = simulated.metric("accuracy.last")
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert accuracy.n == simulated.pipeline.assignment.is_test.sum()
    assert simulated.value("accuracy.open") > simulated.value("accuracy.majority") + 0.05
    assert simulated.claim("release").claimed.epsilon == 1.0


def test_noise_in_gradients_leaves_more_to_learn_than_noise_in_parameters() -> None:
    good = run_model_world(model_world({"method": "logistic", "epsilon": 8.0}))
    poor = run_model_world(model_world({"method": "learning-first", "epsilon": 8.0}))
    assert good.value("accuracy.last") > good.value("accuracy.majority") + 0.05
    assert poor.value("accuracy.last") < good.value("accuracy.last")


def test_a_test_record_is_in_no_release() -> None:
    simulated = run_weekly_world("logistic")
    holder = simulated.pipeline.holder
    assert len(holder.releases) == 3
    for release in holder.releases:
        assert not (release.owners & simulated.pipeline.assignment.is_test).any()


def test_records_arrive_at_the_first_contact_and_stay() -> None:
    simulated = run_weekly_world("logistic")
    arrivals = simulated.pipeline.arrivals
    came = arrivals.day != NEVER
    assert (arrivals.day >= arrivals.joins)[came].all()
    sizes = [int(one.owners.sum()) for one in simulated.pipeline.holder.releases]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1.5 * sizes[0]
    for before, after in zip(
        simulated.pipeline.holder.releases, simulated.pipeline.holder.releases[1:], strict=False
    ):
        assert (after.owners >= before.owners).all()


def test_the_publisher_refuses_what_the_budget_does_not_cover() -> None:
    simulated = run_weekly_world("logistic")
    assert simulated.value("releases.made") == 3
    assert simulated.value("releases.refused") == 1
    assert simulated.value("spent.debited") == pytest.approx(3.0)
    assert 1.7 < simulated.value("spent.claimed") < simulated.value("spent.budget") == 2.0
    assert simulated.pipeline.holder.refused == [7]
    account = simulated.pipeline.holder.account()
    assert [one.spend_id for one in account.entries("users")] == [
        f"release-{number}" for number in range(3)
    ]


def test_gaussian_releases_cost_less_together_than_added_up() -> None:
    simulated = run_weekly_world("logistic")
    spent = simulated.value("spent.claimed")
    assert simulated.value("spent.together") < spent < 0.7 * simulated.value("spent.proved")
    claim = simulated.claim("all_releases")
    assert claim.claimed.epsilon == pytest.approx(2.0)
    assert claim.proved.epsilon == spent, "what is reported is what the ledger decides by"
    assert claim.verdict == "holds"


def test_releases_without_known_noise_are_added_up() -> None:
    simulated = run_weekly_world("plain")
    assert simulated.pipeline.holder.refused == [5, 7]
    assert simulated.value("spent.claimed") == simulated.value("spent.debited") == 2.0


def test_what_is_published_can_be_read_by_anybody() -> None:
    simulated = run_model_world(model_world({"method": "logistic"}))
    content = simulated.pipeline.holder.releases[0].content
    model = PublishedModel.read(content)
    assert model.encoding.label == LABEL
    table = {name: [SCHEMA.column(name).values[0]] for name in model.encoding.columns}  # type: ignore[union-attr]  # categories
    assert model.predict(table)[0] in ("no", "yes")


@pytest.mark.parametrize("method", ["logistic", "private-sgd", "synthetic-table"])
def test_the_order_of_cohorts_moves_nothing(method: str) -> None:
    scenario = model_world({"method": method})
    here, there = run_model_world(scenario), run_model_world(scenario, [2, 0, 1])
    assert here.pipeline.holder.releases[0].content == there.pipeline.holder.releases[0].content
    assert repr(here.found) == repr(there.found)


def test_more_users_move_nobodys_record() -> None:
    few = UserRecordAssignment.of(model_world())
    more = UserRecordAssignment.of(model_world(population={"users": 1500, "cohort": 256}))
    for name, column in few.records.codes.items():
        assert (more.records.codes[name][: few.users] == column).all()
    assert (more.is_test[: few.users] == few.is_test).all()


def test_where_a_record_may_come_or_go_the_size_is_declared_and_not_counted() -> None:
    block = {"neighbours": "add-remove", "method": "logistic"}
    simulated = run_model_world(
        model_world({**block, "join_over_days": 4, "release_every_days": 2}, **WEEKLY)
    )
    owners = simulated.pipeline.assignment.owners
    first = simulated.pipeline.holder.releases[0]
    assert first.plan.spec.size == declared_size(owners, 1, join_over_days=4)
    assert first.plan.spec.size == round(owners / 2)
    assert simulated.claim("release").verdict == "holds"


def test_a_world_too_small_to_publish_says_so() -> None:
    simulated = run_model_world(
        model_world({"join_over_days": 366}, population={"users": 16, "cohort": 16})
    )
    assert simulated.value("releases.made") == 0
    assert simulated.value("releases.empty") == 1
    assert simulated.found.claims == ()


def test_a_file_of_ones_own_is_published_from(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = [f"{'ab'[i % 2]},{i % 3},{'no yes'.split()[i % 2]}" for i in range(400)]
    path.write_text("\n".join(["kind,level,buys", *rows, ""]))
    columns = {
        "kind": {"categories": ["a", "b"]},
        "level": {"bins": [0, 1, 2, 3]},
        "buys": {"categories": ["no", "yes"]},
    }
    schema = {"record": "one purchase", "columns": columns}
    path.with_suffix(".schema.json").write_text(json.dumps(schema))
    simulated = run_model_world(
        model_world({"source": str(path), "label": "buys", "epsilon": 8.0})
    )
    assert simulated.value("accuracy.last") > 0.95
    assert simulated.value("data.reused") == 1
    wrong = model_world({"source": str(path), "label": "sells"})
    with pytest.raises(BadTable, match=r"own\.csv.*label.*kind, level, buys"):
        UserRecordAssignment.of(wrong)


@pytest.mark.parametrize(
    ("block", "rule"),
    [
        ({"source": "census"}, r"models\.source: Expected synthetic, adult, or a file"),
        ({"source": "mine.csv"}, r"models\.label: Expected the column to be learnt"),
        ({"method": "learning-first", "neighbours": "add-remove"}, r"models\.neighbours"),
        ({"method": "private-sgd", "delta": 0.0}, r"models\.delta: Expected more than 0"),
        ({"tables": "cells"}, r"models\.columns: Expected columns with the tables"),
        ({"hidden": "wide"}, r"models\.hidden"),
        ({"epsilon": 0.0}, r"models\.epsilon"),
        ({"shadows": 4}, r"models\.shadows"),
        ({"layers": 4}, r"models\.layers"),
    ],
)
def test_settings_that_make_no_sense_are_refused(block: dict[str, object], rule: str) -> None:
    with pytest.raises(BadScenario, match=rule):
        model_world(block)


def test_what_a_method_refuses_is_refused_before_a_day_has_passed() -> None:
    with new_run(), pytest.raises(BadParameter, match="hidden"):
        Engine(model_world({"method": "plain", "hidden": "5000"}), PIPELINES)
