"""What ``noisefloor reproduce supml`` does, behind the command line."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from noisefloor.checks import check_count
from noisefloor.collection import PhaseClaim, collection_claim, paper_claims
from noisefloor.collection.collecting import PrintedCollector
from noisefloor.collection.encoding import PrintedDiscretiser
from noisefloor.collection.learners import check_sklearn
from noisefloor.errors import BadRunDirectory
from noisefloor.tables import ScaledSchema
from noisefloor_sim.papers import verdicts
from noisefloor_sim.papers.output import check_folder, reproduction_document, write_all
from noisefloor_sim.papers.supml.figures import variants
from noisefloor_sim.papers.supml.page import READINGS, page_of
from noisefloor_sim.papers.supml.runs import (
    SOURCES,
    TITLES,
    Accuracies,
    DataSource,
    SupmlSetting,
    run,
)
from noisefloor_sim.papers.verdict_table import print_verdicts, progress, versions

SEEDS, QUICK_SEEDS = 24, 8
NOISY_FACTOR = 4
"""So many times as many seeds for claims about random attributes: which ones chance picks moves
the gap of two curves by several points."""


def reproduce_supml(
    *, seeds: int, jobs: int, out: Path, force: bool, seed: int = 0, resume: bool = False
) -> int:
    """Run what the claims need, write the run directory, print the table; return the exit code.

    Args:
        seeds: Worlds to average over.
        jobs: Worker processes.
        out: The run directory.
        force: Whether an existing one is replaced.
        seed: Of the first world; the others count on from it.
        resume: Whether worlds that an existing one holds are taken from it.
    """
    check_count(seeds, "seeds", least=2, most=10_000)
    check_count(seed, "seed", least=0)
    check_count(jobs, "jobs", most=1024)
    check_sklearn("reproduce supml")
    check_folder(out, force=force or resume)
    sources = {name: load() for name, load in SOURCES.items()}  # missing data are an error at once
    listed, known = variants(), _known(out, seed) if resume else {}
    counts = seeds_of(listed, seeds)
    start, cpu = time.monotonic(), time.process_time()
    with progress() as bar:
        task = bar.add_task("seeds x data sets", total=None)
        runs = run(counts, seed, jobs=jobs, known=known,
            done=lambda total: bar.update(task, total=total, advance=1))  # fmt: skip
    steps = {name: 100 / len(one.records) for name, one in sources.items()}
    steps["both"] = max(steps.values())
    judge = verdicts.Judge(verdicts.tests_in(listed), steps, largest=100)
    judged = judge.judge_variants(listed, runs)
    claims = _privacy_claims(sources["wdbc"].schema)
    manifest: dict[str, object] = {"seed": seed, "seeds": seeds}
    manifest |= {"settings": len(counts), "jobs": jobs}
    manifest |= versions("numpy", "scipy", "scikit-learn")
    card = [(name, str(value)) for name, value in manifest.items()]
    majority = {name: _larger(one) for name, one in sources.items()}
    page = page_of(judged, runs, judge=judge, claims=claims, majority=majority, card=card)
    took = {"wall_s": time.monotonic() - start, "own_cpu_s": time.process_time() - cpu}
    document = reproduction_document("SUP.ML", READINGS, judge, judged, runs, seed=seed)
    write_all(out, document, judged, page=page, manifest=manifest | took)
    print_verdicts(judged, TITLES)
    print(f"report: {out / 'report.html'}")
    return 0


def seeds_of(listed: verdicts.Variants, seeds: int) -> Mapping[SupmlSetting, int]:
    """Return how many seeds each setting has: the most that a claim about it asks for."""
    claims = [claim for some in listed.values() for claim in some]
    counts = dict.fromkeys([one for claim in claims for one in claim.settings()], seeds)
    noisy = [one for claim in claims if claim.is_noisy for one in claim.settings()]
    return counts | dict.fromkeys(noisy, NOISY_FACTOR * seeds)


def _privacy_claims(schema: ScaledSchema) -> list[PhaseClaim]:
    """Return the paper's claims of privacy, and that of the printed response as it is run here."""
    run_here = PrintedCollector(
        PrintedDiscretiser(schema, 2), 10.0, "symbols", name="WALDP as printed, lies 0 to L"
    )
    return [
        *paper_claims(schema, count=2, classes=2, epsilon=10.0, queries=3),
        collection_claim(run_here, range(2), 10.0, "training"),
    ]


def _larger(source: DataSource) -> float:
    """Return what always telling the larger class gets, in percent."""
    share = float(np.mean(source.records.labels))
    return 100 * max(share, 1 - share)


def _known(folder: Path, seed: int) -> Accuracies:
    """Return what a run directory holds of worlds that count on from a seed."""
    path = folder / "reproduction.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
        if (found["paper"], found["seed"]) != ("SUP.ML", seed):
            raise BadRunDirectory(f"{folder}: holds another paper or first seed; use --force.")
        return {
            SupmlSetting(**{name: value for name, value in one.items() if name != "accuracy"}):
            one["accuracy"]
            for one in found["runs"]
        }  # fmt: skip
    except (ValueError, KeyError, TypeError):
        raise BadRunDirectory(f"{path}: cannot be read; use --force to begin anew.") from None
