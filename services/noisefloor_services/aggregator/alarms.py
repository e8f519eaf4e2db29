"""What should never be and needs a person: acknowledged frames that do not count, full epochs.

Each is a metric, `noisefloor_alarm` by reason, and a sentence in `GET /conservation`, which
`noisefloor status` shows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from noisefloor_services.metrics import MetricSample
from noisefloor_services.streams import Conservation

NEARLY_FULL = 0.8
"""The share of its bounds from which an open epoch raises an alarm."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One reason for an alarm; the text is empty unless it is raised."""

    reason: str
    text: str


def raised(account: Conservation, fullness: float, log_trouble: str) -> Iterator[Alarm]:
    """Yield every reason, raised or not.

    Args:
        account: Frames by what became of them.
        fullness: Share of its bounds that the fullest open epoch has used.
        log_trouble: Why deleted frames stay on disk, or nothing.
    """
    count = account.late
    text = f"{count} frames were answered with 202 and do not count: their epoch was closed."
    yield Alarm("late", text if count else "")
    count = account.dead_letters
    text = f"{count} frames were accepted and can never count: see the dead letters."
    yield Alarm("dead_letters", text if count else "")
    count = account.refused_full
    text = f"{count} frames were refused: their epoch is full. Close epochs earlier."
    yield Alarm("full", text if count else "")
    text = f"An open epoch is {fullness:.0%} full: close it, or its devices are refused."
    yield Alarm("nearly_full", text if fullness >= NEARLY_FULL else "")
    yield Alarm("log_rewriting", log_trouble)


def samples(alarms: Iterable[Alarm]) -> Iterator[MetricSample]:
    """Write alarms as numbers: 1 where one is raised."""
    for one in alarms:
        text = "Whether something needs a person: 1 if so."
        yield MetricSample("alarm", text, int(bool(one.text)), {"reason": one.reason})
