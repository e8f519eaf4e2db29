"""The tables of a load's report: the knee, the steps, the processes, and conservation."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noisefloor_sim.report import Cell, Figures, Reading, Table, number, readings
from noisefloor_sim.stress.figures import cpu_per_million, figures, runs_by_step

Json = Mapping[str, Any]  # what json reads


def knee_table(found: Json) -> Table:
    """Return every rate of the search, and how often it held."""
    rows = [(one["rate"], one["of"], one["held"]) for one in found["knee"]["runs"]]
    return Table(
        "The search for the knee",
        "A rate holds if the objective held in more than half of its runs. Rates within a factor "
        "of two of the interval are run as often as the scenario asks for, the others once.",
        ("Requests a second", "Runs", "Objective held"),
        rows,
        (_knee_reading(found["knee"]), _sharpness_reading(found["knee"])),
    )


def _knee_reading(knee: Json) -> tuple[Reading[Table], ...]:
    """Return what may be said of the interval: that the rows say the same."""

    def is_interval(table: Table) -> Figures | None:
        if not knee["low"] or knee["high"] is None:
            return None
        holds = {row[0]: 2 * _float(row[2]) > _float(row[1]) for row in table.rows}
        is_true = holds.get(knee["low"]) is True and holds.get(knee["high"]) is False
        ends = {"low": number(knee["low"]), "high": number(knee["high"])}
        return {**ends, "why": "; ".join(knee["broken"])} if is_true else None

    return (Reading("It held at {low} and broke at {high}: {why}.", is_interval),)


def _sharpness_reading(knee: Json) -> tuple[Reading[Table], ...]:
    """Return what may be said where rates above the interval held as well."""

    def are_some_above(table: Table) -> Figures | None:
        if knee["high"] is None:
            return None
        above = [row for row in table.rows if _float(row[0]) > knee["high"]]
        also = [_float(row[0]) for row in above if 2 * _float(row[2]) > _float(row[1])]
        return {"rates": ", ".join(map(number, also))} if also else None

    text = (
        "Above the interval {rates} held in most runs as well: from run to run the knee moves by "
        "more than the interval is wide."
    )
    return (Reading(text, are_some_above),)


def _float(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


_STEP_COLUMNS = {
    "accepted": "Accepted a second",
    "goodput": "In time a second",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "p99-9_ms": "p99.9, ms",
    "send_delay_p99_ms": "Send delay p99, ms",
    "failed_share": "Refused or lost, share",
    "recovered_within_s": "Recovered within, s",
}


def step_table(found: Json) -> Table:
    """Return every step with the medians over its runs."""
    known = {(one.step, one.name): one for one in figures(found)}
    rows: list[tuple[Cell, ...]] = []
    for name, runs in runs_by_step(found).items():
        values = [known.get((name, figure)) for figure in _STEP_COLUMNS]
        cells = [None if one is None else one.value for one in values]
        trusted = sum(run["verdict"]["is_trusted"] for run in runs)
        met = sum(run["verdict"]["is_met"] for run in runs)
        n = sum(run["n"] for run in runs)
        rows.append((name, len(runs), n, *cells, f"{met} of {len(runs)}", trusted))
    header = ("Step", "Runs", "n", *_STEP_COLUMNS.values(), "Held", "Trusted")
    return Table(
        "Steps",
        "Medians over the runs of a step, from due time. A cell is empty where fewer than five "
        "values lie beyond the percentile.",
        header,
        rows,
        (readings.column_range("Send delay p99, ms", "p99 of the send delay: {span} ms."),),
    )


def limit_table(found: Json) -> Table:
    """Return what was at its limit in each step in which anything was."""
    limits = ((name, _limits(runs)) for name, runs in runs_by_step(found).items())
    return Table(
        "At its limit",
        "What was at its limit in most of the runs in which anything was.",
        ("Step", "At its limit"),
        [one for one in limits if one[1]],
    )


def _limits(runs: Sequence[Json]) -> str:
    """Return what was at its limit in most of the runs in which anything was."""
    named = [run["limit"]["what"] for run in runs if run["limit"]["what"]]
    return max(named, key=named.count) if named else ""


def process_table(found: Json) -> Table:
    """Return what every process used."""
    names = dict.fromkeys(name for run in found["runs"] for name in run["cost"]["processes"])
    return Table(
        "Processes",
        "CPU-seconds per million reports that count: the median over the runs of all steps. "
        "Cores: the most of one step. Context switches are those of the main thread.",
        (
            *("Process", "CPU-s per million reports", "Least", "Most"),
            *("Cores, most", "Memory, MiB", "Descriptors", "Switches a second"),
        ),
        [tuple(_process_row(found, name)) for name in names],
    )


def _process_row(found: Json, name: str) -> Iterator[Cell]:
    costs = [cost for run in found["runs"] if (cost := cpu_per_million(run, name)) is not None]
    uses = [run["use"] for run in found["runs"] if name in run["use"]["processes"]]
    of = [use["processes"][name] for use in uses]
    switches = [one["switches"] / use["seconds"] for one, use in zip(of, uses, strict=True)]
    yield name
    yield from (read(costs) if costs else None for read in (statistics.median, min, max))
    yield max((one["cores"] for one in of), default=0.0)
    yield max((one["memory_bytes"] for one in of), default=0) / 2**20
    yield max((one["descriptors"] for one in of), default=0)
    yield max(switches, default=0.0)


_OF_SERVICES = {
    "accepted": "Frames accepted",
    "counted": "Frames counted",
    "duplicates": "Repeats recognised",
    "dead_letters": "Dead letters",
    "late": "Late",
    "pending": "Frames that wait",
    "missing": "Frames without an outcome",
    "reports": "Reports counted, as far as the aggregator shows them",
}


def account_table(found: Json) -> Table:
    """Return what the clients were answered beside what was counted."""
    account = found["account"]
    rows: list[tuple[Cell, ...]] = [
        ("Answered with 2xx", account["answered"], None),
        ("Requests that have to count, each batch id once", account["to_count"], None),
        ("Requests whose outcome the client does not know", account["unknown"], None),
    ]
    services = account["services"] or {}
    rows += [
        (words, None, services[key]) for key, words in _OF_SERVICES.items() if key in services
    ]
    return Table(
        "Frames by what became of them",
        "Clients beside services.",
        ("What", "clients", "services"),
        rows,
        (_CONSERVED,),
    )


def _is_conserved(table: Table) -> Figures | None:
    cells = {str(row[0]): row[1] if row[1] is not None else row[2] for row in table.rows}
    to_count = cells["Requests that have to count, each batch id once"]
    unknown = cells["Requests whose outcome the client does not know"]
    counted = cells.get(_OF_SERVICES["counted"])
    is_settled = cells.get(_OF_SERVICES["pending"]) == 0 == cells.get(_OF_SERVICES["missing"])
    if not is_settled or counted is None:
        return None
    is_true = _float(to_count) <= _float(counted) <= _float(to_count) + _float(unknown)
    return {"counted": number(_float(counted))} if is_true else None


_CONSERVED: tuple[Reading[Table], ...] = (
    Reading("Every request that has to count was counted once: {counted}.", _is_conserved),
    Reading("It does NOT add up.", lambda table: None if _is_conserved(table) else {}),
)
