"""What ``import noisefloor_sim as nf`` offers: run a scenario or load a run, and read its tables.

It does what the commands do and prints nothing.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisefloor.checks import missing_libraries
from noisefloor_sim.runs.execution import execute, read_run
from noisefloor_sim.runs.pages import page_of
from noisefloor_sim.runs.results import RunDirectory
from noisefloor_sim.runs.runner import Run

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run and its folder.

    Attributes:
        folder: Where its files are.
        run: The scenario, its points, their results, and the gates.
    """

    folder: Path
    run: Run

    @property
    def passed(self) -> bool:
        """Whether every gate of the scenario held."""
        return self.run.passed

    @property
    def summary(self) -> str:
        """The answer that the report begins with: findings, then what was found about claims."""
        found = page_of(self.run)
        return " ".join([*(row.text for row in found.findings), found.verdict_sentence])

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.folder / "report.html"

    @property
    def claims(self) -> list[dict[str, Any]]:  # Any: JSON
        """Every claim with what is claimed, proved and audited; an infinity is the text inf."""
        claims: list[dict[str, Any]] = json.loads(RunDirectory(self.folder).read("privacy.json"))
        return claims

    @property
    def metrics(self) -> Any:  # pyarrow has no types
        """The metrics as a table of pyarrow, one row per point, pipeline and metric."""
        import pyarrow.parquet as pq

        return pq.read_table(self.folder / "metrics.parquet")

    def rows(self) -> list[dict[str, Any]]:  # Any: texts and numbers
        """Return the metrics as one dictionary per row."""
        rows: list[dict[str, Any]] = self.metrics.to_pylist()
        return rows

    def to_pandas(self) -> Any:  # pandas need not be installed
        """Return the metrics as a data frame; pandas has to be installed."""
        if missing_libraries(["pandas"]):
            raise ModuleNotFoundError(
                "to_pandas needs pandas: pip install pandas. metrics and rows() do without it."
            )
        return self.metrics.to_pandas()


def run(
    scenario: AnyPath,
    *,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    out: AnyPath | None = None,
    jobs: int = 1,
    force: bool = False,
) -> FinishedRun:
    """Run a scenario, or go on with a run of it that is there already.

    Args:
        scenario: A file, or the name of a shipped scenario.
        settings: Values by dotted key, as ``--set`` takes them: ``{"population.users": 2000}``.
        seed: Instead of the scenario's.
        out: The run folder; ``runs/NAME-HASH`` if left out.
        jobs: Worker processes. More than one needs a main module that can be imported.
        force: Replace the run that is there: do it again from the start.

    Raises:
        NoisefloorError: As the command would say in its one line.
    """
    directory, found = execute(
        Path(scenario),
        settings=[f"{key}={_text(value)}" for key, value in (settings or {}).items()],
        seed=seed,
        out=None if out is None else Path(out),
        jobs=jobs,
        force=force,
        resume=not force,
    )
    return FinishedRun(directory.path, found)


def load(folder: AnyPath) -> FinishedRun:
    """Read a run folder.

    Raises:
        BadRunDirectory: It is unfinished, damaged, or of another format.
    """
    directory = RunDirectory(Path(folder))
    return FinishedRun(directory.path, read_run(directory))


def _text(value: object) -> str:
    """Write a value as a scenario would have it: JSON is YAML in flow form."""
    return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    """Return numbers and arrays of numpy as plain ones."""
    plain = getattr(value, "tolist", None)
    if plain is None:
        kind = type(value).__name__
        raise TypeError(f"Expected text, numbers, lists or mappings as settings, got {kind}.")
    return plain()
