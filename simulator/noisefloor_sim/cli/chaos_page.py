"""From the figures of a storm to its report page: for each run a table and a line to read it."""

from collections.abc import Iterator, Mapping
from typing import Any

from noisefloor_sim.report import Cell, Figures, Page, Reading, RunCard, Section, Table

Json = Mapping[str, Any]  # what json reads
Row = tuple[str, Cell, Cell]

_HEADER = ("What", "planned, or true", "done, or found")
_QUESTION = "Does everything that was accepted count, exactly once, whatever is killed?"
_STORM = {
    "worker_kills": "SIGKILLs of workers",
    "ad_server_kills": "SIGKILLs of the ad server",
    "aggregator_kills": "SIGKILLs of the aggregator",
    "zombies": "Stopped until others took over, then woken up",
    "server_kills": "SIGKILLs of the Redis server",
}
_FOUND = {
    "requests": "Requests of clients, repeats included",
    "answered": "Requests answered with 202",
    "unanswered": "Requests whose connection broke",
    "taken_unanswered": "Frames taken, and the answer never sent",
    "held_frames": "Frames at the process that was hit",
    "poison": "Frames that can never count, answered with 400",
    "cells": "Sums compared, one by one",
    "longest_pause_s": "Longest pause in which nothing was settled, in seconds",
    "elapsed_s": "Seconds, all in all",
}
_ACCOUNT = {
    "accepted": "Frames accepted",
    "counted": "Frames counted",
    "duplicates": "Repeats recognised",
    "dead_letters": "Dead letters",
    "late": "Frames accepted, and then refused: their epoch was closed",
    "pending": "Frames that wait",
    "reports": "Reports counted",
}
_SINGLE = {
    "closings": "Epochs closed",
    "answered": "Frames answered with 202",
    "in_epochs": "Frames in the closed epochs",
    "told_closed": "Frames answered with 410",
    "repeated": "Requests to close that had to be repeated",
    "aggregator_kills": "SIGKILLs of an aggregator that closes",
    "way": "The store",
    "away_s": "Seconds without a store",
    "recovery_s": "Seconds until everything was as before (at most 5)",
    "first_taken_s": "Seconds until a frame was taken again",
    "slowest_s": "Longest wait for an answer, in seconds",
    "rounds": "SIGTERMs of each service",
    "ad_server_s": "Longest stop of an ad server, in seconds (at most 10)",
    "aggregator_s": "Longest stop of an aggregator, in seconds (at most 10)",
    "hanging_s": "Longest stop while the store hangs, in seconds (at most 10)",
    "taken": "Frames that a stopping ad server had accepted",
    "lost": "Of these lost",
    "refused": "Requests answered with 503",
    "unanswered": "Requests on closed connections, sent again",
    "taken_unanswered": "Frames taken, and the answer never sent",
    "processes": "Processes that spend",
    "threads": "Threads in each",
    "cap": "Spends that the budget allows",
    "asked": "Spends asked for",
    "granted": "Spends granted",
    "retried": "Grants asked for once more, free of charge",
    "ledger_spent": "Spends according to the ledger",
    "naive_granted": "Spends granted by read, compare and write (the twin that fails)",
    "kills": "SIGKILLs of the publisher",
    "publications": "Publications",
    "orphans": "Charged and not stored at the moment of a kill",
    "unpaid": "Releases without a charge",
    "answers": "Answers with 200, each the same bytes",
    "cells": "Sums compared, one by one",
    "elapsed_s": "Seconds, all in all",
}
_TITLES = {
    "streams": (
        "Workers are killed",
        "Frames straight into the streams: some twice, some poisonous, one epoch again after its "
        "close. Workers and the server are killed, workers sleep and wake up late.",
    ),
    "services": (
        "Services are killed",
        "Frames over HTTP. Clients send the same bytes until they get 202, while ad server, "
        "aggregator and Redis are killed.",
    ),
    "closing": (
        "Epochs are closed under load",
        "Clients send to an epoch until an answer says it is closed; at times the aggregator "
        "that closes it is killed. What was answered with 202 has to be in the sums.",
    ),
    "outage": (
        "The store is away",
        "Killed, and stopped so that it hangs: the services have to say 503, never yes.",
    ),
    "termination": (
        "Services are asked to stop under load",
        "SIGTERM: what is under way is answered, what was accepted is kept; the store is killed "
        "right afterwards.",
    ),
    "ledger": (
        "The budget",
        "Many spend at once; the publisher is killed between charge and release.",
    ),
}
_RUNS = {
    "closing": "Closed under load",
    "killed": "Store killed",
    "hangs": "Store hangs",
    "sigterm": "SIGTERM under load",
    "spending": "Many spenders, one budget",
    "publishing": "Publisher killed",
}
_DIFFERENCES = "Differences to the truth"
_DESCRIBES = {
    "seed": "Planned beside done, and the truth beside what was counted.",
    "closing": "Frames sent to epochs that are closed under load.",
    "killed": "Requests and recovery around a kill of the store.",
    "hangs": "Requests and recovery around a store that is stopped and does not answer.",
    "sigterm": "Services that are asked to stop, and the frames that they had accepted.",
    "spending": "Spends asked for by many processes, beside what the budget covers.",
    "publishing": "Publications whose publisher is killed between charge and release.",
}


def _cells(table: Table) -> dict[str, Cell]:
    """Return what was found, by the words of its row."""
    return {str(row[0]): row[-1] for row in table.rows}


def _no_difference(table: Table) -> Figures | None:
    found = _cells(table)
    is_true = found.get(_DIFFERENCES) == 0 and _FOUND["cells"] in found
    return {"cells": found[_FOUND["cells"]]} if is_true else None


def _all_counted(table: Table) -> Figures | None:
    found = _cells(table)
    answered, kept = (found.get(_SINGLE[key]) for key in ("answered", "in_epochs"))
    is_true = answered is not None and answered == kept
    return {"answered": answered, "closings": found.get(_SINGLE["closings"])} if is_true else None


def _recovered(table: Table) -> Figures | None:
    seconds = _cells(table).get(_SINGLE["recovery_s"])
    is_true = isinstance(seconds, int | float) and seconds <= _MOST_RECOVERY_S
    return {"seconds": seconds} if is_true else None


def _nothing_lost(table: Table) -> Figures | None:
    found = _cells(table)
    is_true = found.get(_SINGLE["lost"]) == 0 and _SINGLE["taken"] in found
    return {"taken": found[_SINGLE["taken"]]} if is_true else None


def _not_overspent(table: Table) -> Figures | None:
    found = _cells(table)
    granted, cap, naive = (found.get(_SINGLE[key]) for key in ("granted", "cap", "naive_granted"))
    is_true = isinstance(granted, int | float) and isinstance(cap, int | float) and granted <= cap
    return {"granted": granted, "cap": cap, "naive": naive} if is_true else None


def _all_paid(table: Table) -> Figures | None:
    return {} if _cells(table).get(_SINGLE["unpaid"]) == 0 else None


_MOST_RECOVERY_S = 5
_READINGS = {
    "seed": Reading(
        "{cells} sums were compared with the truth, and none differs.", _no_difference
    ),
    "closing": Reading(
        "All {answered} frames answered with 202 are counted in {closings} epochs.", _all_counted
    ),
    "killed": Reading("Everything was as before {seconds} s after the return.", _recovered),
    "hangs": Reading("Everything was as before {seconds} s after the return.", _recovered),
    "sigterm": Reading("None of {taken} frames answered with 202 is lost.", _nothing_lost),
    "spending": Reading(
        "{granted} spends were granted, {cap} are in the budget; the twin granted {naive}.",
        _not_overspent,
    ),
    "publishing": Reading("No release is without a charge.", _all_paid),
}


def page_of(found: Json) -> Page:
    """Describe the report of a storm."""
    runs = [(name, key, run) for name in _TITLES for key, run in found.get(name, {}).items()]
    failed = [(name, key) for name, key, run in runs if not run["is_exact"]]
    faults = [f"{_name(name, key)}: {fault}" for name, key, run in runs for fault in run["faults"]]
    return Page(
        "chaos, naive twin" if found["is_naive"] else "chaos",
        _QUESTION,
        "",
        _sentence(len(runs), len(failed)),
        not failed,
        (),
        [_section(name, found[name]) for name in _TITLES if name in found],
        RunCard(_card(found)),
        faults,
    )


def _sentence(runs: int, failed: int) -> str:
    if failed:
        return f"{failed} of {runs} runs went wrong: see which, and by how much."
    which = f"All {runs} runs are" if runs > 1 else "The one run is"
    return f"{which} exact: nothing accepted was lost, and nothing counted twice."


def _section(name: str, runs: Json) -> Section:
    title, intro = _TITLES[name]
    return Section(title, intro, [_table(name, key, run) for key, run in runs.items()])


def _table(name: str, key: str, run: Json) -> Table:
    rows = list(_storm(run) if "plan" in run else _single(run))
    header: tuple[str, ...] = _HEADER
    shown: list[tuple[Cell, ...]] = [*rows]
    if "plan" not in run:
        header, shown = ("What", "found"), [(row[0], row[2]) for row in rows]
    kind = key if key in _READINGS else "seed"
    faults = f" Not exact: {'; '.join(run['faults'])}." if not run["is_exact"] else ""
    topic = () if faults else (_READINGS[kind],)
    return Table(_name(name, key), f"{_DESCRIBES[kind]}{faults}", header, shown, (topic,))


def _name(name: str, key: str) -> str:
    return _RUNS.get(key, f"Seed {key}") if key in _RUNS else f"{_TITLES[name][0]}, seed {key}"


def _storm(run: Json) -> Iterator[Row]:
    """List what was done beside what was planned."""
    plan = run["plan"]
    for key, words in _STORM.items():
        if key in plan:
            yield words, plan[key], run.get(key)
    for key, words in _FOUND.items():
        if key in run:
            yield words, None, run[key]
    truth = {"counted": run.get("frames"), "reports": run.get("reports"), "pending": 0}
    poison = plan.get("poison", 0)  # an ad server lets none through
    yield from _account(run, {**truth, "dead_letters": poison, "late": plan.get("stragglers", 0)})
    yield _DIFFERENCES, 0, len(run["faults"])


def _single(run: Json) -> Iterator[Row]:
    for key, words in _SINGLE.items():
        value = run.get(key)
        if isinstance(value, str | int | float):
            yield words, None, value
    for key, words in (("answers", "Frames answered with"), ("probes", "Other requests: ")):
        counts = run.get(key)
        for status, count in counts.items() if isinstance(counts, dict) else ():
            yield f"{words.rstrip()} {status}", None, count
    for service, seconds in run.get("ready_again_s", {}).items():
        yield f"Seconds until the {service} was ready again", None, seconds
    yield from _account(run, {})


def _account(run: Json, truth: Json) -> Iterator[Row]:
    for key, words in _ACCOUNT.items():
        if key in run.get("conservation", {}):
            yield words, truth.get(key), run["conservation"][key]


def _card(found: Json) -> list[tuple[str, str]]:
    machine = found["machine"]
    return [
        ("Durability", str(found["durability"])),
        ("Seeds", ", ".join(str(seed) for seed in found["seeds"])),
        ("Time", f"{found['elapsed_s']} s on the clock"),
        ("Machine", f"{machine['cores']} cores, Python {machine['python']}"),
        ("Load of the machine", f"{machine['load_before']} before, {machine['load_after']} after"),
    ]
