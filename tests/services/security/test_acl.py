"""Each user of the Redis server can do its work, and what is not its work is refused."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

import valkeys
from noisefloor.accounting import LedgerTerms
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor_services.ad_server.report_tokens import ReportTokens
from noisefloor_services.ledger.redis_ledger import RedisLedger
from noisefloor_services.security.acl import store_users, write_acl_file

PASSWORDS = {user.name: f"{user.name}-".ljust(40, "x") for user in store_users()}
FRAMES = "noisefloor:{p0}:frames"
SUMS = "noisefloor:{p0}:kept:clicks:0"
TERMS = LedgerTerms.of(1.0, neighbours=Neighbours.USER)


@pytest.fixture(scope="module")
def address(binary: Path) -> Iterator[str]:
    with valkeys.folder() as folder:
        users, is_recent = folder / "users.acl", valkeys.is_recent(binary)
        write_acl_file(users, PASSWORDS, has_report_tokens=True, is_recent=is_recent)
        with valkeys.server(folder, "--aclfile", str(users), binary=binary) as url:
            yield url


def as_user(address: str, name: str) -> "Redis":
    return Redis.from_url(address, username=name, password=PASSWORDS[name])


def is_refused(client: "Redis", *command: str | bytes | int) -> bool:
    try:
        client.execute_command(*command)  # type: ignore[no-untyped-call]  # the library's
    except NoPermissionError:
        return True
    except ResponseError:
        return False
    return False


def test_no_one_logs_in_without_the_right_password(address: str) -> None:
    for client in (
        Redis.from_url(address),
        Redis.from_url(address, username="publisher", password="x" * 40),
        Redis.from_url(address, username="ad-server", password=PASSWORDS["publisher"]),
    ):
        with client, pytest.raises(AuthenticationError):
            client.ping()


@pytest.mark.parametrize("name", sorted(PASSWORDS))
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("CONFIG", "SET", "appendfsync", "no"),
        ("CONFIG", "REWRITE"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("RANDOMKEY",),
        ("MONITOR",),
        ("EVAL", "return 1", 0),
        ("FUNCTION", "LOAD", "x"),
        ("SCRIPT", "FLUSH"),
        ("ACL", "LIST"),
        ("ACL", "SETUSER", "x"),
        ("SHUTDOWN", "NOSAVE"),
        ("REPLICAOF", "NO", "ONE"),
        ("MIGRATE", "h", 1, "k", 0, 1),
        ("MODULE", "LIST"),
        ("CLIENT", "LIST"),
        ("CLIENT", "KILL", "TYPE", "normal"),
        ("RENAME", FRAMES, "x"),
        ("EXPIRE", FRAMES, 1),
        ("XTRIM", FRAMES, "MAXLEN", 0),
        ("PUBLISH", "channel", "x"),
        ("SWAPDB", 0, 1),
        ("SAVE",),
        ("BGSAVE",),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
def test_commands_that_no_user_has(
    address: str, name: str, command: tuple[str | int, ...]
) -> None:
    with as_user(address, name) as client:
        assert is_refused(client, *command)


def test_the_ad_server_appends_and_reads_nothing_back(address: str) -> None:
    with as_user(address, "ad-server") as client:
        with client.pipeline(transaction=True) as batch:
            batch.execute_command("XADD", FRAMES, "0-*", "f", b"frame")
            batch.execute_command("XLEN", FRAMES)
            assert batch.execute()[1] >= 1
        client.execute_command("HMGET", "noisefloor:settings", "partitions")
        for command in (
            ("XRANGE", FRAMES, "-", "+"),
            ("XREAD", "STREAMS", FRAMES, "0"),
            ("XREADGROUP", "GROUP", "aggregators", "me", "STREAMS", FRAMES, ">"),
            ("XDEL", FRAMES, "0-1"),
            ("XACK", FRAMES, "aggregators", "0-1"),
            ("DEL", FRAMES),
            ("GET", SUMS),
            ("SET", SUMS, "x"),
            ("XADD", "noisefloor:{p0}:kept", "*", "f", "x"),
            ("XADD", "other", "*", "f", "x"),
            ("HSET", "noisefloor:settings", "partitions", 2),
            ("HINCRBY", "noisefloor:{p0}:window:clicks", "floor", -1),
            ("HDEL", "noisefloor:{p0}:window:clicks", "3"),
            ("HINCRBY", "noisefloor:{p0}:epoch:clicks:0", "rows", 1),
            ("SADD", "noisefloor:{p0}:seen:clicks:0", "x"),
            ("HGET", "noisefloor:{ledger-x}:terms", "terms"),
            ("INFO",),
            ("CONFIG", "GET", "*"),
        ):
            assert is_refused(client, *command), command


def test_only_the_aggregator_rewrites_the_log(address: str) -> None:
    for name in PASSWORDS:
        with as_user(address, name) as client:
            assert is_refused(client, "BGREWRITEAOF") == (name != "aggregator")


def test_a_script_of_the_ad_server_has_the_rights_of_its_user(address: str) -> None:
    """What it may read, it cannot change; frames it can add, and not read back."""
    keys = ("noisefloor:{p0}:window:clicks", FRAMES, "noisefloor:{p0}:seen:clicks:0")
    calls = ("'HSET', KEYS[1], 'floor', 0", "'XRANGE', KEYS[2], '-', '+'", "'SADD', KEYS[3], 'x'")
    with as_user(address, "ad-server") as client:
        for call in calls:
            digest = client.script_load(f"return redis.call({call})")
            with pytest.raises(ResponseError, match=r"(?i)acl|permission|can't (access|run)"):
                client.evalsha(digest, len(keys), *keys)
        digest = client.script_load("return redis.call('HMGET', KEYS[1], 'floor')")
        assert client.evalsha(digest, len(keys), *keys) == [None]


def test_without_report_tokens_the_ad_server_has_no_key_of_theirs() -> None:
    strict = next(user for user in store_users() if user.name == "ad-server")
    assert not any("tokens" in key for key in (*strict.keys, *strict.more[1]))


def test_the_ad_server_spends_report_tokens(address: str) -> None:
    with as_user(address, "ad-server") as client:
        tokens = ReportTokens(client, 3)
        (token,) = tokens.issue(1)
        assert tokens.spend(token, b"batch")
        assert not tokens.spend(token, b"other")


def test_the_aggregator_has_streams_and_sums_and_no_ledger(address: str) -> None:
    with as_user(address, "aggregator") as client:
        client.execute_command("XGROUP", "CREATE", FRAMES, "aggregators", "0", "MKSTREAM")
        client.execute_command("XREADGROUP", "GROUP", "aggregators", "me", "STREAMS", FRAMES, ">")
        client.execute_command("SETRANGE", SUMS, 0, b"sums")
        script = client.register_script("return redis.call('HINCRBY', KEYS[1], 'rows', 1)")
        assert script(keys=["noisefloor:{p0}:counters"]) == 1
        for command in (
            ("XADD", FRAMES, "*", "f", "x"),
            ("HGET", "noisefloor:{ledger-x}:terms", "terms"),
            ("HINCRBY", "noisefloor:{ledger-x}:epsilons", "ann", -1),
            ("HGET", "noisefloor:{tokens}:3", "x"),
            ("GET", "elsewhere"),
            ("CONFIG", "GET", "*"),
        ):
            assert is_refused(client, *command), command
        with pytest.raises(ResponseError, match=r"ACL|permission|can't run"):
            client.register_script("return redis.call('FLUSHALL')")()


def test_the_publisher_keeps_its_ledger_and_can_take_nothing_out_of_it(address: str) -> None:
    with as_user(address, "publisher") as client:
        ledger = RedisLedger.create(client, "acl", TERMS)
        ledger.spend("ann", "s", Guarantee(0.5, Neighbours.USER), "clicks")
        assert ledger.publish("s", b"noise") == b"noise"
        assert ledger.would_spend("ann", Guarantee(0.5, Neighbours.USER)).is_allowed
        assert ledger.why("ann").startswith("ann has spent")
        assert ledger.restore(ledger.snapshot()) == 0
        assert ledger.subjects() == ["ann"]
        assert ledger.ledger_totals().settled == 1
        assert ledger.entry("s") is not None
        assert ledger.seal() == 0
        log, places = "noisefloor:{ledger-acl}:log:ann", "noisefloor:{ledger-acl}:places"
        for command in (
            ("DEL", log),
            ("UNLINK", log),
            ("LSET", log, 0, "x"),
            ("LPOP", log),
            ("RPOP", log),
            ("LREM", log, 0, "x"),
            ("LTRIM", log, 1, 0),
            ("LPUSH", log, "x"),
            ("LINSERT", log, "BEFORE", "x", "y"),
            ("HSET", places, "s", "x"),
            ("HDEL", places, "s"),
            ("HINCRBY", "noisefloor:{ledger-acl}:terms-2", "x", 1),
            ("EXPIRE", log, 1),
            ("SREM", "noisefloor:{ledger-acl}:settled", "s"),
            ("RENAME", log, "x"),
            ("SET", "noisefloor:{ledger-acl}:kept:s", "x"),
            ("APPEND", "noisefloor:{ledger-acl}:kept:s", "x"),
            ("GETDEL", "noisefloor:{ledger-acl}:kept:s"),
            ("GET", SUMS),
            ("XADD", FRAMES, "*", "f", "x"),
            ("CONFIG", "GET", "*"),
        ):
            assert is_refused(client, *command), command


def test_the_monitor_reads_and_the_operator_looks_at_settings(address: str) -> None:
    with as_user(address, "monitor") as client:
        assert client.info("memory")
        client.xlen(FRAMES)
        assert is_refused(client, "HSET", "noisefloor:settings", "x", "y")
        assert is_refused(client, "GET", SUMS)
        assert is_refused(client, "XLEN", "elsewhere")
    with as_user(address, "operator") as client:
        assert "always" in str(client.config_get("appendfsync"))
        client.set("noisefloor:probe", 1)
        assert is_refused(client, "SET", SUMS, "x")


def test_the_file_is_its_owners_and_holds_no_password(tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    write_acl_file(path, PASSWORDS)
    write_acl_file(path, PASSWORDS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert not any(password in text for password in PASSWORDS.values())
    assert text.splitlines()[0].startswith("user default off")
    assert [one.name for one in tmp_path.iterdir()] == ["users.acl"]


def test_weak_missing_and_shared_passwords_are_refused(tmp_path: Path) -> None:
    short = {**PASSWORDS, "monitor": "short"}
    shared = dict.fromkeys(PASSWORDS, "x" * 40)
    blank = {**PASSWORDS, "monitor": "x" * 32 + " +@all"}
    missing = {"monitor": "x" * 40}
    for wrong in (short, shared, blank, missing):
        with pytest.raises(BadParameter) as caught:
            write_acl_file(tmp_path / "users.acl", wrong)
        assert "xxxx" not in str(caught.value)
        assert "short" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadParameter):
        store_users("no{space")
