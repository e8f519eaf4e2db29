"""When a report counts as taken: once it is on disk, or once Redis has it in memory."""

from enum import Enum


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
