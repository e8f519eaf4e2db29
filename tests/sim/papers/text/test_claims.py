"""Claims from runs: which cells they are about, and what is judged of made-up cells."""

import math
from dataclasses import replace
from typing import Any

import pytest

from noisefloor_sim.papers.text import claims, plans
from noisefloor_sim.papers.text.plans import (
    FULL,
    ORIGINAL,
    QUICK,
    VARIANTS,
    TextCell,
    TextRunPlan,
    cell_at,
    cells_of,
    splits_of,
)
from noisefloor_sim.papers.text.results import GainFigure, TextFigure, privacy_loss, runs_of
from noisefloor_sim.papers.text.score_tables import score_table
from noisefloor_sim.papers.verdicts import NOT, REPRODUCED, UNDECIDED
from noisefloor_sim.report.readings import true_readings
from text_paper_cases import MANY, TINY, found_with, scores, verdicts_of


@pytest.mark.parametrize("plan", [FULL, QUICK, TINY], ids=["full", "quick", "tiny"])
def test_every_claim_is_about_cells_that_are_run(plan: TextRunPlan) -> None:
    cells = set(cells_of(plan))
    assert len({one.key for one in cells}) == len(cells_of(plan)) == len(cells)
    for some in claims.empirical_variants(plan).values():
        for setting in (one for claim in some for one in claim.settings()):
            if isinstance(setting, GainFigure):
                assert {cell_at(one, plan.epsilon, setting.variant) for one in plans.PRIVATE_EDS}
            else:
                assert setting.cell in cells
                last = replace(setting.cell, split=splits_of(plan, setting.cell.epsilon) - 1)
                assert last in cells


def test_without_privacy_there_is_one_printed_reading_and_no_epsilon() -> None:
    assert cell_at("plain", 8.0, "inside") == cell_at("plain", 3.0, "printed")
    assert cell_at("plain", 8.0, "corrected").epsilon == 0
    assert cell_at("ngrams", 8.0, "printed").variant == "corrected"
    systems_run = {one.system for one in cells_of(FULL)}
    assert systems_run == set(plans.NAMES)


def test_orders_are_judged_for_each_variant_by_its_own_corpora() -> None:
    dp, dpvg = (cell_at(one, 8.0, "inside") for one in plans.PRIVATE_EDS)
    better: dict[TextCell, dict[str, Any]] = {
        ORIGINAL: {"f1": scores(80.0, 78.0)},
        cell_at("plain", 0.0, "printed"): {"f1": scores(50.0, 48.0)},
        dpvg: {
            "f1": {**scores(70.0, 68.0), "logistic": [70.0, 75.0], "naive-bayes": [70.0, 57.0]},
            "row_means": [0.5] * 120,
            "row_maxima": [9.0] * 120,
            "rare_share": 7.0,
        },
        dp: {"f1": scores(60.0, 55.0)},
    }
    found = found_with(MANY, better)
    inside = verdicts_of(found, "As printed, but noise inside of 1/L")
    assert inside["raw-first"] == REPRODUCED
    assert inside["plain-first"] == NOT
    assert inside["generalised"] == REPRODUCED
    assert inside["negative"] == NOT  # MLR of DPvG E-D
    assert inside["largest-gain"] == REPRODUCED
    assert inside["smallest-gain"] == REPRODUCED
    assert inside["less-alike"] == REPRODUCED
    assert inside["rare-words"] == REPRODUCED
    assert verdicts_of(found, "Corrected")["generalised"] == UNDECIDED


def test_nothing_is_reproduced_of_systems_that_are_all_alike() -> None:
    """The twin of the above: identical corpora show no order, and equality alone."""
    found = found_with(MANY, {})
    for variant in VARIANTS:
        verdict = verdicts_of(found, claims.variant_title(variant))
        orders = {key for key, one in verdict.items() if one == REPRODUCED}
        assert orders == {"negative", "loss-equal", "loss-zero"}


def test_gaps_of_losses_are_paired_input_by_input() -> None:
    low, high = (cell_at(one, 8.0, "printed") for one in plans.PRIVATE_EDS)
    found = found_with(MANY, {})
    found[replace(high, split=1)]["largest"] = [0.25, 0.125, 0.0625] * 60
    runs = runs_of(found, MANY)
    assert runs[TextFigure("loss", high)] == pytest.approx([math.log(2)] * 180)
    assert runs[TextFigure("loss", low)] == [0.0] * 180
    assert privacy_loss(found, high).mean == pytest.approx(math.log(2))
    judged = verdicts_of(found, "As printed, noise outside of 1/L")
    assert judged["loss-above"] == REPRODUCED


def test_a_score_table_has_printed_numbers_beside_ours() -> None:
    found = found_with(MANY, {cell_at("dpvg-ed", 8.0, "inside"): {"f1": scores(70.0, 50.0)}})
    table = score_table(runs_of(found, MANY), MANY, "inside")
    row = dict(zip(table.header, table.rows[1], strict=True))
    assert (row["classifier"], row["class"]) == ("MLR", "POS")
    assert row["DPvG E-D, printed"] == "0.510"
    assert row["DPvG E-D"] == "0.500 (0.50 to 0.50)"
    (said,) = true_readings(table)
    assert "DPvG E-D is above DP E-D in 4" in said
