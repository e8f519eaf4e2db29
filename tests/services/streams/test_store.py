"""The store in Redis comes to what the aggregator role comes to, whatever the history."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, EpochOpen
from noisefloor.roles import AggregationLimits, Aggregator
from noisefloor.wire import bit_vector_kind
from noisefloor_services.store.errors import BadStore
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import Conservation, EpochStore
from properties import examples
from stream_cases import (
    BAD,
    CLICKS,
    GOOD,
    GRID,
    KINDS,
    NOTES,
    differences,
    frame,
    new_store,
    released,
    worked,
)

# One server for all examples: each has keys of its own.
shared = examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])

closes = st.tuples(st.sampled_from([kind.name for kind in KINDS]), st.integers(0, 2))
actions = st.lists(st.sampled_from(GOOD + BAD) | closes, max_size=60)


@shared
@given(actions, st.sampled_from([1, 3]), st.sampled_from([1, 7, 64]))
def test_any_history_comes_to_what_the_role_comes_to(
    server: Server, actions: list[bytes | tuple[str, int]], partitions: int, batch: int
) -> None:
    store, role = new_store(server, partitions), Aggregator(KINDS)
    waiting: list[bytes] = []
    for action in [*actions, ("clicks", 0), ("grid", 0), ("notes", 0)]:
        if isinstance(action, bytes):
            role.apply(action)
            waiting.append(action)
        else:
            worked(store, waiting, batch=batch).close(*action)
            role.close(*action)
            waiting = []
    assert differences(store, role) == []


@shared
@given(
    st.lists(st.sampled_from(GOOD[:4] + GOOD[-4:] + BAD), max_size=30),
    st.integers(1, 5),
    st.sampled_from([1, 5]),
)
def test_the_bounds_are_those_of_the_role(
    server: Server, frames: list[bytes], bound: int, batch: int
) -> None:
    # One after the other, as the role does it. A batch is buried in another order than it came:
    # then which dead letters still find room may differ, so there is room for all.
    letters = bound if batch == 1 else 4096
    limits = AggregationLimits(
        frames=bound, rows=2 * bound, collected_bytes=40 * bound, dead_letters=letters
    )
    store, role = new_store(server, limits=limits), Aggregator(KINDS, limits=limits)
    for data in frames:
        role.apply(data)
    assert differences(worked(store, frames, batch=batch, abandoned_s=60), role) == []


def test_a_closed_epoch_never_changes_and_its_replay_counts_nothing(server: Server) -> None:
    frames = [frame(kind, 0, number) for kind in KINDS for number in range(5)]
    store = worked(new_store(server, 2), frames)
    for kind in KINDS:
        store.close(kind.name, 0)
        store.close(kind.name, 0)
    before = [released(store, kind, 0) for kind in KINDS]
    worked(store, [*frames, frame(CLICKS, 0, 9), frame(NOTES, 0, 9), frame(CLICKS, 0, 9)])
    assert [released(store, kind, 0) for kind in KINDS] == before
    account = store.conservation()
    assert (account.counted, account.duplicates, account.late) == (15, 16, 2)
    assert store.summary("clicks", 0).late_frames == 1


def test_the_frames_of_a_retired_epoch_stay_refused(server: Server) -> None:
    frames = [frame(CLICKS, 0, number) for number in range(5)]
    store = worked(new_store(server), frames)
    with pytest.raises(EpochOpen, match="retired"):
        store.retire("clicks", 0)
    store.close("clicks", 0)
    store.retire("clicks", 0)
    worked(store, frames)
    assert store.epochs("clicks") == ()
    assert store.conservation().late == 5
    assert store.is_closed("clicks", 0)
    with pytest.raises(BadParameter, match="retired"):
        store.release("clicks", 0)


def test_an_epoch_that_is_closed_in_one_partition_only_is_open(server: Server) -> None:
    store = worked(new_store(server, 2), [frame(CLICKS, 0, number) for number in range(9)])
    one = EpochStore(server, Layout(store.layout.namespace, 1), KINDS)
    one.close("clicks", 0)  # as if the closing service had died after the first partition
    assert one.is_closed("clicks", 0)
    assert not store.is_closed("clicks", 0)
    with pytest.raises(EpochOpen):
        store.release("clicks", 0)
    store.close("clicks", 0)
    assert store.release("clicks", 0)[1] == sum(number % 3 + 1 for number in range(9))


def test_an_epoch_far_ahead_cannot_be_closed(server: Server) -> None:
    store = new_store(server)
    with pytest.raises(BadParameter, match="window"):
        store.close("clicks", 32)
    for epoch in (2, 0, 1):
        store.close("clicks", epoch)
    store.close("clicks", 34)  # the window moved on


def test_what_is_no_kind_or_the_other_reduction_is_refused(server: Server) -> None:
    store = new_store(server)
    for ask in (
        lambda: store.release("notes", 0),
        lambda: store.release_rows("clicks", 0),
        lambda: store.summary("strange", 0),
        lambda: store.close("strange", 0),
    ):
        with pytest.raises(BadParameter, match="kind"):
            ask()


def test_keys_of_another_layout_or_of_other_kinds_are_left_alone(server: Server) -> None:
    store = new_store(server, 2)
    store.prepare()
    name = store.layout.namespace
    with pytest.raises(BadStore, match="partitions"):
        EpochStore(server, Layout(name, 3), KINDS).prepare()
    with pytest.raises(BadStore, match="clicks"):
        EpochStore(server, Layout(name, 2), [bit_vector_kind("clicks", 6), GRID]).prepare()


def test_no_key_lives_outside_the_hash_tag_of_its_partition(server: Server) -> None:
    store = worked(new_store(server, 2), GOOD + BAD)
    names = server.call("KEYS", f"{store.layout.namespace}:*")
    outside = [name for name in names if b":{p0}:" not in name and b":{p1}:" not in name]
    assert outside == [store.layout.settings.encode()]
    assert all(server.call("TTL", name) == -1 for name in names)


@pytest.mark.parametrize("missing", [-1, 0, 1])
def test_only_an_exact_account_is_conserved(missing: int) -> None:
    account = Conservation(15 + missing, 1, 2, 3, 4, 5, reports=99)
    assert (account.missing, account.is_conserved) == (missing, missing == 0)


def test_the_total_is_the_sum_of_every_outcome() -> None:
    parts = [Conservation(1, 2, 3, 4, 5, 6, 7), Conservation(10, 20, 30, 40, 50, 60, 70)]
    assert Conservation.total(parts) == Conservation(11, 22, 33, 44, 55, 66, 77)
    assert Conservation.total([]) == Conservation()
