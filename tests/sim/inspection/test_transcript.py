"""The transcript: what came by which connection, each report once, in any order of frames."""

import numpy as np

from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import Aggregator
from noisefloor.wire import sealed_frames, symbol_kind
from noisefloor_sim.inspection import (
    MOST_CONNECTIONS,
    DeviceFrame,
    FrameTap,
    PlainFlow,
    Transcript,
)

KIND = symbol_kind("toy", 9)
USERS = np.array([0, 0, 0, 2, 2, 3, MOST_CONNECTIONS])
SYMBOLS = {0: [5, 1, 7, 2, 3, 4, 8], 1: [6, 0, 5, 8, 8, 1, 1], 2: [2, 2, 2, 4, 4, 0, 0]}


def tapped(epochs: tuple[int, ...], *, is_linked: bool = True) -> Transcript | None:
    """Send the frame of each epoch twice, in this order."""
    tap, server = FrameTap(is_linked=is_linked), Aggregator([KIND])
    tap.open([PlainFlow("toy", KIND, range(3), {"symbol": "uint8"})], server)
    receive = tap.watch(server.apply)
    with new_run():
        for epoch in epochs:
            rows = np.array(SYMBOLS[epoch])
            (frame,) = sealed_frames(KIND, epoch, rows, SeededSource(1, "frames", epoch))
            sent = DeviceFrame("toy", 0, frame, rows, 0, epoch, USERS)
            tap.expect(sent)
            receive(sent.data)
            receive(sent.data)
    return tap.transcript("toy")


def test_reports_are_counted_once_by_connection_and_epoch_in_any_order() -> None:
    for epochs in ((0, 1), (1, 0)):
        transcript = tapped(epochs)
        assert transcript is not None
        assert transcript.counts(4, 2).tolist() == [[3, 3], [0, 0], [2, 2], [1, 1]]


def test_halves_hold_what_users_sent_first_and_as_much_of_each() -> None:
    for epochs in ((0, 1, 2), (2, 1, 0)):
        transcript = tapped(epochs)
        assert transcript is not None
        halves = transcript.halves(60)  # the median user sends two reports on the odd day
        assert halves is not None
        assert [half.tolist() for half in halves] == [[[5, 1], [2, 3]], [[6, 0], [8, 8]]]
        assert [half.shape for half in transcript.halves(1) or ()] == [(3, 1), (3, 1)]


def test_one_day_has_no_halves_and_connections_that_are_not_linked_no_transcript() -> None:
    one = tapped((0,))
    assert one is not None
    assert one.halves(60) is None
    assert tapped((0, 1), is_linked=False) is None
