"""Users of the Redis server: each service may do what it does, on its own keys, and nothing else.

The ad server may append frames and count how many wait; it can read none back. It sees which
epochs are open, how full they are and whether an id that it has was counted, and notes what it
refused. The aggregator has the streams and the sums; a stream of frames it reads and settles entry
by entry, and it has no command that deletes, overwrites or trims one. It may have the log on disk
rewritten. The publisher has the ledger, and no command that takes anything away from it. The
monitor reads numbers. The operator looks at the server's settings, which the probe at start-up
needs, and changes none. No user may empty the server, set it up or list its keys, or run a script
as text; the user that needs no password is off.

What this cannot do: a server runs a script with the rights of its caller. So the aggregator's
user has to have XDEL, by which what is settled goes. The publisher's user can append to the ledger
and has no command that changes, lowers or takes away anything. What a publisher that was taken
over appends has to follow the chain: every process checks each record before it spends after it.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from noisefloor.errors import BadParameter
from noisefloor_services.security.credentials import LEAST_TOKEN_SIGNS

_PASSWORD = re.compile(rf"[A-Za-z0-9._~+/=-]{{{LEAST_TOKEN_SIGNS},512}}", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_CONNECTION = ("ping", "hello", "auth", "client|setinfo", "client|setname", "client|id", "select")
_SINCE_7_2 = frozenset({"client|setinfo", "waitaof"})
_TRANSACTION = ("multi", "exec", "discard")
_SCRIPT = ("evalsha", "script|load", "script|exists")
_AD_SERVER = ("xadd", "xlen", "hmget", "hincrby", "hdel", "exists", "scard", "smismember", "sadd")
_AGGREGATOR_STREAMS = (
    *("xlen", "xack", "xdel", "xreadgroup", "xclaim", "xpending", "xrange"),
    *("xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xinfo"),
    *("exists", "info", "bgrewriteaof"),
)
_AGGREGATOR = (
    *("hget", "hmget", "hgetall", "hkeys", "hset", "hsetnx", "hincrby", "hdel", "hexists"),
    "hlen",
    *("sadd", "srem", "scard", "smembers", "sismember", "smismember"),
    *("get", "set", "getrange", "setrange", "strlen", "rpush", "lrange", "llen"),
    *("del", "unlink"),
)
"""On every key of the aggregator but the streams of frames."""

_PUBLISHER = (
    *("hget", "hmget", "hgetall", "hkeys", "hlen", "hexists", "hsetnx", "exists"),
    *("rpush", "llen", "lindex", "lrange"),
    *("sadd", "scard", "smembers", "sismember", "get", "setnx", "info"),
)
_MONITOR = ("info", "xlen", "xinfo", "hget", "hmget", "hgetall", "hlen", "scard", "strlen")
_OPERATOR = ("info", "config|get", "set", "del", "waitaof")


@dataclass(frozen=True, slots=True)
class StoreUser:
    """What one service may do.

    Attributes:
        name: Of the user.
        commands: As the server names them.
        keys: Patterns of keys, each with the server's sign for how they may be used: ``~`` for
            all, ``%R~`` for reading, ``%W~`` for writing.
        more: Further commands, on further patterns only (a selector of the server).
    """

    name: str
    commands: tuple[str, ...]
    keys: tuple[str, ...]
    more: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def line(self, password: str, *, is_recent: bool = True) -> str:
        """Write the user as a line of the file; the password is in it as a hash."""
        if not _PASSWORD.fullmatch(password):
            rule = f"at least {LEAST_TOKEN_SIGNS} signs that match {_PASSWORD.pattern}"
            raise BadParameter("password", "<password>", rule)
        digest = hashlib.sha256(password.encode("ascii")).hexdigest()
        allowed = (
            f"+{command}"
            for command in (*_CONNECTION, *self.commands)
            if is_recent or command not in _SINCE_7_2
        )
        start = ("user", self.name, "on", f"#{digest}", "resetkeys", "resetchannels", "-@all")
        more_commands, more_keys = self.more
        selector = " ".join((*more_keys, *(f"+{command}" for command in more_commands)))
        more = (f"({selector})",) if selector else ()
        return " ".join((*start, *self.keys, *allowed, *more))


def store_users(
    namespace: str = "noisefloor", *, has_report_tokens: bool = False
) -> tuple[StoreUser, ...]:
    """Return the users of a topology.

    Args:
        namespace: First part of every key.
        has_report_tokens: Whether the ad server spends one-use tokens of reports.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise BadParameter("namespace", namespace, f"to match {_NAMESPACE.pattern}")
    tokens = (f"~{namespace}:{{tokens}}:*", f"~{namespace}.*:{{tokens}}:*")
    # Collections beside the first have namespaces that begin with the first one's and a dot.
    parts = (f"{namespace}:{{p[0-9]*}}:", f"{namespace}.*:{{p[0-9]*}}:")
    settings = (f"{namespace}:settings", f"{namespace}.*:settings")
    collections = f"{namespace}:collections"
    seen = [f"{one}{name}:*" for one in parts for name in ("window", "epoch", "seen")]
    refused = [f"{one}{name}*" for one in parts for name in ("intake", "late:")]
    ad_server = StoreUser(
        "ad-server",
        (*_TRANSACTION, *_SCRIPT, *_AD_SERVER),
        (
            *(f"%W~{one}frames" for one in parts),
            *(f"%R~{one}" for one in seen),
            *(f"~{one}" for one in refused),
            *(f"%R~{one}" for one in (*settings, collections, f"{collections}:used")),
        ),
        # A server asks for every right on the keys of a script's call; what the script does with
        # each of them is checked again.
        (("evalsha",), tuple(f"~{one}*" for one in parts)),
    )
    if has_report_tokens:
        commands = (*ad_server.commands, "hget", "hset", "hsetnx", "hlen", "unlink")
        ad_server = replace(ad_server, commands=commands, keys=(*ad_server.keys, *tokens))
    others = (*settings, f"{collections}*", f"{namespace}:retention")
    # Of a partition's keys only the frames begin with this letter.
    own = (*(f"{one}[^f]*" for one in parts), *others)
    return (
        ad_server,
        StoreUser(
            "aggregator",
            (*_TRANSACTION, *_SCRIPT, *_AGGREGATOR_STREAMS),
            tuple(f"~{one}*" for one in parts) + tuple(f"~{one}" for one in others),
            (_AGGREGATOR, tuple(f"~{one}" for one in own)),
        ),
        StoreUser("publisher", (*_SCRIPT, *_PUBLISHER), (f"~{namespace}:{{ledger-*}}:*",)),
        StoreUser("monitor", _MONITOR, (f"%R~{namespace}:*", f"%R~{namespace}.*")),
        StoreUser("operator", _OPERATOR, (f"~{namespace}:probe",)),
    )


def write_acl_file(
    path: Path,
    passwords: Mapping[str, str],
    *,
    namespace: str = "noisefloor",
    has_report_tokens: bool = False,
    is_recent: bool = True,
) -> None:
    """Write the file that the server is started with (``--aclfile``), readable by its owner only.

    Args:
        path: Where; what is there is replaced in one step.
        passwords: By the name of the user, for each of them; long and random.
        namespace: First part of every key.
        has_report_tokens: Whether the ad server spends one-use tokens of reports.
        is_recent: Whether the server is Valkey, or Redis of 7.2 or later. An older one does not
            start with a file that names commands which it does not have.
    """
    listed = store_users(namespace, has_report_tokens=has_report_tokens)
    if set(passwords) != {user.name for user in listed}:
        names = ", ".join(user.name for user in listed)
        raise BadParameter("passwords", sorted(passwords), f"one for each of {names}")
    if len(set(passwords.values())) < len(passwords):
        raise BadParameter("passwords", "<passwords>", "each user's its own")
    lines = ["user default off resetpass resetkeys resetchannels -@all"]
    lines += [user.line(passwords[user.name], is_recent=is_recent) for user in listed]
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
