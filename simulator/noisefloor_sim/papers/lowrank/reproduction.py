"""What ``noisefloor reproduce lowrank`` does, behind the command line."""

import hashlib
import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from noisefloor.checks import check_count, check_extra
from noisefloor.publication.fine_tuning import Backbone, shared_backbone
from noisefloor.tables import TextRecords
from noisefloor_sim.papers.cell_store import KEPT_NAMES, CellStore
from noisefloor_sim.papers.lowrank import claims, plans, texts
from noisefloor_sim.papers.lowrank.computed import computed_variants
from noisefloor_sim.papers.lowrank.page import (
    READINGS,
    LowRankOutcome,
    epsilon_sentence,
    page_of,
    warnings_of,
)
from noisefloor_sim.papers.lowrank.plans import LowRankCell, LowRankPlan
from noisefloor_sim.papers.lowrank.results import cell_rows, runs_of
from noisefloor_sim.papers.output import check_folder, reproduction_document, write_files
from noisefloor_sim.papers.verdict_table import print_verdicts, progress, versions
from noisefloor_sim.papers.verdicts import Judge, Variants, tests_in
from noisefloor_sim.runs import run_in_pool

DEFAULT_SEED = 1
TITLES = {"rotten-tomatoes": "Rotten Tomatoes", "imdb": "IMDB"}


def reproduce_lowrank(
    *,
    quick: bool,
    jobs: int,
    out: Path,
    force: bool,
    resume: bool = False,
    seed: int = DEFAULT_SEED,
    data: str = texts.DEFAULT_DATA,
) -> int:
    """Run every cell that is missing, write the run directory, print the table.

    Args:
        quick: Whether few texts, steps and cells are run.
        jobs: Worker processes.
        out: The run directory.
        force: Whether an existing one is replaced.
        resume: Whether cells that an existing one of the same plan holds are kept.
        seed: Of splits and all draws.
        data: The name of a data set of texts, or a file with its schema beside it.
    """
    check_count(seed, "seed", least=0)
    check_count(jobs, "jobs", most=1024)
    check_extra("reproduce lowrank", "text-models", "torch", "transformers", "safetensors")
    from noisefloor_sim.papers.lowrank import training  # lazy: needs torch

    plan = replace(plans.QUICK if quick else plans.FULL, seed=seed)
    check_folder(out, force=force or resume, others=KEPT_NAMES)
    records, backbone = texts.load_records(data, plan), shared_backbone()  # missing: now
    training.check_cells(plan, backbone, records)
    store = CellStore(out)
    if force and not resume and out.exists():
        shutil.rmtree(out)
    identity = identity_of(plan, records, backbone)
    store.open(identity, resume=resume)
    start, cpu = time.monotonic(), time.process_time()
    found = run_all(plan, records, store, jobs)
    judge, judged = judge_all(plan, found, backbone)
    title = TITLES.get(data, Path(data).name)
    groups = training.clip_groups(plan, backbone)
    outcome = LowRankOutcome(plan, found, judged, title, records.count, groups)
    document = reproduction_document("low rank", READINGS, judge, judged, {}, seed=seed)
    document["cells"] = cell_rows(found)
    card = [(name, str(value)) for name, value in _card(plan, records, backbone).items()]
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    manifest = dict(identity) | {"jobs": jobs, "data_source": data} | took
    write_files(out, document, judged, page=page_of(outcome, card), manifest=manifest)
    shutil.rmtree(store.frozen, ignore_errors=True)
    _print(outcome, f"took {took['wall_s']:.0f} s; report: {out / 'report.html'}")
    return 0


def _print(outcome: LowRankOutcome, last: str) -> None:
    print_verdicts(outcome.judged, outcome.titles)
    for line in (epsilon_sentence(outcome), *warnings_of(outcome.plan), last):
        print(line)


def run_all(
    plan: LowRankPlan, records: TextRecords, store: CellStore, jobs: int
) -> Mapping[LowRankCell, dict[str, Any]]:
    """Run the cells that are missing, each stored as it ends; return all of them in order."""
    from noisefloor_sim.papers.lowrank.training import run_cell  # lazy: needs torch

    cells = plans.cells_of(plan)
    missing = [one for one in cells if not store.has(one)]
    with progress() as bar:
        if missing:
            task = bar.add_task("frozen layers, texts", total=records.count)
            texts.prepare(records, plan, store.frozen, lambda done: bar.advance(task, done))
        task = bar.add_task("cells", total=len(cells), completed=len(cells) - len(missing))
        tasks = [(cell, plan, store.frozen) for cell in missing]
        for (cell, _, _), found in run_in_pool(run_cell, tasks, jobs):
            store.write(cell, found)
            bar.advance(task)
    return {one: store.read(one) for one in cells}


def judge_all(
    plan: LowRankPlan, found: Mapping[LowRankCell, dict[str, Any]], backbone: Backbone
) -> tuple[Judge, Any]:
    """Return the judge and every claim, judged."""
    audits = {one: found[one] for one in plans.audits_of(plan)}
    listed: Variants = {
        **claims.empirical_variants(plan),
        **computed_variants(audits, backbone),
    }
    runs = runs_of(found, plan)
    # The least deviation that is believed: that of one text of all that are judged.
    judged = min(len(one["right"]) for one in found.values() if "right" in one)
    judge = Judge(tests_in(listed), {claims.TEXTS: 100 / math.sqrt(judged)}, largest=100)
    return judge, judge.judge_variants(listed, runs)


def identity_of(plan: LowRankPlan, records: TextRecords, backbone: Backbone) -> dict[str, object]:
    """Return what has to be the same for cells to be of the same run."""
    settings = [
        plans.settings_of(one, plan, records.count)
        for one in plans.cells_of(plan)
        if one.kind != "audit"
    ]
    return {
        "paper": "low rank",
        "plan": asdict(plan),
        "settings_sha256": hashlib.sha256(repr(settings).encode()).hexdigest(),
        "texts_sha256": texts.records_sha256(records),
        "backbone_sha256": backbone.weights_sha256,
        "tokeniser_sha256": backbone.tokeniser_sha256,
        "versions": versions("numpy", "scipy", "torch", "transformers", "dp-accounting"),
    }


def _card(plan: LowRankPlan, records: TextRecords, backbone: Backbone) -> dict[str, object]:
    return {
        "plan": plan.name,
        "seed": plan.seed,
        "texts": records.count,
        "classes": records.schema.classes.size,
        "trained layers": f"{plan.train_layers} of {backbone.depth}",
        "steps": plan.steps,
        "batch": f"{plan.batch_share:g} of the training texts",
        "cells": len(plans.cells_of(plan)),
        "backbone": backbone.weights_sha256[:16],
        "rates": ", ".join(f"{name} {rate:g}" for name, rate in plans.RATES.items()),
    } | versions("numpy", "torch", "transformers")
