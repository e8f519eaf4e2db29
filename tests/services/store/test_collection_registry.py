"""The registry of collections: a name is used once, whenever a service is killed."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from redis import Redis

from noisefloor.roles import CollectionConfig, kinds_from_sizes
from noisefloor_services.store.collection_registry import CollectionRegistry, Registration
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.scripts import Command
from noisefloor_services.store.server import Server

COLLECTION = CollectionConfig(kinds=kinds_from_sizes({"clicks": {"size": 4}}), minimum_batch=100)
OTHER = CollectionConfig(kinds=kinds_from_sizes({"clicks": {"size": 5}}), minimum_batch=100)


@pytest.fixture
def server(valkey: EmbeddedServer) -> Iterator[Server]:
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    connected = Server(valkey.url)
    yield connected
    connected.close()


class Killed(BaseException):
    """The process ends here."""


class MortalServer(Server):
    """Connects as a process that is killed after some calls.

    Args:
        url: Of the server.
        calls: That it still makes.
    """

    def __init__(self, url: str, calls: int) -> None:
        super().__init__(url)
        self._calls = calls

    def _send(self, commands: Sequence[Command], *, is_atomic: bool) -> list[Any]:  # Any: as there
        if not self._calls:
            raise Killed
        self._calls -= 1
        return super()._send(commands, is_atomic=is_atomic)


def test_a_used_name_stays_used_whenever_the_service_that_registers_it_is_killed(
    valkey: EmbeddedServer, server: Server
) -> None:
    registry = CollectionRegistry(server, Layout())
    assert registry.add("tea", COLLECTION) is Registration.NEW
    registry.drop("tea")
    for calls in range(10):
        mortal = MortalServer(valkey.url, calls)
        try:
            found = CollectionRegistry(mortal, Layout()).add("tea", COLLECTION)
        except Killed:
            found = None
        finally:
            mortal.close()
        assert registry.find("tea") is None
        assert (registry.names(), registry.are_there(["tea"])) == ([], [False])
        if found is Registration.GONE:
            return
    raise AssertionError("it makes more calls than that")


def test_a_used_name_that_an_older_version_left_registered_is_not_served(server: Server) -> None:
    registry, layout = CollectionRegistry(server, Layout()), Layout()
    registry.add("rum", COLLECTION)
    server.call("HSET", layout.collections, "tea", COLLECTION.content)
    server.call("SADD", layout.used_names, "tea")
    assert registry.find("tea") is None
    assert registry.are_there(["tea", "rum"]) == [False, True]
    assert registry.names() == ["rum"]
    assert registry.add("tea", COLLECTION) is Registration.GONE


def test_a_name_stands_for_one_document(server: Server) -> None:
    registry = CollectionRegistry(server, Layout())
    assert [registry.add("tea", one) for one in (COLLECTION, COLLECTION, OTHER)] == [
        Registration.NEW,
        Registration.SAME,
        Registration.OTHER,
    ]
    found = registry.find("tea")
    assert found is not None
    assert (found.kinds, found.name) == (COLLECTION.kinds, "tea")
