"""A snapshot of an aggregator is canonical, complete, and refused when it is damaged."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.canonical_json import canonical_json
from noisefloor.errors import BadSnapshot
from noisefloor.roles import Aggregator
from noisefloor.wire import Integers, Kind, Text, bit_vector_kind, record_kind, symbol_kind
from noisefloor.wire.frames import seal

CLICKS = bit_vector_kind("clicks", 5)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(8)})
KINDS = (CLICKS, NOTES)


def frame(kind: Kind, epoch: int, number: int) -> bytes:
    rows: object = np.eye(5, dtype=np.bool_)
    if kind == NOTES:
        rows = {"age": np.array([9 - number, number]), "note": ["x", "secret"]}
    return seal(kind, epoch, kind.encode(rows), number.to_bytes(16, "big"))


FRAMES = [frame(kind, epoch, number) for kind in KINDS for epoch in (0, 1) for number in range(3)]
steps = st.lists(
    st.one_of(
        st.sampled_from([*FRAMES, b"", b"nonsense", FRAMES[0][:-1]]),
        st.tuples(st.sampled_from(["clicks", "notes"]), st.integers(0, 2)),
    ),
    max_size=25,
)


def take(aggregator: Aggregator, history: list[bytes | tuple[str, int]]) -> None:
    for step in history:
        if isinstance(step, bytes):
            aggregator.apply(step)
        else:
            aggregator.close(*step)


def an_aggregator() -> Aggregator:
    aggregator = Aggregator(KINDS)
    take(aggregator, [*FRAMES, b"nonsense", ("clicks", 0), frame(CLICKS, 0, 9)])
    return aggregator


@given(steps, steps)
def test_an_aggregator_restored_goes_on_as_if_nothing_had_happened(
    before: list[bytes | tuple[str, int]], after: list[bytes | tuple[str, int]]
) -> None:
    aggregator = Aggregator(KINDS)
    take(aggregator, before)
    restored = Aggregator.restore(aggregator.snapshot(), KINDS)
    assert restored.snapshot() == aggregator.snapshot()
    take(aggregator, after)
    take(restored, after)
    assert restored.snapshot() == aggregator.snapshot()
    assert restored.counters == aggregator.counters
    assert restored.dead_letters == aggregator.dead_letters


def test_taking_a_snapshot_or_restoring_it_midway_changes_nothing() -> None:
    clean, midway = Aggregator(KINDS), Aggregator(KINDS)
    take(clean, [*FRAMES])
    for data in FRAMES:
        midway.apply(data)
        midway = Aggregator.restore(midway.snapshot(), KINDS)
        midway.snapshot()
    assert midway.snapshot() == clean.snapshot()
    midway.close("notes", 0)
    assert midway.release_rows("notes", 0).num_rows == 6


def test_a_snapshot_does_not_tell_which_rows_came_together() -> None:
    pairs = ([[1, 2], [3, 4]], [[1, 3], [2, 4]], [[4, 1], [3, 2]])
    snapshots = set()
    for pair in pairs:
        aggregator = Aggregator([NOTES])
        for number, ages in enumerate(pair):
            rows = NOTES.encode({"age": np.array(ages), "note": ["", ""]})
            aggregator.apply(seal(NOTES, 0, rows, number.to_bytes(16, "big")))
        snapshots.add(aggregator.snapshot())
    assert len(snapshots) == 1


def test_every_damaged_byte_is_found() -> None:
    data = an_aggregator().snapshot()
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(BadSnapshot):
            Aggregator.restore(bytes(damaged), KINDS)
    for length in (0, 1, len(data) // 2, len(data) - 1):
        with pytest.raises(BadSnapshot):
            Aggregator.restore(data[:length], KINDS)


def test_a_snapshot_of_other_kinds_is_refused() -> None:
    data = an_aggregator().snapshot()
    for kinds in (
        [CLICKS],
        [*KINDS, symbol_kind("more", 3)],
        [bit_vector_kind("clicks", 6), NOTES],
    ):
        with pytest.raises(BadSnapshot):
            Aggregator.restore(data, kinds)


def resigned(change: Callable[[Any], None]) -> bytes:
    """Change a snapshot's body and give it the checksum that fits."""
    body = json.loads(an_aggregator().snapshot())["body"]
    change(body)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    outer = {"body": body, "checksum": hashlib.sha256(text.encode()).hexdigest()}
    return json.dumps(outer, sort_keys=True, separators=(",", ":")).encode()


def test_the_helper_that_changes_snapshots_changes_nothing_by_itself() -> None:
    assert resigned(lambda body: None) == an_aggregator().snapshot()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(version=3),
        lambda body: body.update(version=1),
        lambda body: body.pop("terms"),
        lambda body: body["terms"].update(minimum=0),
        lambda body: body["terms"].update(protections={"clicks": {}}),
        lambda body: body.update(more=1),
        lambda body: body.pop("counters"),
        lambda body: body["counters"].update(counted=0),
        lambda body: body["counters"].update(counted="12"),
        lambda body: body["counters"].update(user=1),
        lambda body: body["kinds"]["clicks"].update(floor=-1),
        lambda body: body["kinds"]["clicks"].update(closed=7),
        lambda body: body["kinds"]["clicks"]["epochs"]["0"].update(tally="AAAA"),
        lambda body: body["kinds"]["clicks"]["epochs"]["0"].update(tally="AAAAAAAAAAA="),
        lambda body: body["kinds"]["clicks"]["epochs"]["0"].update(seen="AAAA"),
        lambda body: body["kinds"]["clicks"]["epochs"].update(x={}),
        lambda body: body["kinds"]["notes"]["epochs"]["0"].update(collected="AAAA"),
        lambda body: body["kinds"]["notes"]["epochs"]["0"].update(collected=""),
        lambda body: body["kinds"]["notes"]["epochs"]["0"].update(rows=1.5),
        lambda body: body["kinds"]["notes"]["epochs"]["0"].update(rows=1),
        lambda body: body["dead_letters"].append({}),
        lambda body: body.update(dead_letters=None),
        lambda body: body.update(kinds=[]),
    ],
)
def test_a_changed_body_with_a_fitting_checksum_is_refused(change: Callable[[Any], None]) -> None:
    with pytest.raises(BadSnapshot):
        Aggregator.restore(resigned(change), KINDS)


@given(
    st.one_of(
        st.binary(max_size=60), st.just(b"[" * 100_000), st.just(b"null"), st.just(b'{"body":3}')
    )
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadSnapshot):
        Aggregator.restore(data, KINDS)


def test_a_snapshot_of_the_first_version_is_read_and_released_without_a_minimum() -> None:
    role = Aggregator(KINDS)
    role.apply(seal(CLICKS, 0, CLICKS.encode(np.ones((1, 5), np.uint8)), bytes(16)))
    role.close("clicks", 0)
    outer = json.loads(role.snapshot())
    body = {**outer["body"], "version": 1}
    del body["terms"]
    digest = hashlib.sha256(canonical_json(body)).hexdigest()
    read = Aggregator.restore(canonical_json({"body": body, "checksum": digest}), KINDS)
    assert read.snapshot() == role.snapshot()
    assert read.release("clicks", 0)[1] == 1
