"""The trainer behind a socket: closing a round makes the services take the step."""

import time

from noisefloor.ads.training import Broadcast, Training
from noisefloor.errors import ServicesAway
from noisefloor.roles.broadcast import read_broadcast
from noisefloor.roles.epochs import EpochSummary
from noisefloor.roles.outcomes import Counters
from noisefloor_sim.remote.aggregation import RemoteAggregation
from noisefloor_sim.remote.caller import PATIENCE_S

_PAUSE_S = 0.01


class RemoteTrainer:
    """One training at running services.

    Args:
        aggregation: Who counts its reports.
        training: As it is registered there.
    """

    def __init__(self, aggregation: RemoteAggregation, training: Training) -> None:
        self._aggregation = aggregation
        self._training = training
        kinds = (training.kind(number).name for number in range(training.rounds))
        self._kinds = tuple(dict.fromkeys(kinds))
        self.counters = Counters()  # those of the collection hold these frames
        self.broadcast: Broadcast = self._fetched(0)

    def apply(self, data: bytes) -> None:
        """Send one frame of reports."""
        self._aggregation.apply(data)

    def close(self, number: int) -> None:
        """Close a round for every kind, its own last, and fetch what was learnt from it."""
        own = self._training.kind(number).name
        for kind in (*(name for name in self._kinds if name != own), own):
            self._aggregation.close(kind, number)
        self.broadcast = self._fetched(number + 1)

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers."""
        return self._aggregation.summary(self._training.kind(number).name, number)

    def _fetched(self, number: int) -> Broadcast:
        """Wait until devices get the broadcast of a round."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            content = self._aggregation.model()
            if content is not None:
                held, sent = read_broadcast(content)
                if held == number:
                    return sent
            time.sleep(_PAUSE_S)
        raise ServicesAway(f"The services do not broadcast round {number}.")
