"""A training of the ads' model as a course: its content is the broadcast as bytes."""

from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from noisefloor.ads.training import Broadcast, Training
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.roles.broadcast import read_broadcast, write_broadcast
from noisefloor.roles.courses import Released
from noisefloor.wire.kinds import Kind


@dataclass(frozen=True, slots=True)
class AdCourse:
    """One training.

    Attributes:
        training: How devices report and how the server learns from it.
    """

    training: Training

    @property
    def rounds(self) -> int:
        """How often the server broadcasts and devices answer."""
        return self.training.rounds

    @property
    def query_kind(self) -> Kind | None:
        """None: devices predict by themselves, from the broadcast."""
        return None

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round."""
        return self.training.kind(number)

    def first(self) -> bytes:
        """Return the first broadcast."""
        return write_broadcast(0, self.training.start())

    def round_of(self, content: bytes) -> int:
        """Return the round of a broadcast, or raise BadFrame if it is of another training."""
        return self._read(content)[0]

    def next(self, number: int, content: bytes, released: Released) -> bytes:
        """Return the next broadcast, from the sums of a round."""
        _, sent = self._read(content)
        if released.count:
            if released.tally is None:
                raise BadParameter("released", released.rows, "sums")
            sent = self.training.update(number, sent, released.tally, released.count)
        return write_broadcast(number + 1, sent)

    def answers(self, content: bytes, queries: pa.RecordBatch) -> NoReturn:
        """Refuse: nobody asks."""
        raise BadParameter("course", "ads", "one that answers queries")

    def _read(self, content: bytes) -> tuple[int, Broadcast]:
        number, sent = read_broadcast(content)
        shape = self.training.start().model.factors.shape
        if number > self.rounds or sent.model.factors.shape != shape:
            raise BadFrame("broadcast", "is of another training")
        return number, sent
