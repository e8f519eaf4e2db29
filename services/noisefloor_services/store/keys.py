"""Every name that is used in Redis, and which partition a frame belongs to.

All keys of a partition share one hash tag, so that a script may touch them on a cluster too.
"""

import hashlib
from dataclasses import dataclass

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter

GROUP = "aggregators"
"""The consumer group of every stream of frames."""

FIELD = "f"
"""The one field of an entry: the frame's bytes."""

ENTRY_ID = "0-*"
"""A plain serial number: the usual ids contain the millisecond of arrival, which is private."""

MOST_PARTITIONS = 1024


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys of one partition."""

    tag: str

    @property
    def frames(self) -> str:
        """Stream: frames that are not settled yet."""
        return f"{self.tag}:frames"

    @property
    def counters(self) -> str:
        """Hash: settled frames by outcome."""
        return f"{self.tag}:counters"

    @property
    def letters(self) -> str:
        """Hash: dead letters by key."""
        return f"{self.tag}:letters"

    @property
    def beats(self) -> str:
        """Hash: signs of life of workers whose batches take long, counted by worker."""
        return f"{self.tag}:beats"

    @property
    def admission(self) -> str:
        """Hash: frames that were answered without being appended, by answer."""
        return f"{self.tag}:intake"

    def admission_of(self, kind: str, epoch: int) -> str:
        """Hash: frames, rows and bytes of an epoch that wait to be counted; rows refused late."""
        return f"{self.admission}:{kind}:{epoch}"

    def window(self, kind: str) -> str:
        """Hash: the oldest open epoch, and the later ones that are closed or being closed."""
        return f"{self.tag}:window:{kind}"

    def epochs(self, kind: str) -> str:
        """Set: the epochs that something is kept of."""
        return f"{self.tag}:epochs:{kind}"

    def epoch(self, kind: str, epoch: int) -> str:
        """Hash: rows, bytes and late rows of an epoch; it exists as long as the epoch is kept."""
        return f"{self.tag}:epoch:{kind}:{epoch}"

    def seen(self, kind: str, epoch: int) -> str:
        """Set: batch ids that were counted."""
        return f"{self.tag}:seen:{kind}:{epoch}"

    def late(self, kind: str, epoch: int) -> str:
        """Set: batch ids that came after the close and were refused."""
        return f"{self.tag}:late:{kind}:{epoch}"

    def kept(self, kind: str, epoch: int) -> str:
        """String of 64-bit little-endian sums, or list of collected rows."""
        return f"{self.tag}:kept:{kind}:{epoch}"

    def released(self, kind: str, epoch: int) -> str:
        """Hash: parameters and digest of the answer that was given; in the first partition."""
        return f"{self.tag}:released:{kind}:{epoch}"


@dataclass(frozen=True, slots=True)
class Layout:
    """How frames are spread: a name for everything, and a number of partitions that never changes.

    Attributes:
        namespace: First part of every key.
        partitions: Duplicates are detected within a partition, so a frame always goes to the same.
    """

    namespace: str = "noisefloor"
    partitions: int = 1

    def __post_init__(self) -> None:
        check_count(self.partitions, "partitions", most=MOST_PARTITIONS)
        if not self.namespace or set(self.namespace) & set("{}"):
            raise BadParameter("namespace", self.namespace, "to be a text without braces")

    @property
    def settings(self) -> str:
        """Hash: partitions and kinds, as they were when the first service came."""
        return f"{self.namespace}:settings"

    @property
    def collections(self) -> str:
        """Hash: the documents of collections that are served beside this one, by name."""
        return f"{self.namespace}:collections"

    @property
    def retention(self) -> str:
        """Hash: how often something was deleted, and up to which time the log was rewritten."""
        return f"{self.namespace}:retention"

    @property
    def used_names(self) -> str:
        """Set: names of collections that were dropped."""
        return f"{self.namespace}:collections:used"

    def keys(self, partition: int) -> PartitionKeys:
        """Return the keys of a partition."""
        check_count(partition, "partition", least=0, most=self.partitions - 1)
        return PartitionKeys(f"{self.namespace}:{{p{partition}}}")

    def partition_of(self, data: bytes, batch_id: bytes | None) -> int:
        """Return where a frame belongs: by its id if that can be read, else by its bytes."""
        if self.partitions == 1:
            return 0
        digest = hashlib.blake2b(batch_id or data, digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.partitions
