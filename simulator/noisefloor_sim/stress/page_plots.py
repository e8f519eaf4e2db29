"""The plots of a load's report: rates, latencies over load, the spectrum, and the timeline."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noisefloor_sim.report import Curve, Plot, readings
from noisefloor_sim.stress.figures import StressFigure, figures, runs_by_step

Json = Mapping[str, Any]  # what json reads
_RATE = "Offered load, requests a second"
_MOST_SPECTRA = 6
_OBJECTIVE = "objective"
_MOST_PROCESSES = 5


def rate_plots(found: Json) -> list[Plot]:
    """Return achieved and accepted load, and latency, over offered load."""
    known = _by_name(found)
    rates = _rates(found)
    limit = found["objective"]["latency_ms"]
    percentile = f"p{found['objective']['percentile']:g}"
    return [
        Plot(
            "Offered, achieved and accepted load",
            "Achieved is what the client sent in time, accepted what was answered with 2xx, and "
            "goodput what was accepted within the objective's latency from due time.",
            _RATE,
            "Requests a second",
            [
                _curve("achieved", "achieved", rates, known),
                _curve("accepted", "accepted", rates, known),
                _curve("goodput", "goodput", rates, known),
                Curve("offered", rates, rates, role="baseline"),
            ],
            log_x=True,
            log_y=True,
        ),
        Plot(
            "Latency over load",
            f"From due time, the median over the runs of a step, with the least and the largest; "
            f"the objective is on {percentile}.",
            _RATE,
            "Milliseconds",
            [
                _curve("p50", "p50_ms", rates, known),
                _curve("p99", "p99_ms", rates, known),
                _curve("p99 from send time", "p99_from_send_ms", rates, known),
                Curve(_OBJECTIVE, rates, [limit] * len(rates), role="bound"),
            ],
            log_x=True,
            log_y=True,
            readings=(readings.against(_OBJECTIVE, is_lower_better=True),),
        ),
    ]


def _by_name(found: Json) -> dict[tuple[float, str], StressFigure]:
    """Return the figures of steps by rate and name; of two steps of one rate the later wins."""
    rates = {name: runs[0]["rate"] for name, runs in runs_by_step(found).items()}
    return {(rates[one.step], one.name): one for one in figures(found) if one.step in rates}


def _rates(found: Json) -> list[float]:
    return sorted({run["rate"] for run in found["runs"]})


def _curve(
    title: str, name: str, rates: Sequence[float], known: Mapping[tuple[float, str], StressFigure]
) -> Curve:
    found = [known.get((rate, name)) for rate in rates]

    def numbers(read: str) -> list[float]:
        return [math.nan if one is None else _ends(one)[read] for one in found]

    return Curve(title, rates, numbers("value"), numbers("low"), numbers("high"))


def _ends(one: StressFigure) -> dict[str, float]:
    return {"value": one.value, "low": min(one.values), "high": max(one.values)}


def latency_plots(found: Json) -> list[Plot]:
    """Return the percentile spectrum of some steps, from the slowest to the fastest load."""
    groups = list(runs_by_step(found).items())
    step = max(1, math.ceil(len(groups) / _MOST_SPECTRA))
    chosen = [(name, runs[-1]) for name, runs in groups[::step]]
    curves = [
        Curve(
            name,
            [1 / (1 - percent / 100) for percent, _ in run["spectrum"]],
            [latency for _, latency in run["spectrum"]],
        )
        for name, run in chosen
        if run["spectrum"]
    ]
    if not curves:
        return []
    return [
        Plot(
            "Percentile spectrum",
            "Latency from due time over 1 / (1 - percentile): 100 is the 99th percentile, 1,000 "
            "the 99.9th. The last run of each step; lines end where the sample does.",
            "1 / (1 - percentile)",
            "Milliseconds",
            curves,
            log_x=True,
            log_y=True,
        )
    ]


def timeline_plots(found: Json) -> list[Plot]:
    """Return rates, latencies, lag and processor time over the seconds of the run."""
    plots = [_rate_timeline(found), _latency_timeline(found)]
    if found["timeline"]:
        plots += [_lag_timeline(found), _cores_timeline(found)]
    return plots


def _seconds(found: Json) -> Iterator[tuple[float, Json, float]]:
    """Yield every second that was measured, with its time and the rate of its step."""
    for run in found["runs"]:
        for at, second in enumerate(run["by_second"]):
            length_s = min(1.0, run["seconds"] - at)
            yield run["measured_from_s"] + at, second, max(length_s, 1e-9)


def _rate_timeline(found: Json) -> Plot:
    rows = list(_seconds(found))
    times = [at for at, _, _ in rows]
    return Plot(
        "Sent and accepted",
        "Requests by the second in which they were due; warm-ups and pauses are left out.",
        "Seconds since the start of the run",
        "Requests a second",
        [
            Curve("sent", times, [one["n"] / length for _, one, length in rows], role="baseline"),
            Curve("accepted", times, [one["accepted"] / length for _, one, length in rows]),
        ],
        kind="scatter",
    )


def _latency_timeline(found: Json) -> Plot:
    rows = [(at, one) for at, one, _ in _seconds(found) if one["n"]]
    times = [at for at, _ in rows]
    limit = found["objective"]["latency_ms"]
    return Plot(
        "Latency by second",
        "From due time, by the second in which requests were due.",
        "Seconds since the start of the run",
        "Milliseconds",
        [
            Curve("p50", times, [one["p50"] for _, one in rows]),
            Curve("p99", times, [one["p99"] for _, one in rows]),
            Curve(_OBJECTIVE, times, [limit] * len(times), role="bound"),
        ],
        kind="scatter",
        log_y=True,
    )


def _lag_timeline(found: Json) -> Plot:
    rows = [one for one in found["timeline"] if one["pending"] is not None]
    times = [one["at_s"] for one in rows] or [0.0]
    return Plot(
        "Frames that wait to be counted",
        "In the streams, or at a worker.",
        "Seconds since the start of the run",
        "Frames",
        [Curve("pending", times, [float(one["pending"]) for one in rows] or [math.nan])],
    )


def _cores_timeline(found: Json) -> Plot:
    rows = found["timeline"]
    times = [one["at_s"] for one in rows]
    used: dict[str, float] = {}
    for one in rows:
        for name, cores in one["cores"].items():
            used[name] = used.get(name, 0.0) + cores
    names = sorted(used, key=lambda name: -used[name])[:_MOST_PROCESSES]
    curves = [
        Curve(name, times, [one["cores"].get(name, math.nan) for one in rows]) for name in names
    ]
    machine = Curve("machine", times, [one["busy_cores"] for one in rows], role="baseline")
    return Plot(
        "Cores in use",
        f"Of the {len(names)} processes that used most, and of the whole machine.",
        "Seconds since the start of the run",
        "Cores",
        [*curves, machine],
    )
