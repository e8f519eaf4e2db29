"""What the server really keeps, found out at the start, and which promises it cannot make.

Settings that cannot be read count as not met: a promise needs evidence. WAITAOF is tested as well:
under ``everysec`` the log is synced about once a second, so after several writes in turn WAITAOF
cannot return "synced" at once each time. Valkey 9.1.2 does (measured), so it is not relied on.

When a report counts as taken: once it is on disk, or once Redis has it in memory.
"""

import time
from dataclasses import dataclass
from enum import Enum

from redis.exceptions import NoPermissionError, ResponseError

from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server


class Durability(Enum):
    """What an acknowledgement to a device promises."""

    DISK = "disk"
    MEMORY = "memory"

    @property
    def promise(self) -> str:
        """The promise in one sentence, for a status page."""
        if self is Durability.DISK:
            return "A report that was acknowledged is on disk and survives a crash of Redis."
        return "A report that was acknowledged is in Redis' memory: a crash of Redis may lose it."

    @property
    def server_settings(self) -> dict[str, str]:
        """The settings that a server needs to keep the promise."""
        # An entry that is deleted stays in its node, and so in a rewritten log, until the node
        # is empty: with one entry in each, it goes at once.
        shared = {"save": '""', "stream-node-max-entries": "1"}
        if self is Durability.MEMORY:
            return {"appendonly": "no", **shared}
        # Without the last one, nothing would be synced while the log is being rewritten.
        return {
            "appendonly": "yes",
            "appendfsync": "always",
            "no-appendfsync-on-rewrite": "no",
            **shared,
        }


OLDEST = (7, 0)
_SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy")
_WAITS = 3
_WAIT_MS = 3000


class StoreRequirement(Enum):
    """What the services rely on."""

    COMMANDS = "commands"
    DISK = "disk"
    NO_EVICTION = "no eviction"
    MEMORY_BOUND = "memory bound"
    WRITABLE = "writable"
    WAITAOF = "waitaof"


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """A promise that this server cannot make, and why."""

    promise: StoreRequirement
    text: str


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server reports about itself; None where it does not.

    Attributes:
        product: ``redis`` or ``valkey``.
        version: Its own version.
        compatible_with: The version of Redis whose commands it has.
        role: ``master`` or ``slave``, as servers still call it.
        appendonly: Whether there is a log at all.
        appendfsync: When the log is synced.
        no_appendfsync_on_rewrite: Whether it is not synced while it is rewritten.
        maxmemory_policy: What is thrown away when memory is full.
        maxmemory: Bound of its memory in bytes, 0 if there is none.
        is_waitaof_honest: None if it was not tried, or not allowed.
        has_waitaof: Whether there is such a command, as far as it was tried.
    """

    product: str
    version: str
    compatible_with: tuple[int, ...]
    role: str
    appendonly: str | None
    appendfsync: str | None
    no_appendfsync_on_rewrite: str | None
    maxmemory_policy: str | None
    maxmemory: int
    is_waitaof_honest: bool | None = None
    has_waitaof: bool = True

    def unkept(self, durability: Durability) -> tuple[UnmetRequirement, ...]:
        """Return the promises that this server cannot make."""
        found = [
            *self._commands(),
            *(self._disk() if durability is Durability.DISK else ()),
            *self._memory(),
        ]
        if self.role != "master":
            found.append(
                UnmetRequirement(StoreRequirement.WRITABLE, f"It is a replica ({self.role}).")
            )
        if not self.has_waitaof:
            text = "It has no WAITAOF, which Redis 7.2 and Valkey have: it is not relied on."
            found.append(UnmetRequirement(StoreRequirement.WAITAOF, text))
        elif self.is_waitaof_honest is False:
            text = "WAITAOF says that writes are synced before they are: it is not relied on."
            found.append(UnmetRequirement(StoreRequirement.WAITAOF, text))
        return tuple(found)

    def _commands(self) -> list[UnmetRequirement]:
        if self.compatible_with >= OLDEST:
            return []
        text = f"It is {self.product} {self.version}; Redis 7 or Valkey is needed."
        return [UnmetRequirement(StoreRequirement.COMMANDS, text)]

    def _disk(self) -> list[UnmetRequirement]:
        required = {
            "appendonly": (self.appendonly, "yes"),
            "appendfsync": (self.appendfsync, "always"),
            "no-appendfsync-on-rewrite": (self.no_appendfsync_on_rewrite, "no"),
        }
        return [
            UnmetRequirement(
                StoreRequirement.DISK,
                f"{name} is {_shown(value)}, not {kept}: a crash may lose reports.",
            )
            for name, (value, kept) in required.items()
            if value != kept
        ]

    def _memory(self) -> list[UnmetRequirement]:
        found = []
        if self.maxmemory_policy != "noeviction":
            text = f"maxmemory-policy is {_shown(self.maxmemory_policy)}: it may throw sums away."
            found.append(UnmetRequirement(StoreRequirement.NO_EVICTION, text))
        if not self.maxmemory:
            text = "maxmemory is not set: a flood fills the machine before it is refused."
            found.append(UnmetRequirement(StoreRequirement.MEMORY_BOUND, text))
        return found


def probe_server(
    server: Server, layout: Layout | None = None, *, tries_waitaof: bool = True
) -> ServerFacts:
    """Ask a server what it keeps; trying WAITAOF takes some seconds where it is honest."""
    about, memory = server_info(server, "server"), server_info(server, "memory")
    settings = _settings(server)
    product = about.get("server_name", "redis")
    is_tried = tries_waitaof and settings["appendonly"] == "yes"
    is_tried = is_tried and settings["appendfsync"] == "everysec"
    waitaof = _waitaof(server, layout or Layout()) if is_tried else {}
    return ServerFacts(
        product=product,
        version=about.get(f"{product}_version", "unknown"),
        compatible_with=_numbers(about.get("redis_version", "0")),
        role=server_info(server, "replication").get("role", "unknown"),
        appendonly=settings["appendonly"],
        appendfsync=settings["appendfsync"],
        no_appendfsync_on_rewrite=settings["no-appendfsync-on-rewrite"],
        maxmemory_policy=memory.get("maxmemory_policy"),
        maxmemory=int(memory.get("maxmemory", 0)),
        **waitaof,
    )


def server_info(server: Server, section: str) -> dict[str, str]:
    """Return one section of the server's INFO."""
    lines = server.call("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _settings(server: Server) -> dict[str, str | None]:
    """Return the settings; None each without the right to read them."""
    try:
        reply = server.call("CONFIG", "GET", *_SETTINGS)
    except ResponseError:
        reply = []
    found = dict(zip(reply[::2], reply[1::2], strict=True))
    known = {name: found.get(name.encode()) for name in _SETTINGS}
    return {name: value.decode() if value else None for name, value in known.items()}


def _waitaof(server: Server, layout: Layout) -> dict[str, bool]:
    """Return whether there is a WAITAOF, and whether it is honest; nothing where it is denied."""
    try:
        return {"is_waitaof_honest": _is_waitaof_honest(server, layout)}
    except NoPermissionError:
        return {}
    except ResponseError:
        return {"has_waitaof": False}  # older than the command


def _is_waitaof_honest(server: Server, layout: Layout) -> bool:
    """Write and wait several times: honest answers are about a second apart."""
    key, start_s = f"{layout.namespace}:probe", time.monotonic()
    try:
        for number in range(_WAITS):
            _, synced = server.all([("SET", key, number), ("WAITAOF", 1, 0, _WAIT_MS)])
            if synced[0] != 1:
                return False
    finally:
        server.call("DEL", key)
    # The first answer may come at once; every further one has to wait for the next sync.
    return time.monotonic() - start_s > 0.5 * (_WAITS - 1)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _shown(value: str | None) -> str:
    return "unknown" if value is None else value
