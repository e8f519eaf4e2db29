"""Log files of histograms (``.hlog``, format 1.3), as HdrHistogram's own tools read them.

A line is one interval: its tag, its start and its length in seconds, its largest value in
milliseconds, and the encoded histogram, whose values are microseconds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_services.stress.histogram import LatencyHistogram

_FIRST = "#[Histogram log format version 1.3]"
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


@dataclass(frozen=True, slots=True)
class HistogramInterval:
    """One interval of a log.

    Attributes:
        tag: What was measured; no comma or space is in it.
        start_s: Since the start of the log.
        length_s: How long it lasted.
        histogram: Of the values in it.
    """

    tag: str
    start_s: float
    length_s: float
    histogram: LatencyHistogram

    @property
    def line(self) -> str:
        """The interval as a line of a log."""
        most_ms = self.histogram.longest_us / 1000
        numbers = f"{self.start_s:.3f},{self.length_s:.3f},{most_ms:.3f}"
        return f"Tag={self.tag},{numbers},{self.histogram.encoded()}"


def write_log(path: Path, since_s: float, intervals: Iterable[HistogramInterval]) -> None:
    """Write a log.

    Args:
        path: The file.
        since_s: The start of the log, in seconds since 1970.
        intervals: In the order of their starts.
    """
    day = datetime.fromtimestamp(since_s, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    head = [_FIRST, f"#[StartTime: {since_s:.3f} (seconds since epoch), {day}]", _LEGEND]
    lines = [*head, *(one.line for one in intervals)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def read_log(path: Path) -> Iterator[HistogramInterval]:
    """Yield the intervals of a log that ``write_log`` wrote."""
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(("#", '"')):
            continue
        tag, start, length, _, encoded = line.split(",")
        if not tag.startswith("Tag="):
            raise BadParameter("line", "<text>", "to begin with a tag")
        histogram = LatencyHistogram.decoded(encoded)
        yield HistogramInterval(tag[4:], float(start), float(length), histogram)
