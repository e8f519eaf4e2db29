"""Running changed code: a copy of the source roots with one file changed, in its own process.

What does not change is linked, so that a copy takes milliseconds: only the folders on the way to
the changed file are made anew. Nothing of the tree is written.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants.mutant import GATE, PROJECT, REFUSED, ROOTS, Mutant, SmallScenario
from mutants.preloaded import Preloaded

_VERDICT = re.compile(r"^(MISFIT|UNACCOUNTED|BROKEN) (.+?) at (\S+): (.*)$", re.MULTILINE)
_GATE = re.compile(r"^gate FAILED: (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)$", re.MULTILINE)
_REFUSED = re.compile(r"^noisefloor: The service at \S+ refused (\S+ \S+): (.*)$", re.MULTILINE)

MOST_S = 600
"""A run that takes longer has stopped making progress."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a run says is wrong: verdict, flow (or gate, or what is refused), cause."""

    verdict: str
    flow: str
    cause: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How a run ended.

    Attributes:
        code: The exit code.
        findings: What it says is wrong.
        output: What it wrote, for a reader of a failure.
        seconds: What it took.
    """

    code: int
    findings: tuple[Finding, ...]
    output: str
    seconds: float

    def named_by(self, mutant: Mutant) -> Finding | None:
        """Return what names the flow of a mutant with a verdict that is expected of it."""
        for found in self.findings:
            if found.verdict in mutant.verdicts and found.flow == mutant.flow:
                return found
            if found.verdict == REFUSED and mutant.is_refused:
                return found
        return None


def make_copy(folder: Path, mutant: Mutant | None, project: Path = PROJECT) -> None:
    """Make the source roots in a folder, with the change of a mutant in them.

    Args:
        folder: Where; it does not exist.
        mutant: Whose change; nothing is changed if left out.
        project: What is copied.
    """
    changed = Path(mutant.file) if mutant else None
    folder.mkdir(parents=True)
    for root in ROOTS:
        _link(project / root, folder / root, project, changed)
    if mutant is not None:
        text = (project / mutant.file).read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise ValueError(f"{mutant.name}: the text occurs {text.count(mutant.old)} times")
        target = folder / mutant.file
        target.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def _link(source: Path, target: Path, project: Path, changed: Path | None) -> None:
    """Link a folder; one that holds the changed file is made, and its entries are linked."""
    here = source.relative_to(project)
    if changed is None or here not in changed.parents:
        target.symlink_to(source)
        return
    target.mkdir()
    for entry in source.iterdir():
        if entry.name == "__pycache__":
            _link_compiled(entry, target / entry.name, changed.stem)
        elif entry.relative_to(project) != changed:
            _link(entry, target / entry.name, project, changed)


def _link_compiled(source: Path, target: Path, stem: str) -> None:
    """Link compiled modules, which takes less time than to compile them; not the changed one."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.name.partition(".")[0] != stem:
            (target / entry.name).symlink_to(entry)


def run_case(
    folder: Path,
    scenario: SmallScenario,
    settings: Sequence[str],
    *,
    mutant: Mutant | None = None,
    bus: str = "memory",
    process: Preloaded | None = None,
) -> CaseResult:
    """Run a scenario on changed code.

    Args:
        folder: Where everything is written; it does not exist.
        scenario: What is run.
        settings: Set in it, ``key=value``.
        mutant: What is changed; nothing if left out.
        bus: As ``noisefloor run --bus`` takes it.
        process: What it is forked from; an interpreter is started if left out.
    """
    make_copy(folder / "copy", mutant)
    path = folder / f"{scenario.name}.yaml"
    path.write_text(scenario.text, encoding="utf-8")
    words = ["noisefloor_sim.cli", "run", str(path), "--out", str(folder / "run")]
    words += ["--bus", bus, "--jobs", "1"]
    words += [part for setting in settings for part in ("--set", setting)]
    begun = time.monotonic()
    code, output = _run_words(words, folder, process)
    seconds = time.monotonic() - begun
    return CaseResult(code, tuple(findings_of(output)), output, seconds)


def _run_words(words: Sequence[str], folder: Path, process: Preloaded | None) -> tuple[int, str]:
    """Run ``python -m`` with some words on the copy in a folder; return code and output."""
    variables = environment(folder / "copy")
    if process is not None:
        written = folder / "output.txt"
        code = process.run(
            words, folder=folder, environment=variables, output=written, most_s=MOST_S
        )
        return code, written.read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def environment(copy: Path) -> dict[str, str]:
    """Return the environment of a process that imports from a copy."""
    paths = os.pathsep.join(str(copy / root) for root in ROOTS)
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def findings_of(output: str) -> list[Finding]:
    """Return what a run says is wrong."""
    found = [
        Finding(verdict.lower(), flow, cause)
        for verdict, flow, _, cause in _VERDICT.findall(output)
    ]
    found += [Finding(GATE, gate, detail) for gate, detail in _GATE.findall(output)]
    return found + [Finding(REFUSED, asked, why) for asked, why in _REFUSED.findall(output)]
