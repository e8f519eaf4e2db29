"""With the rights of their own users, services do all that they do, and nothing else works.

The server itself counts what it denied: not one command of the work may be among it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

import valkeys
from noisefloor.roles import Aggregator
from noisefloor.roles.collection_config import example_collection
from noisefloor.wire.frames import decode_frame
from noisefloor_services.ad_server.report_tokens import ReportTokens
from noisefloor_services.security.acl import StoreUser, store_users, write_acl_file
from noisefloor_services.store.collection_registry import CollectionRegistry, Registration
from noisefloor_services.store.durability import Durability, StoreRequirement, probe_server
from noisefloor_services.store.errors import FrameRefused, Refusal
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.model_broadcast import ModelBroadcast
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.pending import Lag, LagWatch
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import Producer, WritePath
from stream_cases import BAD, GOOD, KINDS, NAMED, differences, frame

LAYOUT = Layout(partitions=2)
USERS = {user.name: user for user in store_users(has_report_tokens=True)}
PASSWORDS = {name: f"{name}-".ljust(40, "x") for name in USERS}
LAZY = ("--appendfsync", "everysec", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")


@pytest.fixture(scope="module")
def address(binary: Path) -> Iterator[str]:
    with valkeys.folder() as folder:
        users, is_recent = folder / "users.acl", valkeys.is_recent(binary)
        write_acl_file(users, PASSWORDS, has_report_tokens=True, is_recent=is_recent)
        options = ("--aclfile", str(users), *LAZY)
        with valkeys.server(folder, *options, binary=binary) as url:
            yield url


def url_of(address: str, user: str) -> str:
    return address.replace("unix://", f"unix://{user}:{PASSWORDS[user]}@")


def denied(address: str) -> dict[str, int]:
    """Return how often the server denied anybody a command, a key or a channel."""
    with Redis.from_url(url_of(address, "operator")) as client:
        stats = client.info("stats")
    return {
        name: count
        for name, count in stats.items()
        if name.startswith("acl_access_denied_") and name != "acl_access_denied_auth"
    }


async def append(url: str, frames: list[bytes], layout: Layout = LAYOUT) -> None:
    ingest = Ingest(url, layout, high_water=1000)
    await ingest.start()
    try:
        await asyncio.gather(*(ingest.append(one, decode_frame(one, NAMED)) for one in frames))
    finally:
        await ingest.stop()


def test_the_streams_work_with_the_rights_of_ad_server_and_aggregator(address: str) -> None:
    before = denied(address)
    server = Server(url_of(address, "aggregator"))
    store, role = EpochStore(server, LAYOUT, KINDS), Aggregator(KINDS)
    store.prepare()
    broadcast = ModelBroadcast(server, LAYOUT)
    assert broadcast.started(b"first") == b"first" and broadcast.is_there()
    frames = [*GOOD, *GOOD[:5]]
    asyncio.run(append(url_of(address, "ad-server"), frames))
    Worker(store, abandoned_s=0.001).drain(patience_s=20)  # even takes over from itself
    for data in frames:
        role.apply(data)
    for kind in KINDS:
        store.close(kind.name, 0)
        role.close(kind.name, 0)
    assert differences(store, role) == []
    for number, refusal in ((99, Refusal.CLOSED), (99, Refusal.CLOSED), (0, None)):
        with pytest.raises(FrameRefused) if refusal else nullcontext() as raised:
            asyncio.run(append(url_of(address, "ad-server"), [frame(KINDS[0], 0, number)]))
        assert raised is None or raised.value.reason is refusal
    account = store.conservation()
    assert (account.late, account.refused_closed, account.refused_again) == (0, 1, 1)
    reader = Server(url_of(address, "ad-server"))
    unchecked = Producer(reader, LAYOUT, NAMED)
    unchecked.append([*BAD, frame(KINDS[0], 0, 98)])
    Worker(store).drain(patience_s=20)
    assert store.conservation().late == 1
    store.retire(KINDS[0].name, 0)
    assert store.waiting() == 0
    assert broadcast.replaced(b"first", b"second") == b"second"
    assert broadcast.replaced(b"first", b"other") == b"second"  # somebody was quicker
    assert LagWatch(server, LAYOUT).look() == [Lag(0, 0, 0.0, 0.0)] * 2
    notice = ModelBroadcast(reader, LAYOUT).read()
    assert notice is not None and notice.content == b"second"
    reader.close()
    assert WritePath(Server(url_of(address, "ad-server")), LAYOUT).lacks() == ""
    registry = CollectionRegistry(server, LAYOUT)
    assert registry.add("tea", example_collection()) is Registration.NEW
    tea = EpochStore(server, Layout("noisefloor.tea", 2), KINDS)
    tea.prepare()
    asyncio.run(append(url_of(address, "ad-server"), GOOD, tea.layout))
    assert Worker(tea, batch=2)._read(block_s=0.0)  # some are held, some wait, none is settled
    assert tea.waiting() == len(GOOD)
    registry.drop("tea")
    tea.drop()
    assert tea.waiting() == 0
    server.close()
    assert denied(address) == before


@pytest.mark.parametrize("namespace", ["noisefloor", "noisefloor.other"])
def test_no_user_can_delete_a_stream_with_unread_frames(address: str, namespace: str) -> None:
    layout = Layout(namespace, 2)
    stream, sums = layout.keys(0).frames, layout.keys(0).kept("clicks", 7)
    EpochStore(Server(url_of(address, "aggregator")), layout, KINDS).prepare()
    frames = [frame(KINDS[0], 5, number) for number in range(8)]
    asyncio.run(append(url_of(address, "ad-server"), frames, layout))
    with Redis.from_url(url_of(address, "aggregator")) as client:
        waiting = client.xlen(stream)
        client.execute_command("SET", sums, "x")
        for command in (
            ("DEL", stream),
            ("UNLINK", stream),
            ("UNLINK", sums, stream),
            ("XTRIM", stream, "MAXLEN", 0),
            ("SET", stream, "x"),
            ("RENAME", stream, sums),
            ("RENAME", sums, stream),
            ("COPY", sums, stream, "REPLACE"),
            ("EXPIRE", stream, 1),
            ("XADD", stream, "MAXLEN", 1, "0-*", "f", "x"),
            ("XGROUP", "DESTROY", stream, "aggregators"),
            ("XGROUP", "SETID", stream, "aggregators", "$"),
        ):
            assert is_denied(client, command), command
        script = client.register_script("return redis.call('UNLINK', KEYS[1])")
        with pytest.raises(ResponseError, match=r"ACL|permission|can't access"):
            script(keys=[stream])
        assert client.xlen(stream) == waiting > 0
        assert client.unlink(sums) == 1


def test_report_tokens_work_with_the_rights_of_the_ad_server(address: str) -> None:
    before = denied(address)
    with Redis.from_url(url_of(address, "ad-server")) as client:
        tokens = ReportTokens(client, 7)
        (token,) = tokens.issue(1)
        assert tokens.spend(token, b"one") and not tokens.spend(token, b"two")
        tokens.retire()
        assert not tokens.spend(token, b"one")
    assert denied(address) == before


def test_the_probe_works_with_the_rights_of_the_operator(address: str, product: str) -> None:
    before = denied(address)
    with closing(Server(url_of(address, "operator"))) as server:
        facts = probe_server(server, LAYOUT)
    assert (facts.product, facts.appendfsync, facts.appendonly) == (product, "everysec", "yes")
    unkept = {one.promise for one in facts.unkept(Durability.DISK)}
    assert {StoreRequirement.DISK} <= unkept <= {StoreRequirement.DISK, StoreRequirement.WAITAOF}
    assert denied(address) == before


def test_settings_that_a_service_may_not_read_are_unknown_and_not_promised(address: str) -> None:
    with closing(Server(url_of(address, "ad-server"))) as server:
        with pytest.raises(NoPermissionError):
            probe_server(server, LAYOUT)
    with closing(Server(url_of(address, "aggregator"))) as server:
        facts = probe_server(server, LAYOUT)
    assert facts.appendonly is facts.appendfsync is None
    assert StoreRequirement.DISK in {one.promise for one in facts.unkept(Durability.DISK)}


def commands(keys: list[str]) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Yield commands that could do harm: the name in a user's list, the key, the command."""
    first = keys[0]
    of_server: list[tuple[str, tuple[str | int, ...]]] = [
        ("flushall", ("FLUSHALL",)),
        ("config|set", ("CONFIG", "SET", "appendfsync", "no")),
        ("config|get", ("CONFIG", "GET", "*")),
        ("eval", ("EVAL", "return 1", 0)),
        ("keys", ("KEYS", "*")),
        ("scan", ("SCAN", 0)),
        ("acl|setuser", ("ACL", "SETUSER", "default", "on", "nopass", "+@all")),
        ("info", ("INFO", "server")),
    ]
    yield from ((name, "", command) for name, command in of_server)
    for key in keys:
        of_key: list[tuple[str, tuple[str | int, ...]]] = [
            ("xrange", ("XRANGE", key, "-", "+")),
            ("xread", ("XREAD", "STREAMS", key, "0")),
            ("xreadgroup", ("XREADGROUP", "GROUP", "aggregators", "x", "STREAMS", key, ">")),
            ("xtrim", ("XTRIM", key, "MAXLEN", 0)),
            ("get", ("GET", key)),
            ("hgetall", ("HGETALL", key)),
            ("expire", ("EXPIRE", key, 1)),
            ("rename", ("RENAME", key, first)),
        ]
        yield from ((name, key, command) for name, command in of_key)


def is_listed(user: StoreUser, name: str, key: str) -> bool:
    """Whether a user's list has a command for a key; for frames there is no second list."""
    more = () if key.endswith(":frames") else user.more[0]
    listed = (*user.commands, *more)
    containers = {one.partition("|")[0] for one in listed if "|" not in one}
    return name in listed or name.partition("|")[0] in containers


def is_denied(client: "Redis", command: tuple[str | int, ...]) -> bool:
    try:
        client.execute_command(*command)  # type: ignore[no-untyped-call]  # the library's
    except NoPermissionError:
        return True
    except ResponseError:
        return False  # allowed, and of another type
    return False


@pytest.mark.parametrize("user", USERS.values(), ids=lambda user: user.name)
def test_what_is_not_on_a_users_list_is_denied(address: str, user: StoreUser) -> None:
    one = LAYOUT.keys(0)
    keys = [one.frames, one.counters, one.kept("clicks", 0), LAYOUT.settings, "elsewhere"]
    with Redis.from_url(url_of(address, user.name)) as client:
        for name, key, command in commands(keys):
            assert is_listed(user, name, key) or is_denied(client, command), (user.name, command)
        assert is_denied(client, ("GET", "elsewhere"))


def test_only_the_aggregator_reads_a_frame_back(address: str) -> None:
    frames = LAYOUT.keys(0).frames
    for name in USERS:
        with Redis.from_url(url_of(address, name)) as client:
            read = is_denied(client, ("XRANGE", frames, "-", "+"))
            assert read == (name != "aggregator"), name
