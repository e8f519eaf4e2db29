"""The figures of a stress run as plain data, for the file that the report is made from."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from noisefloor_services.stress.core import AnswerClass
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.histogram_log import HistogramInterval
from noisefloor_services.stress.job import StressJob
from noisefloor_services.stress.knee import Knee
from noisefloor_services.stress.objective import failed_share
from noisefloor_services.stress.sampler import Sample
from noisefloor_services.stress.session import StepRun, StressOutcome, unknown_outcomes
from noisefloor_services.stress.step_record import FROM_DUE, TAGS, StepRecord

FORMAT = 1
_PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)
_TAIL = 5
"""Values beyond a percentile that it takes to report it; an objective needs ten in its plan."""

Json = dict[str, Any]  # what json writes


def stress_json(job: StressJob, outcome: StressOutcome, *, is_complete: bool, why: str) -> Json:
    """Return everything but the histograms.

    Args:
        job: What was to be done.
        outcome: What came of it.
        is_complete: Whether everything was run.
        why: Why not, in words.
    """
    return {
        "format": FORMAT,
        "is_complete": is_complete,
        "why": why,
        "seed": job.seed,
        "cores": os.cpu_count() or 1,
        "objective": asdict(job.objective),
        "shares": dict(job.shares),
        "duplicates": job.duplicates,
        "processes": job.processes,
        "runs": [_run(run, round(1000 * job.objective.latency_ms)) for run in outcome.runs],
        "knee": None if outcome.knee is None else _knee(outcome.knee, outcome.runs),
        "timeline": list(_timeline(outcome)),
        "account": _account(job, outcome, is_complete=is_complete),
    }


def intervals_by_second(outcome: StressOutcome) -> Iterator[HistogramInterval]:
    """Yield the histograms of every second of every run that had a request."""
    for run in outcome.runs:
        start_s = _measured_from_s(run)
        for tag in TAGS:
            for at, one in enumerate(run.record.histograms[tag]):
                if one.total:
                    yield HistogramInterval(tag, start_s + at, 1.0, one)


def intervals_by_step(outcome: StressOutcome) -> Iterator[HistogramInterval]:
    """Yield the histograms of every run of every step; the tag names both."""
    for run in outcome.runs:
        start_s, name = _measured_from_s(run), run.step.name.replace("/", "-per-")
        for tag in TAGS:
            whole = run.record.whole(tag)
            yield HistogramInterval(f"{tag}:{name}:{run.number}", start_s, _seconds(run), whole)


def _measured_from_s(run: StepRun) -> float:
    warm_s = sum(phase.seconds for phase in run.step.phases if not phase.is_measured)
    return run.begun_s + warm_s


def _seconds(run: StepRun) -> float:
    return sum(phase.seconds for phase in run.step.phases if phase.is_measured)


def _in_time(record: StepRecord, limit_us: int) -> int:
    """Return how many requests were accepted within the objective's latency from due time."""
    latencies = record.whole(FROM_DUE)
    within = round(latencies.total * (1 - latencies.share_above(limit_us)))
    return min(within, record.count(AnswerClass.ACCEPTED))


def _run(run: StepRun, limit_us: int) -> Json:
    record, seconds = run.record, _seconds(run)
    accepted = record.count(AnswerClass.ACCEPTED)
    return {
        "step": run.step.name,
        "number": run.number,
        "repeat": run.repeat,
        "is_search": run.is_search,
        "rate": run.step.rate,
        "seconds": seconds,
        "n": record.count(),
        "offered": record.count() / seconds,
        "achieved": record.sent_in_time / seconds,
        "accepted": accepted / seconds,
        "goodput": _in_time(record, limit_us) / seconds,
        "phases": [
            (phase.rate, phase.end_rate, phase.seconds)
            for phase in run.step.phases
            if phase.is_measured
        ],
        "classes": _classes(record),
        "repeats": {one.name.lower(): count for one, count in sorted(record.repeats.items())},
        "given_up": record.given_up,
        "failed_share": failed_share(record),
        "latency_ms": {tag: _marks(record.whole(tag)) for tag in TAGS},
        "spectrum": _spectrum(record.whole(FROM_DUE)),
        "verdict": asdict(run.verdict),
        "limit": asdict(run.limit),
        "use": asdict(run.use) | {"other_cores": run.use.other_cores},
        "cost": asdict(run.cost),
        "rows": run.rows,
        "frames": run.frames,
        "begun_s": run.begun_s,
        "measured_from_s": _measured_from_s(run),
        "drained_s": run.drained_s,
        "client_cpu_us": 1e6 * record.cpu_s / max(1, run.planned),
        "connections": record.most_open,
        "by_second": list(_by_second(record)),
    }


def _classes(record: StepRecord) -> dict[str, int]:
    return {one.name.lower(): record.count(one) for one in AnswerClass if one}


def is_resolved(percent: float, total: int) -> bool:
    """Whether enough of the values lie beyond a percentile to report it."""
    return total * (1 - percent / 100) >= _TAIL - 1e-9


def _marks(found: LatencyHistogram) -> dict[str, float | None]:
    """Return percentiles in milliseconds; one that the sample does not resolve is left open."""
    total = found.total
    return {
        **{
            f"p{percent:g}": found.percentile_us(percent) / 1000
            if is_resolved(percent, total)
            else None
            for percent in _PERCENTILES
        },
        "max": found.longest_us / 1000,
    }


def _spectrum(found: LatencyHistogram) -> list[tuple[float, float]]:
    """Return percentiles from the median on, each half of the rest, as far as they resolve."""
    points = []
    for step in range(2, 40):
        percent = 100 * (1 - 2 ** (-step / 2))
        if percent > _PERCENTILES[-1] or not is_resolved(percent, found.total):
            break
        points.append((percent, found.percentile_us(percent) / 1000))
    return points


def _by_second(record: StepRecord) -> Iterator[Json]:
    for at, counts in enumerate(record.classes.tolist()):
        due = record.histograms[FROM_DUE][at]
        yield {
            "n": sum(counts),
            "accepted": counts[AnswerClass.ACCEPTED],
            "p50": due.percentile_us(50) / 1000,
            "p99": due.percentile_us(99) / 1000,
        }


def _knee(knee: Knee, runs: Sequence[StepRun]) -> Json:
    """Return the interval, and what was at its limit at its upper end."""
    broken = [run for run in runs if run.is_search and run.step.rate == knee.high]
    broken = [run for run in broken if not run.verdict.is_met]
    limits = [run.limit.what for run in broken if run.limit.what]
    is_bound = not math.isfinite(knee.high) or any(run.limit.is_client for run in broken)
    return {
        "low": knee.low,
        "high": knee.high if math.isfinite(knee.high) else None,
        "runs": [{"rate": rate, "held": met, "of": of} for rate, met, of in knee.runs],
        "limit": max(limits, key=limits.count) if limits else "",
        "broken": list(broken[0].verdict.broken) if broken else [],
        "is_lower_bound": is_bound,
    }


def _timeline(outcome: StressOutcome) -> Iterator[Json]:
    for before, now in pairwise(outcome.samples):
        seconds = now.at_s - before.at_s
        if seconds < 0.5:  # around the ends of steps: ticks are too coarse for less
            continue
        yield {
            "at_s": now.at_s - outcome.begun_s,
            "pending": None if now.lag is None else now.lag.pending,
            "busy_cores": (now.machine.busy_s - before.machine.busy_s) / seconds,
            "steal": (now.machine.steal_s - before.machine.steal_s) / seconds,
            "load": now.machine.load,
            "cores": _cores(before, now, seconds),
        }


def _cores(before: Sample, now: Sample, seconds: float) -> dict[str, float]:
    return {
        name: (one.cpu_s - before.processes[name].cpu_s) / seconds
        for name, one in now.processes.items()
        if name in before.processes
    }


def _account(job: StressJob, outcome: StressOutcome, *, is_complete: bool) -> Json:
    """Compare what the clients were answered with what was counted, after the last step.

    Of a run that was broken off, what was under way is not known: then nothing may be missing.
    """
    answered = sum(run.record.everywhere(AnswerClass.ACCEPTED) for run in outcome.runs)
    to_count = sum(run.frames for run in outcome.runs)
    unknown = unknown_outcomes(outcome)
    found = job.counting.account()
    ours = {"answered": answered, "to_count": to_count, "unknown": unknown}
    if found is None:
        return {**ours, "services": None, "is_conserved": None}
    most = to_count + unknown if is_complete else math.inf
    is_settled = found["is_conserved"] and not found["pending"]
    is_conserved = bool(is_settled and to_count <= found["counted"] <= most)
    return {**ours, "services": found, "is_conserved": is_conserved}
