"""Made-up figures of a load, in the form in which the program leaves them."""

from typing import Any

Json = dict[str, Any]  # what json reads


def use(cores: float, pending: tuple[int, ...] = (0, 0)) -> Json:
    process = {
        "cores": cores, "cpu_s": 5 * cores, "memory_bytes": 1 << 26, "descriptors": 9,
        "switches": 500,
    }  # fmt: skip
    return {
        "seconds": 5.0, "processes": {"ad-server": process, "load-client-1": process},
        "machine_cores": 2 * cores, "other_cores": 0.0, "steal": 0.0,
        "load": 1.0, "pending": list(pending),
    }  # fmt: skip


def run(number: int, rate: float, p99_ms: float, *, is_search: bool = True) -> Json:
    """Return one run of a step that holds if its p99 is within 50 ms."""
    is_met = p99_ms <= 50
    marks = {"p50": p99_ms / 5, "p90": p99_ms / 2, "p99": p99_ms, "p99.9": None, "max": 2 * p99_ms}
    accepted = {"accepted": int(5 * rate), "refused_for_good": 0}
    return {
        "step": f"{rate:g}/s" if is_search else "step-1",
        "number": number, "repeat": 0, "is_search": is_search, "rate": rate, "seconds": 5.0,
        "n": int(5 * rate), "offered": rate, "achieved": rate, "accepted": rate,
        "goodput": 0.9 * rate, "phases": [[rate, rate, 5.0]],
        "classes": accepted, "repeats": {}, "given_up": 0, "failed_share": 0.0,
        "latency_ms": {"due": marks, "sent": marks, "delay": {**marks, "p99": 0.4}},
        "spectrum": [[50.0, p99_ms / 5], [90.0, p99_ms / 2], [99.0, p99_ms]],
        "verdict": {
            "is_met": is_met, "is_trusted": True,
            "broken": [] if is_met else [f"p99 is {p99_ms:g} ms, above 50 ms"],
        },
        "limit": {"what": "" if is_met else "ad-server at 97% of a core", "is_client": False},
        "use": use(0.5 if is_met else 0.97), "cost": use(0.5), "rows": int(5000 * rate),
        "frames": int(5 * rate), "begun_s": 7.0 * number, "measured_from_s": 7.0 * number + 1,
        "drained_s": 0.1, "client_cpu_us": 60.0, "connections": 20,
        "by_second": 5 * [
            {"n": int(rate), "accepted": int(rate), "p50": p99_ms / 5, "p99": p99_ms}
        ],
    }  # fmt: skip


def found(*, is_complete: bool = True, counted: int = 9_000) -> Json:
    """Return the figures of a whole load: a step, and a knee between 400 and 440 a second."""
    runs = [run(0, 200, 10, is_search=False), run(1, 400, 30), run(2, 440, 80), run(3, 400, 34)]
    runs[-1]["repeat"] = 1
    services = {
        "accepted": 9_100, "counted": counted, "duplicates": 100, "dead_letters": 0, "late": 0,
        "pending": 0, "missing": 0, "reports": 9_000_000, "is_conserved": True,
    }  # fmt: skip
    return {
        "format": 1, "is_complete": is_complete, "why": "" if is_complete else "interrupted",
        "seed": 1, "cores": 2, "shares": {"frames": 1.0}, "duplicates": 0.0, "processes": 1,
        "objective": {
            "percentile": 99.0, "latency_ms": 50.0, "refused": 0.001, "lag_grows": False,
        },
        "runs": runs,
        "knee": {
            "low": 400.0, "high": 440.0,
            "runs": [{"rate": 400.0, "held": 2, "of": 2}, {"rate": 440.0, "held": 0, "of": 1}],
            "limit": "ad-server at 97% of a core", "broken": ["p99 is 80 ms, above 50 ms"],
            "is_lower_bound": False,
        },
        "timeline": [
            {"at_s": at, "pending": 3, "busy_cores": 1.0, "steal": 0.0, "load": 1.0,
             "cores": {"ad-server": 0.5, "load-client-1": 0.2}}
            for at in range(1, 20)
        ],
        "account": {
            "answered": 9_100, "to_count": 9_000, "unknown": 0, "services": services,
            "is_conserved": counted == 9_000,
        },
    }  # fmt: skip
