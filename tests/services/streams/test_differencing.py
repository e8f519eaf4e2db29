"""The store in Redis stands up to the attacks that the role stands up to, and gives its bytes."""

from collections.abc import Mapping

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from differencing import (
    BESIDE,
    COLLECTIONS,
    EQUAL,
    FRAMES,
    KINDS,
    MINIMUMS,
    MIXED,
    AttackStep,
    attacks,
    collection_of,
    isolated,
)
from noisefloor.errors import BadParameter, BatchTooSmall, EpochOpen
from noisefloor.roles import Aggregator
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import Producer
from properties import examples

_worlds = iter(range(10**6))


class StoreWorld:
    """Collections in one Redis, beside the role that saw the same frames.

    Args:
        server: Where they are.
        minimums: By collection.
    """

    def __init__(self, server: Server, minimums: Mapping[str, int] = EQUAL) -> None:
        self._server = server
        root = f"attack{next(_worlds)}"
        self._layouts = {one: Layout(f"{root}.{one}" if one else root, 2) for one in COLLECTIONS}
        self._collections = {one: collection_of(one, minimums[one]) for one in COLLECTIONS}
        self.roles = {
            name: Aggregator(KINDS, terms=one.terms, collections=one.frame_names)
            for name, one in self._collections.items()
        }
        self.stores: dict[str, EpochStore] = {}
        for one in COLLECTIONS:
            self.restart(one)
        self.differences: list[tuple[str, str, int]] = []

    def deliver(self, collection: str, data: bytes) -> None:
        """Append a frame without admission, and count it."""
        store = self.stores[collection]
        Producer(self._server, store.layout, store.kinds).append([data])
        Worker(store, abandoned_s=0.001).drain(patience_s=20)
        self.roles[collection].apply(data)

    def close(self, collection: str, kind: str, epoch: int) -> None:
        """Close an epoch."""
        self.stores[collection].close(kind, epoch)
        self.roles[collection].close(kind, epoch)

    def read(self, collection: str, kind: str, epoch: int) -> bytes | None:
        """Return the store's answer, and note if the role's is another one."""
        answer = _answer(self.stores[collection], kind, epoch)
        if answer != _answer(self.roles[collection], kind, epoch):
            self.differences.append((collection, kind, epoch))
        return answer

    def retire(self, collection: str, kind: str, epoch: int) -> None:
        """Retire an epoch, if it is closed."""
        if self.stores[collection].is_closed(kind, epoch):
            self.stores[collection].retire(kind, epoch)
            self.roles[collection].retire(kind, epoch)

    def restart(self, collection: str) -> None:
        """Open the store anew."""
        self.stores[collection] = EpochStore.of(
            self._server, self._layouts[collection], self._collections[collection]
        )
        self.stores[collection].prepare()


def _answer(holder: EpochStore | Aggregator, kind: str, epoch: int) -> bytes | None:
    try:
        return holder.answer(kind, epoch)
    except (BatchTooSmall, EpochOpen, BadParameter):
        return None


@given(steps=attacks(most=6), minimums=st.sampled_from(MINIMUMS))
@example(steps=BESIDE, minimums=MIXED)
@examples(6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_attack_on_the_store_isolates_fewer_reports_than_the_minimum(
    valkey: EmbeddedServer, steps: list[AttackStep], minimums: Mapping[str, int]
) -> None:
    server = Server(valkey.url)
    world = StoreWorld(server, minimums)
    assert isolated(world, steps, minimums) == []
    assert world.differences == []
    server.close()


def test_the_attack_reaches_answers_in_the_store(valkey: EmbeddedServer) -> None:
    server = Server(valkey.url)
    world = StoreWorld(server)
    for place, one in enumerate(FRAMES[:4]):
        world.deliver(one.collection, FRAMES[place].data)
    world.close("", "summed", 0)
    assert world.read("", "summed", 0) == world.roles[""].answer("summed", 0)
    server.close()
