"""What ``noisefloor reproduce text`` does, behind the command line."""

import resource
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from noisefloor.checks import check_count, check_extra
from noisefloor.publication.text import shared_tokeniser
from noisefloor.publication.text.entities import load_tagger
from noisefloor.publication.text.generalisation import shared_place_graph
from noisefloor_sim.papers.cell_store import KEPT_NAMES, CellStore
from noisefloor_sim.papers.output import check_folder, reproduction_document, write_files
from noisefloor_sim.papers.text import claims, corpora, plans
from noisefloor_sim.papers.text.computed import accounting_facts, computed_variants
from noisefloor_sim.papers.text.corpora import CorpusTexts
from noisefloor_sim.papers.text.page import (
    DIGITS,
    READINGS,
    TextOutcome,
    page_of,
    privacy_sentence,
    warnings_of,
)
from noisefloor_sim.papers.text.plans import PARTS, TextCell, TextRunPlan
from noisefloor_sim.papers.text.results import cell_rows, runs_of
from noisefloor_sim.papers.verdict_table import print_verdicts, progress, versions
from noisefloor_sim.papers.verdicts import Judge, Judged, tests_in
from noisefloor_sim.runs import run_in_pool

DEFAULT_SEED = 1
TITLES = {"rotten-tomatoes": "Rotten Tomatoes", "imdb": "IMDB"}
LEAST_DEVIATIONS = {claims.TEXTS: 0.01, claims.INPUTS: 1e-3}
"""That is believed of a cosine in percent, and of a loss: figures that are all alike have none."""


def reproduce_text(
    *,
    quick: bool,
    jobs: int,
    out: Path,
    force: bool,
    resume: bool = False,
    seed: int = DEFAULT_SEED,
    data: str = corpora.DEFAULT_DATA,
    public: str = corpora.PUBLIC_DATA,
    records: int = 0,
    splits: int = 0,
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
        public: Another one, whose texts count as public.
        records: How many texts are used at most; as the plan says if 0.
        splits: How many there are at the epsilon of the table; as the plan says if 0.
    """
    check_count(seed, "seed", least=0)
    check_count(jobs, "jobs", most=1024)
    check_count(records, "records", least=0)
    check_extra("reproduce text", "models", "torch", "safetensors")
    check_extra("reproduce text", "text", "spacy", "tokenizers", "scikit-learn")
    base = plans.QUICK if quick else plans.FULL
    plan = replace(base, seed=seed, records=records or base.records, splits=splits or base.splits)
    check_count(plan.splits, "splits", least=2, most=100)
    check_folder(out, force=force or resume, others=KEPT_NAMES)
    load_tagger(plan.tagger)  # what is missing is named before anything is written
    shared_place_graph()
    corpus = corpora.load_corpus(data, public, plan)
    store = CellStore(out)
    if force and not resume and out.exists():
        shutil.rmtree(out)
    identity = identity_of(plan, corpus)
    store.open(identity, resume=resume)
    start, spent = time.monotonic(), _cpu_s()
    found = run_all(plan, corpus, store, jobs)
    judge, judged = judge_all(plan, found)
    title, recall = TITLES.get(data, Path(data).name), corpora.tagger_recall(plan)
    outcome = TextOutcome(plan, found, judged, title, corpus.count, recall)
    document = reproduction_document("generated texts", READINGS, judge, judged, {}, seed=seed)
    document["accounting"] = dict(accounting_facts())
    document["tagger_recall"] = {kind.name: asdict(one) for kind, one in recall.items()}
    document["cells"] = cell_rows(found)
    card = [(name, str(value)) for name, value in _card(plan, corpus).items()]
    took = {"wall_s": time.monotonic() - start, "cpu_s": _cpu_s() - spent, "peak_mb": peak_mb()}
    manifest = dict(identity) | {"jobs": jobs, "data_source": data, "public_source": public} | took
    write_files(out, document, judged, page=page_of(outcome, card), manifest=manifest)
    shutil.rmtree(store.frozen, ignore_errors=True)
    print_verdicts(outcome.judged, outcome.titles, DIGITS)
    for line in (privacy_sentence(outcome), *warnings_of(plan), *_took(took, out)):
        print(line)
    return 0


def _took(took: Mapping[str, float], out: Path) -> list[str]:
    wall_s, cpu_s, peak = took["wall_s"], took["cpu_s"], took["peak_mb"]
    return [
        f"took {wall_s:.0f} s, {cpu_s:.0f} s of processors; the largest process had {peak:.0f} MB "
        f"of memory; report: {out / 'report.html'}"
    ]


def _cpu_s() -> float:
    """Return the processor time of this process and of workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb() -> float:
    """Return the most memory that this process had, or a worker that has ended."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024 / 1e6


def run_all(
    plan: TextRunPlan, corpus: CorpusTexts, store: CellStore, jobs: int
) -> Mapping[TextCell, dict[str, Any]]:
    """Run the cells that are missing, each stored as it ends; return all of them in order."""
    from noisefloor_sim.papers.text.measuring import run_cell  # lazy: needs torch

    cells = plans.cells_of(plan)
    missing = [one for one in cells if not store.has(one)]
    with progress() as bar:
        if missing:
            task = bar.add_task("names, texts", total=corpus.count)
            frozen = store.frozen
            corpora.prepare(corpus, plan, frozen, jobs, lambda done: bar.advance(task, done))
        task = bar.add_task("cells", total=len(cells), completed=len(cells) - len(missing))
        tasks = [(cell, plan, store.frozen) for cell in missing]
        for (cell, _, _), found in run_in_pool(run_cell, tasks, jobs):
            store.write(cell, found)
            bar.advance(task)
    return {one: store.read(one) for one in cells}


def judge_all(
    plan: TextRunPlan, found: Mapping[TextCell, Mapping[str, Any]]
) -> tuple[Judge, Judged]:
    """Return a judge for all tests together, and every claim, judged.

    Splits share texts to learn from, which widens intervals over them.
    """
    variants = {**claims.empirical_variants(plan), **computed_variants(found, plan)}
    runs, tests = runs_of(found, plan), tests_in(variants)
    judged_texts = min(one["judged"] for one in found.values())
    # The least deviation of a score that is believed: that of one text of all that are judged.
    over_splits = Judge(tests, {claims.SPLITS: 100 / judged_texts}, 1 / (PARTS - 1), largest=100)
    over_texts = Judge(tests, LEAST_DEVIATIONS, largest=100)
    judged = {
        name: [
            (over_splits if one.data == claims.SPLITS else over_texts).judge(one, runs)
            for one in some
        ]
        for name, some in variants.items()
    }
    return over_splits, judged


def identity_of(plan: TextRunPlan, corpus: CorpusTexts) -> dict[str, object]:
    """Return what has to be the same for cells to be of the same run."""
    return {
        "paper": "generated texts",
        "plan": asdict(plan),
        "texts": corpus.count,
        "longest": corpus.longest,
        "texts_sha256": corpora.corpus_sha256(corpus),
        "tokeniser_sha256": shared_tokeniser().sha256,
        "versions": versions("numpy", "scipy", "torch", "scikit-learn", "spacy", "dp-accounting"),
    }


def _card(plan: TextRunPlan, corpus: CorpusTexts) -> dict[str, object]:
    return {
        "plan": plan.name,
        "seed": plan.seed,
        "texts": corpus.count,
        "pieces of a text": f"at most {corpus.longest}",
        "public texts": corpus.public.count,
        "splits": f"{plan.splits} at epsilon {plan.epsilon:g}, {plan.curve_splits} at others",
        "network": f"{plan.vocabulary} pieces, width {plan.embedding}, hidden {plan.hidden}",
        "training": f"{plan.epochs:g} epochs in batches of {plan.batch}, C {plan.clip:g}, rate "
        f"{plan.rate:g}",
        "cells": len(plans.cells_of(plan)),
    } | versions("numpy", "torch", "scikit-learn", "spacy")
