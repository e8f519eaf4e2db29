"""Numbers for Prometheus, in its text form, within bounded memory.

Every label has a fixed list of values; what is not on it is counted as ``other``. So no request
can add a line, and nothing that a client sent can be in one.

``observe_request`` measures a request from outside an application: its status and duration.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import RedisError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noisefloor.errors import NoisefloorError


async def observe_request(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    clock: Callable[[], float],
    record: Callable[[int, float], None],
) -> None:
    """Serve one request and record its status and seconds; 500 if the app raised."""
    status, started = 500, clock()

    def noted(message: Message) -> Awaitable[None]:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        return send(message)

    try:
        await app(scope, receive, noted)
    finally:
        record(status, clock() - started)


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = frozenset(("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One metric at one time.

    Attributes:
        name: Of the metric, without the prefix.
        help: What it counts, one sentence.
        value: The number.
        labels: From a list that is fixed in the code.
        type: ``gauge`` or ``counter``.
    """

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    type: str = "gauge"


class MetricCounter:
    """Counts by one label.

    Args:
        name: Of the metric, without the prefix.
        text: What it counts, one sentence.
        label: Name of the label.
        values: Every value that it may have.
    """

    __slots__ = ("_counts", "_label", "_name", "_text")

    def __init__(self, name: str, text: str, label: str, values: Iterable[str]) -> None:
        self._name = name
        self._text = text
        self._label = label
        self._counts = dict.fromkeys((*values, OTHER), 0)

    def add(self, value: str, count: int = 1) -> None:
        """Count something."""
        self._counts[value if value in self._counts else OTHER] += count

    def samples(self) -> Iterable[MetricSample]:
        """Return the counts."""
        for value, count in self._counts.items():
            yield MetricSample(self._name, self._text, count, {self._label: value}, "counter")


class RequestLatency:
    """How long requests took, by method, route and kind of answer; as ASGI, outermost.

    Args:
        app: What answers.
        routes: Every route there is, as the interface describes it.
        clock: Seconds that never run backwards.
    """

    __slots__ = ("_app", "_clock", "_routes", "_seen")

    def __init__(
        self, app: ASGIApp, routes: Iterable[str], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._app = app
        self._routes = frozenset(routes)
        self._clock = clock
        self._seen: dict[tuple[str, str, str], _Histogram] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one connection."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        return observe_request(
            self._app,
            scope,
            receive,
            send,
            clock=self._clock,
            record=lambda status, taken_s: self._note(scope, status, taken_s),
        )

    def lines(self) -> Iterable[str]:
        """Write the histograms."""
        name = "noisefloor_request_seconds"
        yield f"# HELP {name} Time from request to answer."
        yield f"# TYPE {name} histogram"
        for (method, route, status), seen in sorted(self._seen.items()):
            labels = {"method": method, "route": route, "status": status}
            total = 0
            for bound, count in zip((*BOUNDS_S, "+Inf"), seen.counts, strict=True):
                total += count
                yield _line(f"{name}_bucket", {**labels, "le": f"{bound}"}, total)
            yield _line(f"{name}_sum", labels, seen.total_s)
            yield _line(f"{name}_count", labels, total)

    def _note(self, scope: Mapping[str, Any], status: int, taken_s: float) -> None:
        route = getattr(scope.get("route"), "path", OTHER)  # Any: ASGI's scope
        key = (
            scope["method"] if scope["method"] in _METHODS else OTHER,
            route if route in self._routes else OTHER,
            f"{status // 100}xx",
        )
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = _Histogram()
        seen.counts[bisect_left(BOUNDS_S, taken_s)] += 1
        seen.total_s += taken_s


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0


def available_samples(*sources: Callable[[], Iterable[MetricSample]]) -> Iterable[MetricSample]:
    """Return the samples of every source that answers; a source that is away has none."""
    for source in sources:
        try:
            yield from list(source())
        except (NoisefloorError, RedisError) as error:
            _log.warning("numbers cannot be had: %s", type(error).__name__)


def prometheus_text(samples: Iterable[MetricSample], more: Iterable[str] = ()) -> str:
    """Write samples as Prometheus reads them, each metric's together, and further lines."""
    by_name: dict[str, list[MetricSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for name, listed in by_name.items():
        lines += _metric(f"noisefloor_{name}", listed)
    return "\n".join([*lines, *more, ""])


def _metric(name: str, samples: Sequence[MetricSample]) -> Iterable[str]:
    yield f"# HELP {name} {samples[0].help}"
    yield f"# TYPE {name} {samples[0].type}"
    for sample in samples:
        yield _line(name, sample.labels, sample.value)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    listed = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{listed}}} {value}" if listed else f"{name} {value}"
