"""From the figures of a load to its report page."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from noisefloor_sim.report import CheckRow, Page, RunCard, Section
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.stress.gating import LoadGateResult
from noisefloor_sim.stress.page_plots import latency_plots, rate_plots, timeline_plots
from noisefloor_sim.stress.page_tables import (
    account_table,
    knee_table,
    limit_table,
    process_table,
    step_table,
)

Json = Mapping[str, Any]  # what json reads
_MOST_OTHERS = 0.25
"""Cores of other work beyond which a machine is not quiet."""


def load_page(
    scenario: Scenario, found: Json, manifest: Json, gates: Sequence[LoadGateResult]
) -> Page:
    """Describe the report of a load.

    Args:
        scenario: With the load.
        found: What the program measured.
        manifest: The run card.
        gates: What decided the exit code.
    """
    return Page(
        f"stress: {scenario.name}",
        scenario.question,
        scenario.expectation,
        verdict_sentence(found),
        all(gate.passed for gate in gates) and found["is_complete"],
        (),
        list(_sections(found)),
        RunCard(_card(manifest)),
        warnings=list(_warnings(found)),
        gates=[CheckRow(one.gate, "true" if one.passed else "false", one.detail) for one in gates],
    )


def verdict_sentence(found: Json) -> str:
    """Say what was found about the knee, or about the steps where it was not looked for."""
    knee = found["knee"]
    met = [run for run in found["runs"] if run["verdict"]["is_met"]]
    if knee is None:
        return f"The objective held in {len(met)} of {len(found['runs'])} runs of steps."
    if not knee["low"]:
        return f"The objective held at no rate; the lowest tried was {_lowest(found):g} a second."
    interval = f"{knee['low']:g} requests a second"
    if knee["high"] is None:
        return (
            f"The objective held up to {interval}, the highest rate that was tried: a lower bound."
        )
    limit = f" At its limit there: {knee['limit']}." if knee["limit"] else " No limit was seen."
    bound = " The client had part in it: this is a lower bound." if knee["is_lower_bound"] else ""
    return f"The knee is between {interval} and {knee['high']:g}.{limit}{bound}"


def _lowest(found: Json) -> float:
    return min((run["rate"] for run in found["runs"]), default=0.0)


def _sections(found: Json) -> Sequence[Section]:
    return [
        Section(
            "Load and latency",
            "Requests are sent at times that were fixed beforehand, whatever became of those "
            "before them. Latency counts from the time at which a request was due.",
            [*rate_plots(found), *([knee_table(found)] if found["knee"] else [])],
        ),
        Section(
            "Latencies",
            "Percentiles as far as the sample resolves them: five values or more lie beyond.",
            [*latency_plots(found), step_table(found), limit_table(found)],
        ),
        Section("Timeline", "Second by second, over the whole run.", timeline_plots(found)),
        Section(
            "Who did the work",
            "Processor time of every process, from the start of a step until everything in it was "
            "counted.",
            [process_table(found)],
        ),
        Section(
            "Conservation",
            "What clients were answered, beside what the services counted, after the last step.",
            [account_table(found)],
        ),
    ]


def _warnings(found: Json) -> Sequence[str]:
    said = []
    if not found["is_complete"]:
        said.append(f"The run was broken off ({found['why']}): this is what was measured before.")
    untrusted = sum(not run["verdict"]["is_trusted"] for run in found["runs"])
    if untrusted:
        said.append(
            f"{untrusted} of {len(found['runs'])} runs of steps are not trusted: the client was "
            "behind its own plan by more than the larger of 1 ms and 5 % of p99."
        )
    said.append(
        f"Client, services and store share {found['cores']} cores: what the client uses, the "
        "services lack."
    )
    others = statistics.median(run["use"]["other_cores"] for run in found["runs"])
    if others > _MOST_OTHERS:
        said.append(
            f"Other work used {others:.1f} of {found['cores']} cores (median over the runs of "
            "steps): rates and latencies are those of what was left."
        )
    refused = sum(run["classes"]["refused_for_good"] for run in found["runs"])
    if refused:
        said.append(f"{refused:,} requests were refused for good: the load itself is at fault.")
    return said


def _card(manifest: Json) -> list[tuple[str, str]]:
    shown = ("scenario_hash", "seed", "services", "durability", "promise", "requests", "commit")
    pairs = [(name.replace("_", " "), str(manifest[name])) for name in shown if name in manifest]
    return [*pairs, *((name, str(value)) for name, value in manifest["machine"].items())]
