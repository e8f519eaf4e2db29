"""The trainer: broadcasts a model, counts a round's protected reports, and takes the next step.

Frames are counted as the aggregator counts them: once by batch id, refused after the close. The
round is the frame's epoch, and only the current round is open. A frame whose kind is not the
round's is counted and never read.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import replace

from noisefloor.ads.training import Broadcast, Training
from noisefloor.checks import check_count
from noisefloor.errors import BadFrame, BadSnapshot
from noisefloor.roles.aggregator import Aggregator
from noisefloor.roles.broadcast import read_broadcast, write_broadcast
from noisefloor.roles.epochs import EpochSummary, Limits
from noisefloor.roles.outcomes import Counters, Outcome
from noisefloor.wire.kinds import Kind

VERSION = 1


class Trainer:
    """One training, from its first broadcast to its last.

    Args:
        training: How devices report and how the server learns from it.
        limits: Bounds of what is kept; how many epochs may be open is not asked: one.
    """

    __slots__ = ("_aggregator", "_broadcast", "_content", "_kinds", "_number", "_training")

    def __init__(self, training: Training, *, limits: Limits | None = None) -> None:
        self._training = training
        listed = {kind.name: kind for kind in map(training.kind, range(training.rounds))}
        self._kinds = tuple(listed.values())
        self._aggregator = Aggregator(self.kinds, limits=_one_open(limits))
        self._number = 0
        self._send(training.start())

    @property
    def number(self) -> int:
        """The round that is open; as many as there are rounds when all are closed."""
        return self._number

    @property
    def is_done(self) -> bool:
        """Whether every round is closed."""
        return self._number >= self._training.rounds

    @property
    def broadcast(self) -> Broadcast:
        """What devices are to answer now; after the last round, what was learnt."""
        return self._broadcast

    @property
    def content(self) -> bytes:
        """The round and its broadcast as bytes; ``read_broadcast`` reads them."""
        return self._content

    @property
    def etag(self) -> str:
        """The hash of the content, in the quotes of HTTP's ETag."""
        return f'"{hashlib.blake2b(self._content, digest_size=16).hexdigest()}"'

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of frame of all rounds, each once."""
        return self._kinds

    @property
    def counters(self) -> Counters:
        """Frames by outcome."""
        return self._aggregator.counters

    def content_unless(self, etag: str | None) -> bytes | None:
        """Return the broadcast as bytes, or nothing to a device that has this one already."""
        return None if etag == self.etag else self._content

    def apply(self, data: bytes) -> Outcome:
        """Count the reports of one frame."""
        return self._aggregator.apply(data)

    def close(self, number: int) -> None:
        """Close the current round and learn from it; closing an earlier one again does nothing.

        A round without reports leaves the model as it is.
        """
        last = min(self._number, self._training.rounds - 1)
        check_count(number, "number", least=0, most=last)
        if number < self._number:
            return
        own = self._training.kind(number).name
        for kind in self.kinds:
            self._aggregator.close(kind.name, number)
            if kind.name != own:
                self._aggregator.retire(kind.name, number)
        tally, rows = self._aggregator.release(own, number)
        sent = self._broadcast
        if rows:
            sent = self._training.update(number, sent, tally, rows)
        self._number = number + 1
        self._send(sent)

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers: reports that count, and those that came too late."""
        check_count(number, "number", least=0, most=self._training.rounds - 1)
        return self._aggregator.summary(self._training.kind(number).name, number)

    def snapshot(self) -> bytes:
        """Return everything but the training as bytes: the same bytes for the same state."""
        body = {
            "version": VERSION,
            "broadcast": b64encode(self._content).decode("ascii"),
            "aggregator": b64encode(self._aggregator.snapshot()).decode("ascii"),
        }
        checksum = hashlib.sha256(_canonical(body)).hexdigest()
        return _canonical({"body": body, "checksum": checksum})

    @classmethod
    def restore(
        cls, data: bytes, training: Training, *, limits: Limits | None = None
    ) -> "Trainer":
        """Return the trainer that a snapshot was taken of, or raise BadSnapshot."""
        made = cls(training, limits=limits)
        number, sent, counted = _read(data)
        first = made._broadcast.model
        if number > training.rounds or sent.model.factors.shape != first.factors.shape:
            raise BadSnapshot("Trainer snapshot: is of another training.")
        made._aggregator = Aggregator.restore(counted, made.kinds, limits=_one_open(limits))
        made._number = number
        made._send(sent)
        if made.snapshot() != data:
            raise BadSnapshot("Trainer snapshot: body is not in canonical form.")
        return made

    def _send(self, sent: Broadcast) -> None:
        self._broadcast = sent
        self._content = write_broadcast(self._number, sent)


def _one_open(limits: Limits | None) -> Limits:
    return replace(limits or Limits(), open_epochs=1)


def _read(data: bytes) -> tuple[int, Broadcast, bytes]:
    """Return round, broadcast and the aggregator's snapshot, once version and checksum fit."""
    try:
        outer = json.loads(data.decode("ascii"))
        body, checksum = outer["body"], outer["checksum"]
        if body["version"] != VERSION or checksum != hashlib.sha256(_canonical(body)).hexdigest():
            raise BadSnapshot(f"Trainer snapshot: not of version {VERSION}, or damaged.")
        number, sent = read_broadcast(b64decode(body["broadcast"], validate=True))
        return number, sent, b64decode(body["aggregator"], validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadFrame):
        raise BadSnapshot("Trainer snapshot: is not one.") from None


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
