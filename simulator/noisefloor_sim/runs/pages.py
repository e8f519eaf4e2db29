"""From a finished run to its report page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from noisefloor.privacy import Claim, ClaimVerdict, Neighbours
from noisefloor_sim.pipelines import PIPELINES, PointFindings, ledger_section
from noisefloor_sim.report import (
    CheckRow,
    CheckState,
    ClaimRow,
    Figures,
    Page,
    Reading,
    RunCard,
    Section,
    Table,
    headline,
    readings,
)
from noisefloor_sim.runs.answers import FindingResult
from noisefloor_sim.runs.gating import GateResult
from noisefloor_sim.runs.inspected import inspected_section
from noisefloor_sim.runs.results import PointResult
from noisefloor_sim.runs.runner import Run
from noisefloor_sim.scenario import WORLD

_WORLD = {
    "views_per_user_day": "Page views per user and day",
    "impressions_per_user_day": "Ads shown per user and day",
    "clicks_per_user_day": "Clicks per user and day",
    "click_rate": "Click rate: clicks per ad shown",
    "devices_per_user": "Devices per user",
    "ratings_per_user": "Ratings held per user",
    "rating_mean": "Mean rating, from 0 to 1",
    "silent_share": "Share of device-days out of contact",
    "left_share": "Share of users who left",
    "impressions_counted": "Impressions counted by the ad server",
    "frames_sent": "Frames sent",
    "frames_lost": "Sendings lost on the way",
    "frames_counted": "Frames counted",
    "frames_duplicate": "Frames that came again",
    "frames_late": "Frames refused as late",
    "frames_given_up": "Frames given up by their sender",
    "longest_queue": "Longest queue at the server",
    "formula_coverage": "Share of 95 % intervals that cover what a formula says of them",
}


def page_of(run: Run) -> Page:
    """Describe the report of a run."""
    claims = _claims(run.in_order())
    sections = [
        PIPELINES[name].section(_findings(run, name)) for name in sorted(run.scenario.pipelines)
    ]
    failed = sum(not gate.passed and not gate.skipped for gate in run.gates)
    return Page(
        run.scenario.name,
        run.scenario.question,
        run.scenario.expectation,
        headline(claims, failed_gates=failed, gates=len(run.gates), faults=_unclaimed(run)),
        run.passed,
        claims,
        [
            *sections,
            *ledger_section(_findings(run, WORLD)),
            inspected_section(run.in_order()),
            _world(run.in_order()),
        ],
        RunCard(_card_lines(run.card)),
        findings=[_finding_row(one) for one in run.findings],
        gates=[_gate_row(gate) for gate in run.gates],
    )


def _finding_row(found: FindingResult) -> CheckRow:
    return CheckRow(found.text, "true" if found.is_true else "false", found.detail)


def _gate_row(gate: GateResult) -> CheckRow:
    state: CheckState = "skipped" if gate.skipped else "true" if gate.passed else "false"
    return CheckRow(gate.gate, state, gate.detail)


def _unclaimed(run: Run) -> list[str]:
    """Return what was found at fault in flows that no claim is about, in words."""
    claimed = {
        flow.flow
        for result in run.in_order()
        for found in result.findings.values()
        for named in found.claims
        for flow in named.claim.evidence
    }
    return [
        f"{fault.verdict}: {fault.what}: {fault.cause}"
        for fault in run.faults
        if fault.verdict is not ClaimVerdict.BROKEN and fault.what not in claimed
    ]


def _claims(results: Sequence[PointResult]) -> list[ClaimRow]:
    """Return one row for each claim; replicates with other seeds share a row."""
    groups: dict[tuple[str, str, str, str, Neighbours], list[Claim]] = {}
    for result in results:
        for name, found in sorted(result.findings.items()):
            for named in found.claims:
                claim, point = named.claim, _shown(result.settings)
                key = (named.mechanism, name, result.variant, point, claim.proved.neighbours)
                groups.setdefault(key, []).append(claim)
    return [_claim_row(*key[:4], found) for key, found in groups.items()]


def _shown(settings: str) -> str:
    """Write the swept keys by their last words; seed and variant stand elsewhere."""
    pairs = [part.partition("=") for part in settings.split(", ") if part]
    kept = [(key.rpartition(".")[2], value) for key, _, value in pairs]
    return ", ".join(f"{key} {value}" for key, value in kept if key not in ("seed", "variant"))


def _claim_row(
    mechanism: str, pipeline: str, variant: str, point: str, replicates: Sequence[Claim]
) -> ClaimRow:
    """Show the worst replicate, by verdict, audit and proof; the confidence pays for choosing."""
    order = list(ClaimVerdict)
    worst = max(
        replicates,
        key=lambda one: (
            -order.index(one.verdict),
            one.audited.epsilon if one.audited else 0.0,
            one.proved.epsilon,
        ),
    )
    bound, seeds = worst.audited, len(replicates)
    if bound is not None:
        kept = max(0.0, 1 - seeds * (1 - bound.confidence))
        worst = replace(worst, audited=replace(bound, confidence=kept))
    point = f"{point}, most of {seeds} seeds" if seeds > 1 else point
    causes = [f"{one.flow}: {cause}" for one in worst.evidence for cause in one.causes]
    return ClaimRow.of(
        worst,
        mechanism,
        pipeline=pipeline,
        variant=variant,
        point=point.removeprefix(", "),
        cause=causes[0] if causes else "",
    )


def _findings(run: Run, name: str) -> list[PointFindings]:
    return [
        PointFindings(point.settings, point.scenario, run.results[point.id].findings[name])
        for point in run.points
    ]


def _world(results: Sequence[PointResult]) -> Section:
    """Show what the generated world looks like, over all points."""
    rows = []
    for name, words in _WORLD.items():
        values = [
            metric.value
            for result in results
            for metric in result.findings["world"].metrics
            if metric.name == name
        ]
        if values:  # a world without ads has neither views nor impressions
            rows.append((words, min(values), max(values)))
    table = Table(
        "The generated world",
        "The least and the largest value over the points of the sweep.",
        ("What", "least over the points", "most"),
        rows,
        ((Reading("Of a hundred ads shown, {span} are clicked.", _click_rates),),),
    )
    return Section("The world", "What the simulated people and their network did.", (table,))


def _click_rates(table: Table) -> Figures | None:
    """Return the least and the largest click rate, in hundredths, where ads are shown."""
    for words, *ends in table.rows:
        if words == _WORLD["click_rate"]:
            return {
                "span": readings.span([100 * end for end in ends if isinstance(end, int | float)])
            }
    return None


def _card_lines(card: dict[str, Any]) -> list[tuple[str, str]]:
    packages = ", ".join(f"{name} {number}" for name, number in card["packages"].items())
    return [
        ("Scenario", f"{card['name']}, hash {str(card['scenario_hash'])[:16]}"),
        ("Seeds", ", ".join(str(seed) for seed in card["seeds"])),
        ("Points", str(card["points"])),
        ("Software", f"noisefloor {card['noisefloor']}, Python {card['python']}, {packages}"),
        ("Commit", str(card["commit"])),
        ("Bus", _bus_line(card)),
        ("Time", f"{card['wall_s']:.1f} s on the clock, {card['cpu_s']:.1f} s of processor"),
        ("Peak memory of a process", f"{card['peak_mb']:.0f} MB"),
    ]


def _bus_line(card: dict[str, Any]) -> str:
    """Say what carried the frames, and what an acknowledgement was worth."""
    if card.get("bus", "memory") == "memory":
        return "memory, in the run's own processes"
    return f"services, durability {card['durability']}: {card['promise']}"
