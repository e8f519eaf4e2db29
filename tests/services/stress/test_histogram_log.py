"""Logs of histograms: the form that other tools read, and back."""

from pathlib import Path

import pytest

from noisefloor.errors import BadParameter
from noisefloor_services.stress.histogram import LatencyHistogram
from noisefloor_services.stress.histogram_log import HistogramInterval, read_log, write_log

INTERVALS = [
    HistogramInterval("due", 0.0, 1.0, LatencyHistogram.of([1_000, 2_500])),
    HistogramInterval("due:200-per-s:3", 1.0, 2.5, LatencyHistogram.of([7])),
]


def test_a_log_has_the_head_and_lines_of_format_1_3(tmp_path: Path) -> None:
    write_log(tmp_path / "a.hlog", 1_600_000_000.5, INTERVALS)
    first, start, legend, one, two = (tmp_path / "a.hlog").read_text().splitlines()
    assert first == "#[Histogram log format version 1.3]"
    assert start.startswith("#[StartTime: 1600000000.500 (seconds since epoch), Sun Sep 13 12:26")
    assert legend.startswith('"StartTimestamp","Interval_Length","Interval_Max"')
    assert one.startswith("Tag=due,0.000,1.000,2.501,HISTFAAAA")
    assert two.startswith("Tag=due:200-per-s:3,1.000,2.500,0.007,HISTFAAAA")


def test_reading_a_log_gives_back_its_intervals(tmp_path: Path) -> None:
    write_log(tmp_path / "a.hlog", 0.0, INTERVALS)
    found = list(read_log(tmp_path / "a.hlog"))
    assert [(one.tag, one.start_s, one.length_s) for one in found] == [
        (one.tag, one.start_s, one.length_s) for one in INTERVALS
    ]
    for one, given in zip(found, INTERVALS, strict=True):
        assert (one.histogram.counts == given.histogram.counts).all()


def test_a_line_without_a_tag_is_refused(tmp_path: Path) -> None:
    line = INTERVALS[0].line.removeprefix("Tag=")
    (tmp_path / "a.hlog").write_text(f"{line}\n")
    with pytest.raises(BadParameter, match="tag"):
        list(read_log(tmp_path / "a.hlog"))
