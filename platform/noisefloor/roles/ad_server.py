"""The ad server: hands out the catalogue and counts impressions, without knowing of whom.

An impression is a row of a frame that carries an ad's index and nothing else. Frames are counted
as the aggregator counts them: once by batch id, by epoch, refused after the close.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.catalogue import Catalogue
from noisefloor.roles.epochs import AggregationLimits
from noisefloor.roles.frame_outcomes import FrameCounters, FrameOutcome
from noisefloor.wire import Kind, symbol_kind

IMPRESSIONS = "impressions"


def impressions_kind(size: int) -> Kind:
    """Make the kind of impressions of ``size`` ads."""
    return symbol_kind(IMPRESSIONS, size)


class AdServer:
    """One catalogue and its impressions. Another catalogue is another ad server.

    Args:
        catalogue: What is handed out; an index means a place in it.
        first_epoch: The oldest epoch that is open at the start.
        limits: Bounds of what is kept.
    """

    __slots__ = ("_aggregator", "_catalogue")

    def __init__(
        self,
        catalogue: Catalogue,
        first_epoch: int = 0,
        *,
        limits: AggregationLimits | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._aggregator = Aggregator([self.kind], first_epoch, limits=limits)

    @property
    def catalogue(self) -> Catalogue:
        """What is handed out."""
        return self._catalogue

    @property
    def kind(self) -> Kind:
        """The kind of frame that it counts."""
        return impressions_kind(len(self._catalogue))

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        return self._aggregator.counters

    def apply(self, data: bytes) -> FrameOutcome:
        """Count the impressions of one frame."""
        return self._aggregator.apply(data)

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions."""
        self._aggregator.close(IMPRESSIONS, epoch)

    def impressions(self, epoch: int) -> NDArray[np.int64]:
        """Return the impressions of each ad in a closed epoch."""
        return self._aggregator.release(IMPRESSIONS, epoch)[0]

    def snapshot(self) -> bytes:
        """Return the counts as bytes; the catalogue is not among them."""
        return self._aggregator.snapshot()

    @classmethod
    def restore(
        cls, data: bytes, catalogue: Catalogue, *, limits: AggregationLimits | None = None
    ) -> "AdServer":
        """Return the ad server that a snapshot was taken of, or raise BadSnapshot."""
        made = cls(catalogue, limits=limits)
        made._aggregator = Aggregator.restore(data, [made.kind], limits=limits)
        return made
