"""The scripts: exact to 64 bits, known after a restart, and nothing before all is checked."""

from importlib.resources import files

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from noisefloor.wire import symbol_kind
from noisefloor.wire.frames import seal
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.batch import cells_of
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from properties import examples
from stream_cases import CLICKS, GOOD, GRID, frame, new_store, sent, worked

LEAST, MOST = -(1 << 63), (1 << 63) - 1
any_cell = st.integers(LEAST, MOST) | st.sampled_from(
    [
        sign * (1 << power) + step
        for power in (31, 32, 52, 53, 62)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ]
)


def grid_cell(store: EpochStore) -> int:
    kept = store.server.call("GET", store.layout.keys(0).kept("grid", 0))
    return int(cells_of(kept, 1)[0])


def grid_value(number: int) -> int:
    numbers = np.arange(number % 3 + 1) + number
    return int(((numbers * 715_827_883) % (1 << 32) - (1 << 31)).sum())


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_cell, st.integers(0, 1 << 20))
@example(MOST, 5)
@example(LEAST, 0)
@example((1 << 53) + 1, 4)
@example(-1, 5)
def test_a_cell_is_exact_to_64_bits_or_nothing_happens(
    server: Server, start: int, number: int
) -> None:
    store = new_store(server)
    keys = store.layout.keys(0)
    server.call("SET", keys.kept("grid", 0), np.array([start], "<i8").tobytes())
    sent(store, [frame(GRID, 0, number)])
    expected = start + grid_value(number)
    if LEAST <= expected <= MOST:
        Worker(store).step()
        assert grid_cell(store) == expected
    else:
        with pytest.raises(ResponseError, match="CELLOVERFLOW"):
            Worker(store).step()
        assert grid_cell(store) == start
        assert store.conservation().pending == 1
        assert server.call("EXISTS", keys.seen("grid", 0), keys.epoch("grid", 0)) == 0


ADDER = (files("noisefloor_services.store") / "lua" / "cells.lua").read_text()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(any_cell, any_cell), min_size=1, max_size=20))
@example([(1, (1 << 32) - 1)])  # the lower halves come to exactly one word
@example([(-1, 1), (1 << 62, (1 << 62) - 1), (MOST, LEAST)])
def test_cells_are_added_exactly_or_not_at_all(
    server: Server, pairs: list[tuple[int, int]]
) -> None:
    text = ADDER + "\nreturn added(ARGV[1], ARGV[2])"
    old, delta = (np.array(column, "<i8").tobytes() for column in zip(*pairs, strict=True))
    sums = [first + second for first, second in pairs]
    reply = server.call("EVAL", text, 0, old, delta)
    if all(LEAST <= one <= MOST for one in sums):
        assert cells_of(reply, len(pairs)).tolist() == sums
    else:
        assert reply is None


def test_a_double_would_have_lost_the_last_bit() -> None:
    assert int(float((1 << 53) + 1)) != (1 << 53) + 1


def test_scripts_are_loaded_again_when_the_server_forgot_them(server: Server) -> None:
    store = worked(new_store(server), GOOD[:4])
    server.call("SCRIPT", "FLUSH")
    worked(store, GOOD)
    assert store.conservation().counted == len(GOOD)


def test_many_cells_are_added_in_pieces(server: Server) -> None:
    wide = symbol_kind("wide", 100_000)
    store = EpochStore(server, Layout("wide"), [wide])
    store.prepare()
    symbols = np.array([0, 511, 512, 512, 99_999])
    frames = [seal(wide, 0, wide.encode(symbols), bytes([n] * 16)) for n in range(3)]
    worked(store, frames)
    store.close("wide", 0)
    cells, rows = store.release("wide", 0)
    assert rows == 15
    assert (cells == 3 * np.bincount(symbols, minlength=100_000)).all()


def test_entry_ids_do_not_tell_when_a_frame_came(server: Server) -> None:
    store = sent(new_store(server), GOOD[:3])
    entries = server.call("XRANGE", store.layout.keys(0).frames, "-", "+")
    assert [entry_id for entry_id, _ in entries] == [b"0-1", b"0-2", b"0-3"]


def test_nothing_is_left_of_a_frame_that_was_counted(server: Server) -> None:
    store = worked(new_store(server), [frame(CLICKS, 0, number) for number in range(9)])
    keys = store.layout.keys(0)
    assert server.call("XLEN", keys.frames) == 0
    assert server.call("XPENDING", keys.frames, "aggregators")[0] == 0
    assert server.call("XINFO", "CONSUMERS", keys.frames, "aggregators") == []
