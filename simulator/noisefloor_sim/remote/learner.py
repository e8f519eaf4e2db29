"""The learner behind a socket: closing a round makes the services learn from it."""

import time

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import ServicesAway
from noisefloor.roles.courses import Course, kinds_of_course
from noisefloor.roles.epochs import EpochSummary
from noisefloor.roles.outcomes import Counters
from noisefloor_sim.remote.aggregation import RemoteAggregation

PATIENCE_S = 600.0
"""How long a step may take: with many collected rows it is minutes."""

_PAUSE_S = 0.01


class RemoteLearner:
    """One course at running services.

    Args:
        aggregation: Who counts its reports.
        course: As it is registered there.
    """

    def __init__(self, aggregation: RemoteAggregation, course: Course) -> None:
        self._aggregation = aggregation
        self._course = course
        self._kinds = tuple(kind.name for kind in kinds_of_course(course))
        self.counters = Counters()  # those of the collection hold these frames
        self.content: bytes = self._fetched(0)

    def apply(self, data: bytes) -> None:
        """Send one frame of reports."""
        self._aggregation.apply(data)

    def close(self, number: int) -> None:
        """Close a round for every kind, its own last, and fetch what was learnt from it."""
        own = self._course.kind(number).name
        for kind in (*(name for name in self._kinds if name != own), own):
            self._aggregation.close(kind, number)
        self.content = self._fetched(number + 1)

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers."""
        return self._aggregation.summary(self._course.kind(number).name, number)

    def answers(self, data: bytes) -> NDArray[np.bool_]:
        """Ask for a decision on each protected query of a frame."""
        return self._aggregation.answers(data)

    def _fetched(self, number: int) -> bytes:
        """Wait until devices are told what belongs to a round."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, _PAUSE_S
        held: bytes | None = None
        while time.monotonic() < deadline:
            content = self._aggregation.model()
            if content is not None and content != held:
                if self._course.round_of(content) == number:
                    return content
                held = content
            time.sleep(pause_s)
            pause_s = min(0.2, 1.5 * pause_s)
        raise ServicesAway(f"The services do not get to round {number}.")
