"""``noisefloor reproduce supml``: what it lists, what it writes, and what it refuses."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from noisefloor.collection import collecting
from noisefloor.collection.claims import paper_claims
from noisefloor.collection.encoding import PrintedUnified
from noisefloor.errors import BadParameter, BadRunDirectory, MissingData, NoisefloorError
from noisefloor_sim.cli import commands
from noisefloor_sim.papers.supml import figures as supml_figures
from noisefloor_sim.papers.supml import page as supml_page
from noisefloor_sim.papers.supml import reproduction as supml_reproduction
from noisefloor_sim.papers.supml import runs as supml_runs
from noisefloor_sim.papers.supml.figures import variants
from noisefloor_sim.papers.supml.reproduction import seeds_of
from noisefloor_sim.papers.supml.runs import SupmlSetting, run, run_seed
from noisefloor_sim.papers.verdicts import GapTest, Judge, PrintedClaim, Variants

RAW = SupmlSetting("wdbc", train="raw", test="raw")


LISTED = variants()
PRINTED, CORRECTED, OTHER = LISTED


def test_every_claim_has_a_name_of_its_own_and_tests_of_its_data() -> None:
    for claims in LISTED.values():
        assert len({one.key for one in claims}) == len(claims)
        for one in claims:
            names = [test.name for test in one.tests]
            assert len(set(names)) == len(names)
            assert one.data == "both" or {it.data for it in one.settings()} == {one.data}


def test_the_printed_algorithms_come_first_and_the_corrected_ones_answer_the_same() -> None:
    printed = {one.key: one for one in LISTED[PRINTED]}
    assert all(one.is_printed for claim in printed.values() for one in claim.settings())
    assert all(one.form == "prod" for claim in printed.values() for one in claim.settings())
    for claim in LISTED[CORRECTED]:
        assert [it.name for it in claim.tests] == [it.name for it in printed[claim.key].tests]
        assert not all(one.is_printed for one in claim.settings())
    without_classes = {"raw-wdbc", "raw-ionosphere", "pm-wdbc", "pm-ionosphere"}
    assert set(printed) - {one.key for one in LISTED[CORRECTED]} == without_classes


def test_claims_without_an_upper_end_are_tested_without_noise_too() -> None:
    printed = {one.key: one for one in LISTED[PRINTED]}
    for key in ("cross-wdbc", "cross-36-ionosphere"):
        last = [one for one in printed[key].settings() if one.epsilon == 0]
        assert {(one.train, one.test) for one in last} == {("WA", "WA")}
        assert len(last) == 4


@pytest.mark.parametrize(("pair", "records"), [((7, 4), 569), ((2, 3), 351)])
def test_beyond_an_epsilon_noise_changes_nothing(pair: tuple[int, int], records: int) -> None:
    """The chance that a run changes any value, from the mechanism's own weights."""
    k, size = pair
    settled = supml_figures.settled_from(pair, records, chance=1e-4)
    for epsilon, is_settled in ((settled, True), (0.9 * settled, False)):
        keep = PrintedUnified((size,) * (k + 1), epsilon, "symbols").keeps[0] / 2**64
        changed = -math.expm1(10 * records * (k + 1) * math.log(keep))
        assert (changed <= 1e-4) is is_settled


def test_every_setting_makes_a_plan_on_its_data() -> None:
    schema = supml_runs.SOURCES["wdbc"]().schema
    for setting in seeds_of(LISTED, 1):
        plan = setting.plan(schema, 2.1)
        assert plan.weight == 2.1


def test_printed_and_corrected_settings_send_different_classes() -> None:
    schema = supml_runs.SOURCES["wdbc"]().schema
    printed = SupmlSetting("wdbc", "wa", 2, 2, 10.0).plan(schema, 1.0)
    fair = supml_figures.corrected(SupmlSetting("wdbc", "wa", 2, 2, 10.0)).plan(schema, 1.0)
    assert isinstance(printed.train, collecting.PrintedCollector)
    assert printed.train.lies == "symbols"
    assert isinstance(fair.train, collecting.UnifiedCollector)
    for plan, lowest in ((printed, -1.5), (fair, -0.5)):
        assert isinstance(plan.selection, collecting.WeakSelection)
        assert plan.selection.classes.centres(0)[0] == lowest


@pytest.mark.parametrize(
    "setting", [SupmlSetting("wdbc", "best"), SupmlSetting("wdbc", train="magic")]
)
def test_a_setting_that_nobody_knows_is_refused(setting: SupmlSetting) -> None:
    with pytest.raises(BadParameter):
        setting.plan(supml_runs.SOURCES["wdbc"]().schema, 1.0)


def test_wdbc_is_the_papers() -> None:
    source = supml_runs.SOURCES["wdbc"]()
    assert source.records.values.shape == (569, 30)
    assert round(100 * float(np.mean(source.records.labels)), 1) == 62.7


def test_ionosphere_is_the_papers(real_data: Callable[[str], None]) -> None:
    real_data("ionosphere")
    source = supml_runs.SOURCES["ionosphere"]()
    assert source.records.values.shape == (351, 33)  # one of 34 is constant
    assert round(100 * float(np.mean(source.records.labels)), 1) == 64.1


def test_raw_accuracy_is_near_the_printed_one() -> None:
    """Over shuffles it lies between 97.2 and 98.1; one is run."""
    assert 96.8 < run_seed(1, "wdbc", [RAW])[0] < 98.5


@pytest.mark.slow
def test_settings_of_a_seed_share_its_draws_and_workers_change_nothing() -> None:
    other = SupmlSetting("wdbc", "rand", 2, 2, 10.0)
    alone = run({RAW: 1, other: 2}, 1, jobs=1)
    assert alone[RAW] == run_seed(1, "wdbc", [RAW])
    assert alone[other] == run_seed(1, "wdbc", [other]) + run_seed(2, "wdbc", [other])
    calls: list[int] = []
    known = {RAW: alone[RAW], other: alone[other][:1]}
    assert run({RAW: 1, other: 2}, 1, jobs=1, known=known, done=calls.append) == alone
    assert calls == [1]
    assert run({RAW: 1, other: 2}, 1, jobs=2) == alone


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep to WDBC and to what is quick; the curves of the page are left out."""

    def few() -> Variants:
        kept = ("raw-wdbc", "wa-10-wdbc")
        return {name: [one for one in some if one.key in kept] for name, some in LISTED.items()}

    monkeypatch.setattr(supml_reproduction, "variants", few)
    monkeypatch.setattr(supml_reproduction, "SOURCES", {"wdbc": supml_runs.SOURCES["wdbc"]})
    monkeypatch.setattr("noisefloor_sim.papers.supml.page._plots", lambda *_: [])


def test_a_run_directory_holds_table_data_and_page(small: None, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = CliRunner().invoke(
        commands.app, ["reproduce", "supml", "--seeds", "2", "--jobs", "1", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "As printed: of 2 claims 0 are reproduced" in result.output
    assert sorted(path.name for path in out.iterdir()) == [
        *("manifest.json", "report.html", "reproduction.csv", "reproduction.json"),
    ]
    fields = json.loads((out / "reproduction.json").read_text())
    assert fields["verdicts"] == {
        PRINTED: {"raw-wdbc": "undecided", "wa-10-wdbc": "undecided"},
        CORRECTED: {"wa-10-wdbc": "undecided"},
        OTHER: {},
    }
    rows = list(csv.DictReader((out / "reproduction.csv").read_text().splitlines()))
    assert rows[0]["printed"] == "98.04 %"
    assert (rows[0]["variant"], rows[0]["runs"]) == (PRINTED, "2")
    text = (out / "report.html").read_text()
    for words in ("DR.PM and training", "Unprotected", "claims are unprotected"):
        assert words in text
    again = tmp_path / "again"
    for seeds in (3, 2):  # from scratch, then again with what is there
        supml_reproduction.reproduce_supml(
            seeds=seeds, jobs=1, out=again, force=False, resume=True
        )
    for name in ("reproduction.json", "reproduction.csv"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    assert fields["seed"] == json.loads((out / "manifest.json").read_text())["seed"] == 0


def test_worlds_count_on_from_the_seed_that_is_given(small: None, tmp_path: Path) -> None:
    for seed in (0, 1):
        words = ["--seeds", "2", "--jobs", "1", "--seed", str(seed)]
        ran = CliRunner().invoke(
            commands.app, ["reproduce", "supml", *words, "--out", str(tmp_path / str(seed))]
        )
        assert ran.exit_code == 0, ran.output
    zero, one = (
        json.loads((tmp_path / str(seed) / "reproduction.json").read_text()) for seed in (0, 1)
    )
    assert (zero["seed"], one["seed"]) == (0, 1)
    raw = [next(run for run in it["runs"] if run["train"] == "raw") for it in (zero, one)]
    # Worlds 0 and 1, then worlds 1 and 2.
    assert raw[0]["accuracy"][1] == raw[1]["accuracy"][0]
    assert raw[0]["accuracy"] != raw[1]["accuracy"]


def test_titles_of_curves_say_what_the_curves_show_either_way_round() -> None:
    series = {
        str(pair): [SupmlSetting("wdbc", "rand", *pair, epsilon) for epsilon in (10.0, 50.0)]
        for pair in supml_figures.WDBC_PAIRS
    }
    names = list(series)
    first = {one: [70.0 - 9 * place, 71.0 - 9 * place] for place, one in enumerate(names)}

    def title(at_ten: list[str], at_fifty: list[str]) -> str:
        runs = {}
        for place, order in enumerate((at_ten, at_fifty)):
            for name, values in zip(order, first.values(), strict=True):
                runs[series[name][place]] = values
        return supml_page.best_at_the_ends(series, runs, 0.05)

    up, down = names, names[::-1]
    assert title(up, down) == f"{up[0]} is best at epsilon 10, {down[0]} is best at epsilon 50"
    assert title(down, up) == f"{down[0]} is best at epsilon 10, {up[0]} is best at epsilon 50"
    tied = {one: [70.0, 75.0] for settings in series.values() for one in settings}
    assert supml_page.best_at_the_ends(series, tied, 0.05) == (
        "none is clearly best at epsilon 10, none is clearly best at epsilon 50"
    )


def test_the_title_of_the_mixes_says_what_noise_costs_either_way_round() -> None:
    settings = supml_figures.mixed("wdbc", "rand", (7, 4), 10.0)
    cheap, dear = [89.0, 90.0, 91.0], [69.0, 70.0, 71.0]
    runs = dict(zip(settings, ([90.0, 91.0, 92.0], cheap, dear, dear), strict=True))
    said = supml_page.cost_of_noise(settings, runs, 0.05)
    assert said.endswith("in training 1.0 to 1.0, in the test 21.0 to 21.0")
    runs[settings[1]], runs[settings[3]] = runs[settings[3]], runs[settings[1]]
    said = supml_page.cost_of_noise(settings, runs, 0.05)
    assert said.endswith("in training 21.0 to 21.0, in the test 1.0 to 1.0")


@pytest.mark.parametrize(
    ("gaps", "is_ok", "said"),
    [
        ([9.0, 10.0], True, "As printed: of 1 claims 1 are reproduced, 0 are not"),
        ([-9.0, -10.0], False, "0 are reproduced, 1 are not reproduced"),
        ([-9.0, 10.0], None, "0 are not reproduced, 1 are undecided."),
    ],
)
def test_the_page_says_as_expected_only_if_the_claims_say_so(
    gaps: list[float], is_ok: bool | None, said: str
) -> None:
    other = SupmlSetting("wdbc")
    runs = {RAW: gaps * 8, other: [0.0] * 16}
    judge = Judge(2)
    claim = PrintedClaim("one", "wdbc", "w", "p", (GapTest("n", RAW, other),))
    turned = PrintedClaim("one", "wdbc", "w", "p", (GapTest("n", other, RAW),))
    judged = judge.judge_variants({PRINTED: [claim], CORRECTED: [turned]}, runs)
    claims = paper_claims(supml_runs.SOURCES["wdbc"]().schema, count=2, classes=2, epsilon=10.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supml_page, "_plots", lambda *_: [])
        made = supml_page.page_of(
            judged, runs, judge=judge, claims=claims, majority={"wdbc": 62.7}, card=[]
        )
    assert made.verdict_ok is is_ok
    assert said in made.verdict_sentence
    assert "claims are unprotected" in made.verdict_sentence


def test_a_folder_in_the_way_is_not_touched(small: None, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("dear")
    for force in (False, True):
        with pytest.raises(BadRunDirectory):
            supml_reproduction.reproduce_supml(seeds=2, jobs=1, out=tmp_path, force=force)
    assert (tmp_path / "mine").read_text() == "dear"


@pytest.mark.parametrize(("seeds", "jobs"), [(1, 1), (0, 1), (2, 0)])
def test_too_few_seeds_or_workers_are_refused(seeds: int, jobs: int, tmp_path: Path) -> None:
    with pytest.raises(BadParameter):
        supml_reproduction.reproduce_supml(
            seeds=seeds, jobs=jobs, out=tmp_path / "run", force=False
        )


def test_data_that_were_not_fetched_are_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path / "none"))
    with pytest.raises(MissingData, match="noisefloor data fetch ionosphere"):
        supml_reproduction.reproduce_supml(seeds=2, jobs=1, out=tmp_path / "run", force=False)
    assert not (tmp_path / "run").exists()


def test_without_scikit_learn_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(NoisefloorError, match=r"noisefloor\[collection\]"):
        supml_runs.SOURCES["wdbc"]()


def test_worlds_of_another_seed_are_not_taken(small: None, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    for text in ('{"paper": "SUP.ML", "seed": 1, "runs": []}', "{"):
        (out / "reproduction.json").write_text(text)
        with pytest.raises(BadRunDirectory):
            supml_reproduction.reproduce_supml(seeds=2, jobs=1, out=out, force=False, resume=True)
        assert (out / "reproduction.json").read_text() == text
