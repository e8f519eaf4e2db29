"""The tap: what arrives is matched, counted once, and compared with what was released and paid."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from noisefloor.privacy import FlowEvidence
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import Aggregator
from noisefloor.wire import Kind, record_kind, symbol_kind
from noisefloor.wire.columns import Integers, Symbols
from noisefloor_sim.inspection import (
    DeviceFrame,
    FrameTap,
    LedgerPrice,
    PlainFlow,
    device_frames,
)
from noisefloor_sim.inspection.tap import fingerprint

KIND = symbol_kind("toy", 4)
ROWS = 400
COLUMNS = {"symbol": "uint8"}


def frames_of(
    kind: Kind = KIND, rows: object = None, *, epoch: int = 0
) -> tuple[DeviceFrame, ...]:
    reports = np.arange(ROWS) % 4 if rows is None else rows
    with new_run():
        source = SeededSource(3, "frames", epoch)
        return tuple(device_frames("toy", 0, kind, epoch, reports, source, truth=reports))


def tapped(
    change: Callable[[FrameTap, Aggregator, list[DeviceFrame]], None] | None = None,
    *,
    spent: int = ROWS * 5,
    kind: Kind = KIND,
    sent: tuple[DeviceFrame, ...] | None = None,
) -> FlowEvidence:
    """Send a frame twice and close; ``change`` may interfere before it is sent."""
    tap, aggregator = FrameTap(), Aggregator([kind])
    tap.open([PlainFlow("toy", kind, range(1), COLUMNS, LedgerPrice("toy report", 5))], aggregator)
    frames = list(frames_of() if sent is None else sent)
    for frame in frames:
        tap.expect(frame)
    if change is not None:
        change(tap, aggregator, frames)
    receive = tap.watch(aggregator.apply)
    for frame in [*frames, *frames]:
        receive(frame.data)
    aggregator.close(kind.name, 0)
    return tap.evidence({"toy report": spent})["toy"]


def test_what_is_sent_twice_is_read_once_and_equals_what_was_released() -> None:
    found = tapped()
    assert found.faults == ()
    assert found.rows == ROWS
    assert found.verdict == "consistent"


def test_reports_that_were_not_debited_or_debited_twice_are_found() -> None:
    for spent in (0, ROWS * 10):
        (fault,) = tapped(spent=spent).faults
        assert fault.startswith("400 reports cost 0.002 in all, and accounts were debited")
    assert tapped(spent=0).verdict == "unaccounted"


def test_a_server_that_counts_more_than_arrived_is_found() -> None:
    def count_beside(tap: FrameTap, aggregator: Aggregator, frames: list[DeviceFrame]) -> None:
        aggregator.apply(frames_of(rows=np.zeros(3, dtype=np.int64), epoch=0)[0].data)

    (fault,) = [one for one in tapped(count_beside).faults if "server" in one]
    assert fault == "the server released another number of reports than arrived"


def test_a_frame_that_no_device_sent_is_found() -> None:
    def add(tap: FrameTap, aggregator: Aggregator, frames: list[DeviceFrame]) -> None:
        with new_run():
            source = SeededSource(9, "other")
            frames += device_frames(
                "toy", 0, KIND, 0, np.zeros(5, int), source, truth=np.zeros(5, int)
            )

    assert "a frame arrived that no device sent (2 times)" in tapped(add).faults


def test_a_retry_with_other_bytes_is_found() -> None:
    tap, aggregator = FrameTap(), Aggregator([KIND])
    tap.open([PlainFlow("toy", KIND, range(1), COLUMNS)], aggregator)
    (first,), (second,) = frames_of(), frames_of(rows=np.zeros(ROWS, dtype=np.int64))
    assert first.frame.batch_id == second.frame.batch_id  # of one stream: an id that is used again
    tap.expect(first)
    receive = tap.watch(aggregator.apply)
    for frame in (first, second):
        receive(frame.data)
    aggregator.close("toy", 0)
    (fault,) = tap.evidence({})["toy"].faults
    assert fault == "a frame that is sent again has other bytes than the first time"


def test_rows_in_the_order_of_users_are_found_and_random_ones_are_not() -> None:
    (frame,) = frames_of()
    kept = replace(frame, frame=replace(frame.frame, order=np.arange(ROWS)))
    (fault,) = tapped(sent=(kept,)).faults  # its values do not fit either
    assert fault.startswith("rows keep an order: rows ")


def test_a_frame_with_one_more_column_is_found() -> None:
    wide = record_kind("toy", {"symbol": Symbols(4), "extra": Integers(0, 9)})
    plain = record_kind("toy", {"symbol": Symbols(4)})
    rows = {"symbol": np.arange(ROWS) % 4, "extra": np.arange(ROWS) % 10}
    tap, aggregator = FrameTap(), Aggregator([wide])
    tap.open([PlainFlow("toy", plain, range(1), COLUMNS)], aggregator)
    (frame,) = frames_of(wide, rows)
    tap.expect(frame)
    tap.watch(aggregator.apply)(frame.data)
    aggregator.close("toy", 0)
    faults = tap.evidence({})["toy"].faults
    assert any("extra" in fault for fault in faults)


@pytest.mark.parametrize(
    ("name", "fault"),
    [("tea", ""), ("", "version in its header"), ("coffee", "does not declare")],
)
def test_a_frame_for_a_named_collection_has_to_name_it(name: str, fault: str) -> None:
    tap, aggregator = FrameTap(collection="tea"), Aggregator([KIND], collections=(name,))
    tap.open([PlainFlow("toy", KIND, range(1), COLUMNS)], aggregator)
    assert tap.is_named("toy")
    (frame,) = frames_of()
    sent = frame.addressed({"toy": KIND}, name)
    tap.expect(sent)
    tap.read(sent.data, aggregator.apply(sent.data).status)  # as a service answers: no frame
    aggregator.close("toy", 0)
    faults = tap.evidence({})["toy"].faults
    assert any(fault in one for one in faults) if fault else faults == ()


def test_a_query_counts_nowhere_and_names_no_collection() -> None:
    tap = FrameTap(collection="tea")
    tap.open([PlainFlow("toy", KIND, range(1), COLUMNS)], None)
    assert not tap.is_named("toy")
    (frame,) = frames_of()
    tap.expect(frame)
    tap.read(frame.data, None)
    assert tap.evidence({})["toy"].faults == ()


def test_a_fingerprint_is_that_of_a_multiset() -> None:
    kind = record_kind("records", {"one": Symbols(9), "other": Integers(-5, 5)})
    one, other = np.arange(200) % 9, np.arange(200) % 11 - 5
    batch = kind.encode({"one": one, "other": other})
    order = np.argsort(one)
    again = kind.encode({"one": one[order], "other": other[order]})
    assert fingerprint(kind, batch) == fingerprint(kind, again)
    changed = other.copy()
    changed[7] = 5
    assert fingerprint(kind, batch) != fingerprint(
        kind, kind.encode({"one": one, "other": changed})
    )
    swapped = kind.encode({"one": one, "other": other[order]})
    assert fingerprint(kind, batch) != fingerprint(kind, swapped)


@pytest.mark.parametrize("outcome", [None, "counted"])
def test_what_a_server_does_not_say_is_taken_as_counted(outcome: object) -> None:
    tap, aggregator = FrameTap(), Aggregator([KIND])
    tap.open([PlainFlow("toy", KIND, range(1), COLUMNS)], aggregator)
    (frame,) = frames_of()
    tap.expect(frame)
    aggregator.apply(frame.data)
    tap.read(frame.data, outcome)
    aggregator.close("toy", 0)
    assert tap.evidence({})["toy"].faults == ()
