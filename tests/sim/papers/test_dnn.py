"""``noisefloor reproduce dnn``: what it lists, what it writes, and what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from noisefloor.errors import BadParameter, BadRunDirectory, MissingData
from noisefloor.privacy import Claim, Guarantee, Neighbours, TrustModel
from noisefloor.publication.networks import NetworkClaim, NetworkTraining
from noisefloor.randomness import SeededSource
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Categories, Schema
from noisefloor_sim.cli import commands
from noisefloor_sim.papers.dnn import methods as dnn_methods
from noisefloor_sim.papers.dnn import reproduction as dnn_reproduction
from noisefloor_sim.papers.dnn.claims import claims
from noisefloor_sim.papers.dnn.figures import (
    FULL,
    QUICK,
    DnnPoint,
    points_of,
    scores_by_point,
    variants,
)
from noisefloor_sim.papers.dnn.methods import BY_KEY, METHODS, DnnPlan, run_point
from noisefloor_sim.papers.dnn.page import page_of, warnings_of, whole_model
from noisefloor_sim.papers.verdicts import NOT, REPRODUCED, UNDECIDED, Judge
from noisefloor_sim.report import Page, Plot

SMALL = DnnPlan(2, (1.0,), NetworkTraining((4,), 0.5, 20, 2))
LONG = NetworkTraining((4,), 0.2, 20, 4)


def table(count: int) -> Records:
    draw = SeededSource(5, "table").generator()
    columns = {name: Categories(("a", "b", "c")) for name in ("one", "two")}
    schema = Schema("a row", columns | {"income": Categories(("<=50K", ">50K"))})
    one, two = (np.array(["a", "b", "c"])[draw.integers(3, size=count)] for _ in range(2))
    income = np.where((one == "a") & (two != "b"), ">50K", "<=50K")
    return Records.of({"one": one, "two": two, "income": income}, schema, "test")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a small table in the place of Adult."""
    records = table(400)

    def adult(*, has_every_column: bool = False) -> Records:
        return records

    dnn_methods._networks.clear()
    monkeypatch.setattr(dnn_methods, "adult", adult)
    monkeypatch.setattr(dnn_reproduction, "adult", adult)
    monkeypatch.setattr(dnn_reproduction, "QUICK", SMALL)
    short = {
        key: replace(one, training=LONG) if one.training else one for key, one in BY_KEY.items()
    }
    monkeypatch.setattr(dnn_methods, "BY_KEY", short)


def test_every_method_has_a_name_of_its_own() -> None:
    assert len(BY_KEY) == len(METHODS) == len({one.title for one in METHODS})


def test_every_reading_is_run() -> None:
    for plan in (FULL, QUICK):
        run = set(points_of(plan))
        claims = [claim for some in variants(plan).values() for claim in some]
        needed = [one for claim in claims for one in claim.settings()]
        assert all((point.method, point.epsilon) in run for point in needed)
        assert len(run) == len(points_of(plan))


def test_a_quick_run_says_what_it_leaves_out() -> None:
    assert warnings_of(FULL) == []
    assert "3 of 10 folds" in warnings_of(QUICK)[0]


def test_the_epsilon_of_the_model_follows_from_what_is_noised() -> None:
    assert BY_KEY["al-clipped"].proved(0.5, 1000) == 500
    assert BY_KEY["al-corrected"].proved(0.5, 1000) == 0.5
    assert math.isinf(BY_KEY["lf-printed"].proved(0.5, 1000))


def test_audits_pass_the_claim_as_printed_and_stay_below_as_corrected(small: None) -> None:
    # Each bound is wrong with probability 1e-6 at most.
    found = {
        (one.method, one.form): one.claim
        for one in claims(SMALL, 50)
        if one.about == "whole model" and one.claim.audited is not None
    }
    assert len(found) == 6
    for (_, form), claim in found.items():
        reached = claim.audited.epsilon if claim.audited else math.nan
        if form in ("corrected", "norm"):
            assert reached <= claim.proved.epsilon
            assert claim.verdict == "holds"
        else:
            assert claim.claimed.epsilon < reached <= claim.proved.epsilon


PRINTED, PER_PARAMETER, WHOLE, *_ = variants(QUICK)


def test_a_printed_mean_may_be_off_by_its_rounding() -> None:
    claim = variants(FULL)[PRINTED][0]
    for plain, verdict in (([0.853, 0.854] * 5, REPRODUCED), ([0.857, 0.858] * 5, NOT)):
        assert Judge(1).judge(claim, {DnnPoint("plain"): plain}).verdict == verdict


def test_every_approach_is_judged_at_the_printed_epsilons_and_apart_when_corrected() -> None:
    listed = variants(FULL)
    for variant, key in (
        (PRINTED, "lf-printed"),
        (PER_PARAMETER, "lf-clamped"),
        (WHOLE, "lf-corrected"),
    ):
        found = [one for one in listed[variant] if one.key.startswith(f"exceeds-{key}")]
        assert [one.settings()[0].epsilon for one in found] == [0.1, 1.0, 10.0, 100.0]
        runs = {DnnPoint(key, 1.0): [0.6, 0.61] * 5, DnnPoint("majority"): [0.7, 0.701] * 5}
        assert Judge(1).judge(found[1], runs).verdict == NOT
        runs[DnnPoint(key, 1.0)] = [0.8, 0.81] * 5
        assert Judge(1).judge(found[1], runs).verdict == REPRODUCED
    assert not any("500" in name for name in variants(QUICK))
    assert any("500" in name for name in listed)


def test_a_network_that_always_says_the_larger_class_exceeds_nothing() -> None:
    (claim, *_) = [one for one in variants(QUICK)[PRINTED] if one.key.startswith("exceeds")]
    runs = {one: [0.75, 0.752, 0.748] for one in claim.settings()}
    assert Judge(9, {"adult": 1e-4}).judge(claim, runs).verdict == UNDECIDED


def claim_of(claimed: float, proved: float) -> NetworkClaim:
    said, shown = (
        Guarantee(one, Neighbours.RECORD_SUBSTITUTE, model=TrustModel.CENTRAL, reason="any")
        for one in (claimed, proved)
    )
    return NetworkClaim("LearningFirst", "printed", "whole model", Claim(said, shown))


def test_what_is_proved_of_the_model_is_taken_from_the_claims() -> None:
    some = [claim_of(1, 1), claim_of(1, math.inf), claim_of(1, 500), claim_of(1, 20)]
    assert whole_model(some, 500) == (
        "Epsilon 1 is claimed of a model of 500 parameters in 4 forms: 1 hold, 1 prove nothing, "
        "2 prove up to epsilon 500."
    )
    assert whole_model(some[:1] * 2, 500).endswith("in 2 forms: 2 hold, 0 prove nothing.")


def test_the_page_says_what_the_runs_show_either_way_round() -> None:
    high, low = [0.8, 0.81] * 5, [0.7, 0.71] * 5

    def page(paper: list[float], larger: list[float], proved: float) -> Page:
        points = [
            DnnPoint(*one, metric)
            for one in points_of(SMALL)
            for metric in ("accuracy", "macro_f1")
        ]
        runs = {one: larger if one.method == "majority" else paper for one in points}
        exceeds = [one for one in variants(SMALL)[PRINTED] if one.key.startswith("exceeds")]
        judged = Judge(9, {"adult": 0.001}).judge_variants({PRINTED: exceeds}, runs)
        claims = [claim_of(1, proved)]
        return page_of(judged, runs, plan=SMALL, claims=claims, parameters=9, card=[])

    def title(made: Page) -> str:
        plot = made.sections[0].items[0]
        assert isinstance(plot, Plot)
        return plot.title

    fine, poor = page(high, low, 1.0), page(low, high, 1.0)
    assert "above the larger class: 2 of 2 at the epsilon of a parameter, 4 of 4" in title(fine)
    assert "above the larger class: 0 of 2 at the epsilon of a parameter, 0 of 4" in title(poor)
    assert (fine.verdict_ok, poor.verdict_ok) == (True, False)
    assert "3 are reproduced" in fine.verdict_sentence
    assert "3 are not reproduced" in poor.verdict_sentence
    assert page(high, low, 9.0).verdict_ok is False  # the figures come out, the epsilon does not
    assert page([0.6, 0.8] * 5, low, 1.0).verdict_ok is None


def test_scores_are_sorted_by_fold() -> None:
    runs = scores_by_point({("a", 1.0, 1): (0.2, 0.4), ("a", 1.0, 0): (0.1, 0.3)})
    assert runs[DnnPoint("a", 1.0)] == [0.1, 0.2]
    assert runs[DnnPoint("a", 1.0, "macro_f1")] == [0.3, 0.4]


@pytest.mark.parametrize("key", list(BY_KEY))
def test_every_method_runs_and_repeats_itself(key: str, small: None) -> None:
    first = run_point(key, 1.0, 0, SMALL)
    assert first == run_point(key, 1.0, 0, SMALL)
    assert 0 <= first.accuracy <= 1
    assert first.n == 40


def test_shuffled_labels_belong_to_other_records(small: None) -> None:
    plain = dnn_methods.fold_of(0, SMALL)
    shuffled = dnn_methods.fold_of(0, replace(SMALL, is_shuffled=True))
    assert (plain.train.features == shuffled.train.features).all()
    both = [np.concatenate([one.train.labels, one.held_out.labels]) for one in (plain, shuffled)]
    assert (both[0] != both[1]).any()
    assert both[0].sum() == both[1].sum()


def test_nothing_is_reproduced_from_shuffled_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten folds; the twin keeps its labels. A verdict is wrong with probability 1e-3 over all."""
    records = table(2_000)
    monkeypatch.setattr(dnn_methods, "adult", lambda has_every_column: records)
    few = ("plain", "majority", "af-histograms")
    plan = DnnPlan(10, (10.0,), NetworkTraining((4,), 0.5, 20, 3))
    for is_shuffled in (True, False):
        chosen = replace(plan, is_shuffled=is_shuffled)
        found = {
            (key, epsilon, place): (reached.accuracy, reached.macro_f1)
            for place in range(plan.folds)
            for key, epsilon in points_of(plan)
            if key in few
            for reached in [run_point(key, epsilon, place, chosen)]
        }
        listed = {
            PRINTED: [
                one
                for one in variants(plan)[PRINTED]
                if all(point.method in few for point in one.settings())
            ]
        }
        judge = Judge(len(listed[PRINTED]), {"adult": 0.005}, overlap=1 / 9, largest=1)
        judged = judge.judge_variants(listed, scores_by_point(found))
        verdicts = {one.claim.key: one.verdict for one in judged[PRINTED]}
        assert (verdicts["exceeds-af-histograms-10"] == REPRODUCED) is not is_shuffled
        assert (REPRODUCED in verdicts.values()) is not is_shuffled


@pytest.mark.slow
def test_a_run_directory_holds_table_data_and_page(small: None, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = CliRunner().invoke(
        commands.app, ["reproduce", "dnn", "--quick", "--jobs", "1", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "As printed: of 5 claims" in result.output
    assert "forms: 2 hold, 2 prove nothing, 2 prove up to epsilon" in result.output
    first = json.loads((out / "reproduction.json").read_text())
    assert {name: list(some) for name, some in first["verdicts"].items()} == {
        name: [one.key for one in some] for name, some in variants(SMALL).items()
    }
    page = (out / "report.html").read_text()
    assert "Not as expected" in page
    assert "What is claimed in numbers" in page
    assert "AnonymizedLearning, epsilon of the model" in page
    again = tmp_path / "again"
    dnn_reproduction.reproduce_dnn(quick=True, jobs=1, out=again, force=False, seed=1)
    for name in ("reproduction.json", "reproduction.csv"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    other, words = tmp_path / "other", ["--quick", "--jobs", "1", "--seed", "2"]
    result = CliRunner().invoke(commands.app, ["reproduce", "dnn", *words, "--out", str(other)])
    assert result.exit_code == 0, result.output
    found = json.loads((other / "reproduction.json").read_text())
    assert (first["seed"], found["seed"]) == (1, 2)
    assert json.loads((other / "manifest.json").read_text())["seed"] == 2
    assert found["runs"] != first["runs"]


def test_a_folder_in_the_way_is_not_touched(small: None, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("dear")
    for force in (False, True):
        with pytest.raises(BadRunDirectory):
            dnn_reproduction.reproduce_dnn(quick=True, jobs=1, out=tmp_path, force=force)
    assert (tmp_path / "mine").read_text() == "dear"


def test_no_workers_are_refused(small: None, tmp_path: Path) -> None:
    with pytest.raises(BadParameter):
        dnn_reproduction.reproduce_dnn(quick=True, jobs=0, out=tmp_path / "run", force=False)


def test_a_negative_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"Expected seed=-1 in \[0, 4294967296\]\."):
        dnn_reproduction.reproduce_dnn(
            quick=True, jobs=1, out=tmp_path / "run", force=False, seed=-1
        )


def test_data_that_were_not_fetched_are_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dnn_methods.adult.cache_clear()
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    with pytest.raises(MissingData, match="noisefloor data fetch adult"):
        dnn_reproduction.reproduce_dnn(quick=True, jobs=1, out=tmp_path / "run", force=False)
    assert not (tmp_path / "run").exists()
