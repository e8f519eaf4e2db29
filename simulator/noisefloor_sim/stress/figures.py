"""From what the program measured to figures: one row a step and figure, with n and spread.

A value is the median over the runs of a step, low and high are the least and the largest of them.
Three runs say how far a figure moves from one to the next; they are no confidence interval.
"""

import csv
import io
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]  # what json reads
COLUMNS = ("step", "figure", "value", "low", "high", "spread", "runs", "n")
CLIENT = "load-client"


@dataclass(frozen=True, slots=True)
class StressFigure:
    """One figure of one step, or of the whole run.

    Attributes:
        step: Its name; ``run`` and ``knee`` for figures of all steps.
        name: Of the figure.
        values: One of each run.
        n: Requests in all runs.
    """

    step: str
    name: str
    values: tuple[float, ...]
    n: int

    @property
    def value(self) -> float:
        """The median over the runs."""
        return statistics.median(self.values)

    @property
    def row(self) -> tuple[object, ...]:
        """The figure as a row of ``metrics.csv``."""
        low, high = min(self.values), max(self.values)
        numbers = (self.value, low, high, high - low)
        return (self.step, self.name, *map(_short, numbers), len(self.values), self.n)


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def runs_by_step(found: Json) -> dict[str, list[Json]]:
    """Return the runs of each step, steps of the plan first, those of the search by rate."""
    grouped: dict[str, list[Json]] = {}
    for run in sorted(
        found["runs"], key=lambda run: (run["is_search"], run["rate"], run["number"])
    ):
        grouped.setdefault(run["step"], []).append(run)
    names = sorted(grouped, key=lambda name: grouped[name][0]["is_search"])
    return {name: grouped[name] for name in names}


def figures(found: Json) -> list[StressFigure]:
    """Return every figure of a run."""
    limit_ms = found["objective"]["latency_ms"]
    steps = runs_by_step(found).items()
    made = [one for name, runs in steps for one in _of_step(name, runs, limit_ms)]
    return [*made, *_of_run(found)]


def metrics_csv(found: Json) -> str:
    """Write every figure as ``metrics.csv``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(one.row for one in figures(found))
    return out.getvalue()


_OF_RUNS: Mapping[str, Callable[[Json], float | None]] = {
    "offered": lambda run: run["offered"],
    "achieved": lambda run: run["achieved"],
    "accepted": lambda run: run["accepted"],
    "goodput": lambda run: run["goodput"],
    "failed_share": lambda run: run["failed_share"],
    "trusted": lambda run: float(run["verdict"]["is_trusted"]),
    "held": lambda run: float(run["verdict"]["is_met"]),
    "p50_ms": lambda run: run["latency_ms"]["due"]["p50"],
    "p90_ms": lambda run: run["latency_ms"]["due"]["p90"],
    "p99_ms": lambda run: run["latency_ms"]["due"]["p99"],
    "p99-9_ms": lambda run: run["latency_ms"]["due"]["p99.9"],
    "p99_from_send_ms": lambda run: run["latency_ms"]["sent"]["p99"],
    "send_delay_p99_ms": lambda run: run["latency_ms"]["delay"]["p99"],
    "lag_grew": lambda run: _lag_grew(run),
    "drained_s": lambda run: run["drained_s"],
    "client_cpu_us": lambda run: run["client_cpu_us"],
    "machine_cores": lambda run: run["use"]["machine_cores"],
    "other_cores": lambda run: run["use"]["other_cores"],
    "steal": lambda run: run["use"]["steal"],
}


def _lag_grew(run: Json) -> float | None:
    pending = run["use"]["pending"]
    return float(pending[-1] - pending[0]) if pending else None


def recovered_within_s(run: Json, limit_ms: float) -> float | None:
    """Return how long after a spike p99 was within a limit again, and stayed there.

    It is told by whole seconds in which requests were due. None if the step has no spike, or if
    p99 was not within the limit at the end of the step.
    """
    phases = run["phases"]
    if len(phases) != 3 or not phases[0][1] < phases[1][0] > phases[2][0]:
        return None
    spike_end_s = phases[0][2] + phases[1][2]
    first = math.ceil(spike_end_s - 1e-9)
    slow = [
        at
        for at, one in enumerate(run["by_second"])
        if at >= first and one["n"] and one["p99"] > limit_ms
    ]
    good = max(slow) + 1 if slow else first
    return good - spike_end_s if good < len(run["by_second"]) else None


def _of_step(step: str, runs: Sequence[Json], limit_ms: float) -> Iterator[StressFigure]:
    n = sum(run["n"] for run in runs)
    recovered = [recovered_within_s(run, limit_ms) for run in runs]
    if all(one is not None for one in recovered):
        values = tuple(one for one in recovered if one is not None)
        yield StressFigure(step, "recovered_within_s", values, n)
    for name, read in _OF_RUNS.items():
        values = tuple(value for run in runs if (value := read(run)) is not None)
        if values:
            yield StressFigure(step, name, values, n)
    for name in runs[0]["cost"]["processes"]:
        costs = tuple(cost for run in runs if (cost := cpu_per_million(run, name)) is not None)
        if costs:
            yield StressFigure(step, f"cpu_s_per_million.{name}", costs, n)


def cpu_per_million(run: Json, process: str) -> float | None:
    """Return the processor seconds of a process per million reports that count."""
    used = run["cost"]["processes"].get(process)
    return None if used is None or not run["rows"] else 1e6 * used["cpu_s"] / run["rows"]


def _of_run(found: Json) -> Iterator[StressFigure]:
    runs, n = found["runs"], sum(run["n"] for run in found["runs"])
    trusted = [float(run["verdict"]["is_trusted"]) for run in runs]
    if trusted:
        yield StressFigure("run", "trusted_share", (statistics.mean(trusted),), n)
    if found["account"]["is_conserved"] is not None:
        yield StressFigure("run", "conserved", (float(found["account"]["is_conserved"]),), n)
    knee = found["knee"]
    if knee is None:
        return
    yield StressFigure("knee", "low", (knee["low"],), n)
    if knee["high"] is not None:
        yield StressFigure("knee", "high", (knee["high"],), n)
    yield StressFigure("knee", "lower_bound", (float(knee["is_lower_bound"]),), n)
    best = [run for run in runs if run["is_search"] and run["rate"] == knee["low"]]
    if best:
        values = tuple(run["accepted"] for run in best)
        yield StressFigure("run", "rate_at_objective", values, sum(run["n"] for run in best))
