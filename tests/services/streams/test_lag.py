"""How far the counting is behind is told exactly, also once frames were settled and deleted."""

import time

from noisefloor_services.streams.keys import GROUP
from noisefloor_services.streams.lag import Lag
from noisefloor_services.streams.server import Server
from stream_cases import CLICKS, frame, new_store, sent, worked


def test_what_waits_and_what_is_held_are_told_apart(server: Server) -> None:
    store = new_store(server)
    assert store.lags() == [Lag(0, 0, 0.0)]
    frames = [frame(CLICKS, 0, number) for number in range(9)]
    worked(store, frames[:3])
    assert store.lags() == [Lag(0, 0, 0.0)]
    sent(store, frames[3:])
    assert store.lags() == [Lag(6, 0, 0.0)]
    stream = store.layout.keys(0).frames
    server.call("XREADGROUP", "GROUP", GROUP, "me", "COUNT", 2, "STREAMS", stream, ">")
    (held,) = store.lags()
    for _ in range(500):
        if held.oldest_held_s > 0:
            break
        time.sleep(0.01)
        (held,) = store.lags()
    assert (held.undelivered, held.unacknowledged) == (4, 2)
    assert held.oldest_held_s > 0
    assert store.conservation().pending == held.undelivered + held.unacknowledged


def test_each_partition_is_told_for_itself(server: Server) -> None:
    store = sent(new_store(server, 3), [frame(CLICKS, 0, number) for number in range(20)])
    lags = store.lags()
    assert len(lags) == 3
    assert sum(one.undelivered for one in lags) == 20
    assert len({one.undelivered for one in lags} | {0}) > 1
