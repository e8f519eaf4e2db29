"""The laws of reports of whole records, for many reports and many candidates at once."""

import math
from collections.abc import Sequence

import numpy as np

from noisefloor.adversary.records.symmetric import Channel
from noisefloor.checks import Floats, check_count
from noisefloor.collection.classes import Codes
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.tuples import response_over
from noisefloor.collection.unified import UnifiedResponse, check_codes
from noisefloor.mechanisms.base import Reports

RecordResponse = UnifiedResponse | JointResponse
"""What answers for a whole record."""


def channels(mechanism: UnifiedResponse) -> list[Channel]:
    """Return what each value of a record goes through."""
    return [Channel.of(one) for one in mechanism.responses]


def sizes_of(mechanism: RecordResponse) -> tuple[int, ...]:
    """Return the classes of each value of a record, the label among them where there is one."""
    if isinstance(mechanism, UnifiedResponse):
        return mechanism.sizes
    return (*mechanism.sizes, *([2] * mechanism.labelled))


def check_place(place: int, width: int) -> int:
    """Return the place of one of so many values; from the end if negative."""
    return check_count(place, "place", least=-width, most=width - 1) % width


def record_logs(mechanism: RecordResponse, reports: Reports, rows: Codes) -> Floats:
    """Return ln P(report | record), a row per report and a column per record."""
    candidates = check_codes(rows, sizes_of(mechanism))
    if isinstance(mechanism, UnifiedResponse):
        return _unified_logs(mechanism, check_codes(reports, mechanism.sizes), candidates)
    return _joint_logs(mechanism, mechanism.check_reports(reports), candidates)


def _unified_logs(mechanism: UnifiedResponse, reports: Reports, rows: Codes) -> Floats:
    """Each value that is a candidate's own counts by ln(keep / lie)."""
    keeps = np.log([one.keep for one in channels(mechanism)])
    lies = np.log([one.lie for one in channels(mechanism)])
    told = _marked(reports, mechanism.sizes) * np.repeat(keeps - lies, mechanism.sizes)
    return np.asarray(told @ _marked(rows, mechanism.sizes).T + lies.sum())


def _joint_logs(mechanism: JointResponse, reports: Reports, rows: Codes) -> Floats:
    """Only whether all parts of the tuple are a candidate's own counts."""
    sizes = sizes_of(mechanism)
    told, chosen = np.asarray(reports, dtype=np.int64), mechanism.chosen
    places = np.full((len(told), chosen + mechanism.labelled), len(mechanism.sizes))
    places[:, :chosen] = told[:, :chosen]
    marks = np.zeros((len(told), sum(sizes)))
    np.put_along_axis(marks, _starts(sizes)[places] + told[:, chosen:], 1.0, axis=1)
    own = marks @ _marked(rows, sizes).T > places.shape[1] - 0.5
    spaces = [Channel.of(response_over(one, mechanism.epsilon)) for one in mechanism.spaces]
    logs = np.log([(one.keep, one.lie) for one in spaces])[mechanism.groups_of(told)]
    draws = math.log(math.comb(len(mechanism.sizes), chosen))
    return np.where(own, logs[:, :1], logs[:, 1:]) - draws


def _marked(rows: Reports, sizes: Sequence[int]) -> Floats:
    """Return rows with a one at each of their classes, one value after the other."""
    marks = np.zeros((len(rows), sum(sizes)))
    np.put_along_axis(marks, _starts(sizes) + np.asarray(rows, dtype=np.int64), 1.0, axis=1)
    return marks


def _starts(sizes: Sequence[int]) -> Reports:
    return np.cumsum([0, *sizes[:-1]])
