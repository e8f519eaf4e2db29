"""``noisefloor reproduce lowrank``: what it lists, what it judges, and what it refuses."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from forked_children import FORKS
from noisefloor.errors import BadParameter, BadRunDirectory, MissingData
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import backbone as backbones
from noisefloor.publication.fine_tuning.methods import EncoderShapes, FineTuningPlan
from noisefloor_sim.cli import commands
from noisefloor_sim.papers import cell_store, verdicts
from noisefloor_sim.papers.lowrank import (
    auditing,
    plans,
    printed,
    reproduce_lowrank,
    training,
)
from noisefloor_sim.papers.lowrank.auditing import proved_as_printed
from noisefloor_sim.papers.lowrank.claims import (
    JOINT_VARIANT,
    PRINTED_VARIANT,
    ClipPoint,
    LowRankRise,
    empirical_variants,
)
from noisefloor_sim.papers.lowrank.computed import privacy_claims, table_claims, top_share
from noisefloor_sim.papers.lowrank.plans import (
    FACTORS,
    FULL,
    QUICK,
    LowRankCell,
    LowRankPlan,
    audits_of,
    cells_of,
    settings_of,
)
from noisefloor_sim.papers.lowrank.rank_maps import printed_map
from noisefloor_sim.papers.lowrank.results import rank_correlation, runs_of
from noisefloor_sim.papers.verdicts import NOT, REPRODUCED, UNDECIDED, Judge
from noisefloor_sim.report.readings import true_readings
from tiny_backbones import write_tiny_bert

TINY = replace(
    QUICK,
    records=0,
    steps=1,
    head_steps=2,
    epsilons=(2.0,),
    rgp_ranks=(8,),
    lora_ranks=(32,),
    sparsities=(0.0, 0.5),
    audited=(2.0,),
    games=400,
    listed=22,
)
WORDS = ("good", "great", "fine", "warm"), ("bad", "poor", "dull", "cold")


@pytest.mark.parametrize("plan", [FULL, QUICK, TINY])
def test_every_claim_is_about_cells_that_are_run(plan: LowRankPlan) -> None:
    cells = cells_of(plan)
    assert len({one.key for one in cells}) == len(cells)
    for claims in empirical_variants(plan).values():
        for setting in (one for claim in claims for one in claim.settings()):
            if isinstance(setting, LowRankRise):
                assert {setting.high, setting.high.at(setting.low)} <= set(cells)
            elif not isinstance(setting, ClipPoint):
                assert setting in cells


def test_the_grid_is_that_of_the_paper() -> None:
    cells = [one for one in cells_of(FULL) if one.kind == "training" and not one.split]
    grid = {(one.rank, one.sparsity) for one in cells if one.method == "rgp" and one.epsilon == 2}
    assert grid == set(printed.TABLE_2)
    names = {one.title for one in cells}
    methods = {"DP-SGD", "Sparse DP-SGD", "RGP", "LoRA", "Ours(RGP)", "Ours(LoRA)"}
    assert names == {*methods, "N.P.", "Private head"}
    assert {one.epsilon for one in cells if one.title in methods} == set(printed.EPSILONS)
    splits = {one.split for one in cells_of(FULL) if one.method == "head"}
    assert splits == {0, 1, 2, 3, 4}


def test_masks_and_clipping_make_the_methods_of_the_engine() -> None:
    ours = LowRankCell("rgp", 2.0, 8, 0.5, "printed")
    assert (ours.engine_method, replace(ours, sparsity=0.0).engine_method) == (
        "combined-rgp",
        "rgp",
    )
    settings = settings_of(ours, FULL, 6_824)
    assert (settings.clipping, settings.batch, settings.rank) == ("printed", 1_365, 8)
    plain = settings_of(plans.PLAIN, FULL, 6_824)
    assert (plain.clipping, plain.batch, plain.steps) == ("joint", 68, 400)


def test_the_printed_tables_contradict_the_printed_text_where_they_do() -> None:
    judged = {one.key: Judge(1).judge(one, {}).verdict for one in table_claims()}
    wrong = {key for key, verdict in judged.items() if verdict == NOT}
    assert wrong == {"text-gain", "text-monotone", "text-no-gain"}
    assert all(verdict == REPRODUCED for key, verdict in judged.items() if key not in wrong)
    gains = next(one for one in table_claims() if one.key == "text-gain").tests
    values = [one.value for one in Judge(1).judge(table_claims()[0], {}).results]
    assert values == pytest.approx([1.5, 1.9])
    assert len(gains) == 2
    assert verdicts.tests_in({"any": table_claims()}) == 0


@pytest.mark.parametrize(
    ("audited", "proved", "verdict"),
    [(4.2, 850.0, NOT), (1.0, 850.0, UNDECIDED), (0.5, 2.0, REPRODUCED), (3.0, None, NOT)],
)
def test_a_claimed_epsilon_is_decided_by_audit_and_proof(
    audited: float, proved: float | None, verdict: str
) -> None:
    cell = audits_of(TINY)[0]
    found = {"audited": audited, "proved": proved, "groups": 145}
    claim = privacy_claims({cell: found | {"sigma_rdp": 1.866, "sigma_script": 1.87}})
    judged = {one.key: Judge(1).judge(one, {}).verdict for one in claim}
    assert judged[f"epsilon-{cell.key}"] == verdict
    assert (judged["sigma"], judged["size"]) == (REPRODUCED, NOT)
    assert (judged["delta-sst2"], judged["delta-qnli"]) == (REPRODUCED, NOT)


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_sigma_by_whole_orders_is_the_scripts_and_all_orders_need_no_more(epsilon: float) -> None:
    whole = auditing.whole_order_sigma(epsilon)
    assert float(f"{whole:.3g}") == printed.SIGMAS[epsilon]
    assert 0.99 * whole < auditing.sigma(epsilon, "rdp") <= whole * (1 + 1e-4)


def test_a_training_as_printed_proves_what_an_engine_with_so_many_groups_proves() -> None:
    cost = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
    shapes, cell = EncoderShapes.bert(1, 32, 64), LowRankCell("lora", 2.0, 8, 0.0, "printed")
    settings = settings_of(cell, FULL, 1_000)
    plan = FineTuningPlan.of("lora", shapes, cost, 1_000, settings, noise_multiplier=2.0)
    proved = proved_as_printed(cell, FULL, 1_000, 2.0, 13)
    assert proved == pytest.approx(plan.proved.epsilon)
    assert proved > plan.claimed.epsilon


def found_with(rights: dict[LowRankCell, str]) -> dict[LowRankCell, dict[str, object]]:
    found: dict[LowRankCell, dict[str, object]] = {
        one: {"right": "10" * 500} for one in cells_of(TINY) if one.kind == "training"
    }
    found[FACTORS] = {"unmasked": [0.5] * 30 + [1.0] * 30, "masked": [1.0] * 60}
    return found | {cell: {"right": right} for cell, right in rights.items()}


def test_gaps_are_judged_text_by_text_and_apart_for_each_clipping() -> None:
    ours = replace(plans.OURS_RGP, clipping="printed")
    variants = empirical_variants(TINY)
    judge = Judge(verdicts.tests_in(variants), {"texts": 3.2}, largest=100)
    near = "10" * 490 + "0" * 20  # 1 point below the others
    runs = runs_of(found_with({ours: "1" * 1_000, plans.OURS_LORA: near}), TINY)
    judged = judge.judge_variants(variants, runs)
    printed_one, joint = (
        {one.claim.key: one for one in judged[name]} for name in (PRINTED_VARIANT, JOINT_VARIANT)
    )
    assert printed_one["ours-rgp"].verdict == REPRODUCED
    assert printed_one["ours-rgp"].deciding.value == 50
    assert joint["ours-rgp"].verdict == NOT
    assert joint["ours-lora"].verdict == UNDECIDED
    assert printed_one["up-to-3"].verdict == NOT
    assert printed_one["listing"].verdict == REPRODUCED
    assert printed_one["np"].verdict == NOT


def test_nothing_is_reproduced_of_methods_that_are_all_alike() -> None:
    """The twin of the above: identical cells show no order, and equality alone."""
    variants = empirical_variants(TINY)
    judge = Judge(verdicts.tests_in(variants), {"texts": 3.2}, largest=100)
    judged = judge.judge_variants(variants, runs_of(found_with({}), TINY))
    reproduced = {one.claim.key for one in judged[JOINT_VARIANT] if one.verdict == REPRODUCED}
    orders = {"over-dpsgd-rgp", "over-dpsgd-lora", "ours-rgp", "lora-over-rgp", "np", "counts"}
    assert not reproduced & orders
    assert "ours-lora" in reproduced


def test_a_heat_map_is_darkest_at_the_best_cell_and_says_which_it_is() -> None:
    table = printed_map("rgp", printed.TABLE_2)
    assert true_readings(table) == ["Best at k = 4, p = 0.7 (88.7), worst at k = 2, p = 0 (83.9)."]
    assert table.shades[-1][2] == 1
    assert table.shades[0][1] == 0
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == -1
    assert np.isnan(rank_correlation([1, 1, 1], [3, 2, 1]))


def test_a_matrix_of_rank_one_has_all_its_energy_in_one_direction() -> None:
    assert top_share(np.outer(np.arange(1.0, 21), np.ones(20))) == pytest.approx(1)
    assert top_share(np.eye(20)) == pytest.approx(0.1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write made-up reviews with a schema, and a tiny encoder beside them."""
    folder = tmp_path_factory.mktemp("texts")
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    write_tiny_bert(folder / "tiny", **sizes)
    rows = [
        f"the {WORDS[row % 2][row // 2 % 4]} film was {WORDS[row % 2][row // 8 % 4]}\t{row % 2}"
        for row in range(110)
    ]
    (folder / "own.tsv").write_text("\n".join(("text\tlabel", *rows, "")))
    schema = {"text": {"text": 8}, "label": {"categories": [1, 0]}}
    document = {"record": "one review", "columns": schema, "label": "label"}
    (folder / "own.schema.json").write_text(json.dumps(document))
    return folder


@pytest.fixture
def tiny(texts: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the tiny plan on the tiny encoder; return the file of texts."""
    monkeypatch.setattr(plans, "QUICK", TINY)
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(texts / "tiny"))
    backbones._loaded.cache_clear()
    return str(texts / "own.tsv")


def fill_caches(examples: int) -> None:
    """Search for noise before the fork, so that child and parent search once."""
    for cell in (plans.LORA, plans.HEAD):
        settings = settings_of(cell, TINY, examples)
        training._noise(2.0, (settings.batch or examples) / examples, settings.steps or 1)
    for method in ("rdp", "pld"):
        auditing.sigma(2.0, method)


def killed_after(count: int, data: str, out: Path) -> int:
    """Run in a child that is killed while it writes one more cell; return its signal."""
    child = os.fork()
    if child == 0:
        written, move = [], os.replace

        def replace_or_die(draft: Path, path: Path) -> None:
            if path.parent.name == cell_store.CELLS:
                written.append(path)
            if len(written) > count:
                os.kill(os.getpid(), signal.SIGKILL)
            move(draft, path)

        cell_store.os.replace = replace_or_die  # type: ignore[attr-defined]  # the child's own
        try:
            reproduce_lowrank(quick=True, jobs=1, out=out, force=False, data=data)
        finally:
            os._exit(1)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


@FORKS
@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tiny: str, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    words = ["reproduce", "lowrank", "--quick", "--jobs", "1", "--data", tiny, "--out"]
    fill_caches(88)
    assert killed_after(7, tiny, broken) == signal.SIGKILL
    kept = sorted((broken / cell_store.CELLS).glob("*.json"))
    assert len(kept) == 7
    with pytest.raises(BadRunDirectory, match="exists already"):
        reproduce_lowrank(quick=True, jobs=1, out=broken, force=False, data=tiny)
    with pytest.raises(BadRunDirectory, match="field plan is of another run"):
        reproduce_lowrank(
            quick=True, jobs=1, out=broken, force=False, resume=True, data=tiny, seed=2
        )
    stamps = [path.stat().st_mtime_ns for path in kept]
    results = [
        CliRunner().invoke(commands.app, [*words, str(out), *more])
        for out, more in ((broken, ["--resume"]), (whole, []))
    ]
    assert [one.exit_code for one in results] == [0, 0], results[0].output
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    for name in ("reproduction.json", "reproduction.csv", "report.html"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    check_finished(whole, results[1].output)


def check_finished(out: Path, printed_words: str) -> None:
    assert "Clipping as printed in 145 groups" in printed_words
    assert "Quick run" in printed_words
    assert not (out / cell_store.FROZEN).exists()
    found = json.loads((out / "reproduction.json").read_text())
    assert len(found["cells"]) == len(cells_of(TINY))
    assert found["verdicts"]["The printed tables against the printed text"]
    page = (out / "report.html").read_text()
    for words in (
        "Rank by sparsity at epsilon 2",
        "Accuracy over epsilon",
        "rgba(0,114,178,0.60)",
    ):
        assert words in page


def test_missing_data_or_backbone_are_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    monkeypatch.delenv("NOISEFLOOR_BACKBONE", raising=False)
    with pytest.raises(MissingData, match="noisefloor data fetch rotten-tomatoes"):
        reproduce_lowrank(quick=True, jobs=1, out=tmp_path / "run", force=False)
    assert not (tmp_path / "run").exists()


def test_a_backbone_that_is_too_narrow_is_refused_before_anything_is_written(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_BACKBONE", str(write_tiny_bert(tmp_path / "narrow")))
    with pytest.raises(BadParameter, match=r"Expected rank=32 <= 16, the smaller side"):
        reproduce_lowrank(quick=True, jobs=1, out=tmp_path / "run", force=False, data=tiny)
    assert not (tmp_path / "run").exists()


def test_few_texts_and_no_workers_are_refused(tiny: str, tmp_path: Path) -> None:
    lines = Path(tiny).read_text().splitlines()[:50]
    few = tmp_path / "few.tsv"
    few.write_text("\n".join([*lines, ""]))
    schema = Path(tiny).with_name("own.schema.json").read_text()
    (tmp_path / "few.schema.json").write_text(schema)
    with pytest.raises(BadParameter, match="at least 100 rows"):
        reproduce_lowrank(quick=True, jobs=1, out=tmp_path / "a", force=False, data=str(few))
    with pytest.raises(BadParameter, match="jobs"):
        reproduce_lowrank(quick=True, jobs=0, out=tmp_path / "a", force=False, data=tiny)
    assert not (tmp_path / "a").exists()
