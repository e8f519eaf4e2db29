"""What is done to the services, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor_services.store import Durability
from noisefloor_services.streams import Conservation

ProgressCallback = Callable[[float], None]
"""Called with the share of a part that is done."""


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """How much goes in, and how much goes wrong.

    Attributes:
        reports: In all frames together.
        reports_a_frame: The last frame may have fewer.
        partitions: Of the streams.
        workers: Processes that count, replaced when they are killed.
        worker_kills: SIGKILLs of workers.
        zombies: Workers that are stopped until their work was taken over, and then woken up.
        server_kills: SIGKILLs of the Redis server; durability ``disk`` has to survive them.
        duplicate_share: Frames that are sent twice, poison included.
        poison: Frames that can never count.
        stragglers: Fresh frames of an epoch that is closed already.
        seed: Of reports, order and faults; when a fault strikes is up to the machine.
        durability: Of the server.
        is_naive: Count with a consumer that acknowledges atomically and looks at nothing: the
            comparison has to fail.
    """

    reports: int = 1_000_000
    reports_a_frame: int = 100
    partitions: int = 2
    workers: int = 3
    worker_kills: int = 50
    zombies: int = 20
    server_kills: int = 4
    duplicate_share: float = 0.05
    poison: int = 100
    stragglers: int = 10
    seed: int = 1
    durability: Durability = Durability.DISK
    is_naive: bool = False

    def __post_init__(self) -> None:
        check_count(self.reports_a_frame, "reports_a_frame", most=10_000)
        check_count(self.reports, "reports", least=100 * self.reports_a_frame)
        check_count(self.workers, "workers", least=2, most=64)
        for name in ("worker_kills", "zombies", "server_kills", "poison", "stragglers"):
            check_count(getattr(self, name), name, least=0, most=10_000)
        if not 0 <= check_finite(self.duplicate_share, "duplicate_share") <= 1:
            raise BadParameter("duplicate_share", self.duplicate_share, "in [0, 1]")


@dataclass(frozen=True, slots=True)
class ChaosOutcome:
    """What a run of a plan came to.

    Attributes:
        faults: Each difference to the truth, in words; none in a good run.
        conservation: Frames by what became of them, at the end.
        frames: That have to count.
        reports: In them.
        worker_kills: That were done.
        zombies: That were made and woken up.
        server_kills: That were done.
        held_frames: Frames that killed and stopped workers had in their hands, in all.
        cells: Integer sums that were compared, one by one.
        longest_pause_s: The longest time without a frame that was settled while some waited;
            restarts of the server are in it.
        elapsed_s: Of it all, the start of the server included.
    """

    faults: tuple[str, ...]
    conservation: Conservation
    frames: int
    reports: int
    worker_kills: int
    zombies: int
    server_kills: int
    held_frames: int
    cells: int
    longest_pause_s: float
    elapsed_s: float

    @property
    def is_exact(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.faults
