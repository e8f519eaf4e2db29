"""Frames that an ad server takes, made one by one, and the truth about them.

The truth is added up from the bare numbers; every frame that is made has to count in the end.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor.roles.ad_server import IMPRESSIONS
from noisefloor.roles.collection import example
from noisefloor.wire.frames import ID_BYTES, seal
from noisefloor.wire.kinds import Kind
from noisefloor_services.chaos.clients import REFUSED, Parcel

COLLECTION = example()
KINDS = tuple(COLLECTION.kinds.values())
EPOCHS = 2


class ClickTraffic:
    """An endless sequence of frames of clicks and impressions.

    Args:
        seed: Of numbers and order.
        reports_a_frame: In every frame.
        duplicate_share: Frames that are sent once more, by whichever client comes next.
        poison_every: One frame in so many can never count; none if 0.
    """

    def __init__(
        self,
        seed: int,
        *,
        reports_a_frame: int = 100,
        duplicate_share: float = 0.05,
        poison_every: int = 0,
    ) -> None:
        self.sums: dict[tuple[str, int], NDArray[np.int64]] = {}
        self.frames = self.reports = self.poison = 0
        self._generator = SeededSource(seed, "clicks").generator()
        self._size = reports_a_frame
        self._share = duplicate_share
        self._poison_every = poison_every

    def parcels(self) -> Iterator[Parcel]:
        """Yield frames for ever."""
        before: list[bytes] = []
        for number in range(1, 1 << 30):
            if self._poison_every and number % self._poison_every == 0:
                self.poison += 1
                yield Parcel(self._generator.bytes(200), REFUSED)
            elif before and self._generator.random() < self._share:
                yield Parcel(before[int(self._generator.integers(len(before)))])
            else:
                turn, place = divmod(number, len(KINDS))
                before.append(self._frame(KINDS[place], turn % EPOCHS))
                yield Parcel(before[-1])

    def _frame(self, kind: Kind, epoch: int) -> bytes:
        size = kind.cells
        if kind.name == IMPRESSIONS:
            shown = self._generator.integers(0, size, self._size)
            counted, reports = np.bincount(shown, minlength=size), shown
        else:
            reports = self._generator.integers(0, 2, (self._size, size))
            counted = reports.sum(axis=0)
        place = (kind.name, epoch)
        self.sums[place] = self.sums.get(place, np.zeros(size, np.int64)) + counted
        self.frames += 1
        self.reports += self._size
        return seal(kind, epoch, kind.encode(reports), self._generator.bytes(ID_BYTES))
