"""The probe says which promise a server cannot make, and lets no server vouch for itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from noisefloor_services.store.durability import (
    Durability,
    ServerFacts,
    StoreRequirement,
    probe_server,
)
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.server import Server

SOUND = ServerFacts(
    product="redis",
    version="7.4.1",
    compatible_with=(7, 4, 1),
    role="master",
    appendonly="yes",
    appendfsync="always",
    no_appendfsync_on_rewrite="no",
    maxmemory_policy="noeviction",
    maxmemory=1 << 30,
)


def unkept(facts: ServerFacts, durability: Durability = Durability.DISK) -> list[StoreRequirement]:
    return [one.promise for one in facts.unkept(durability)]


def test_a_sound_server_keeps_every_promise() -> None:
    assert unkept(SOUND) == []


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ({"compatible_with": (6, 2, 0)}, StoreRequirement.COMMANDS),
        ({"appendonly": "no"}, StoreRequirement.DISK),
        ({"appendfsync": "everysec"}, StoreRequirement.DISK),
        ({"appendfsync": None}, StoreRequirement.DISK),
        ({"no_appendfsync_on_rewrite": "yes"}, StoreRequirement.DISK),
        ({"maxmemory_policy": "allkeys-lru"}, StoreRequirement.NO_EVICTION),
        ({"maxmemory": 0}, StoreRequirement.MEMORY_BOUND),
        ({"role": "slave"}, StoreRequirement.WRITABLE),
        ({"is_waitaof_honest": False}, StoreRequirement.WAITAOF),
        ({"has_waitaof": False}, StoreRequirement.WAITAOF),
    ],
)
def test_every_fault_is_named(fault: dict[str, object], promise: StoreRequirement) -> None:
    facts = replace(SOUND, **fault)  # type: ignore[arg-type]  # fields by name
    assert unkept(facts) == [promise]
    assert facts.unkept(Durability.DISK)[0].text.endswith(".")


def test_memory_needs_no_log() -> None:
    assert unkept(replace(SOUND, appendonly="no", appendfsync=None), Durability.MEMORY) == []


@pytest.mark.parametrize("durability", list(Durability))
def test_the_embedded_server_keeps_what_its_durability_says(
    tmp_path: Path, durability: Durability, product: str, binary: Path
) -> None:
    with EmbeddedServer(tmp_path, durability, binary=binary) as embedded:
        facts = probe_server(Server(embedded.url))
    assert facts.product == product
    assert facts.compatible_with >= (7, 0)
    assert unkept(facts, durability) == []
    assert (StoreRequirement.DISK in unkept(facts)) == (durability is Durability.MEMORY)
    assert durability.promise.endswith(".")


def test_a_server_that_syncs_once_a_second_does_not_keep_disk_nor_tell_the_truth(
    tmp_path: Path, binary: Path
) -> None:
    lazy = {"appendonly": "yes", "appendfsync": "everysec"}
    with EmbeddedServer(tmp_path, settings=lazy, binary=binary) as embedded:
        server = Server(embedded.url)
        facts = probe_server(server)
        assert server.call("DBSIZE") == 0  # the probe leaves nothing behind
    assert StoreRequirement.DISK in unkept(facts)
    assert facts.has_waitaof == (facts.compatible_with >= (7, 2))
    assert (facts.is_waitaof_honest is not None) == facts.has_waitaof
    # What this release answers; where it becomes honest, the promise is simply kept.
    assert (StoreRequirement.WAITAOF in unkept(facts)) == (not facts.is_waitaof_honest)
    texts = [
        one.text
        for one in facts.unkept(Durability.DISK)
        if one.promise is StoreRequirement.WAITAOF
    ]
    assert all(("has no WAITAOF" in text) != facts.has_waitaof for text in texts)


def test_settings_that_may_not_be_read_count_as_not_kept(tmp_path: Path, binary: Path) -> None:
    hidden = {"rename-command": 'CONFIG ""'}
    with EmbeddedServer(tmp_path, settings=hidden, binary=binary) as embedded:
        facts = probe_server(Server(embedded.url))
    assert unkept(facts) == [StoreRequirement.DISK] * 3
    assert "unknown" in facts.unkept(Durability.DISK)[0].text
