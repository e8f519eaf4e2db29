"""An attacker who subtracts answers: he delivers, closes, reads, restarts and retires at will.

Every report carries a number of its own, so that an answer shows by itself which reports are
behind it: one place of a bit vector, or one value of a collected column.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from noisefloor.roles import CollectionConfig
from noisefloor.wire import Integers, Kind, Reduction, bit_vector_kind, record_kind
from noisefloor.wire.frames import seal

MINIMUM = 3
EPOCHS = range(2)
COLLECTIONS = ("", "tea")
EQUAL: Mapping[str, int] = dict.fromkeys(COLLECTIONS, MINIMUM)
MIXED: Mapping[str, int] = {"": MINIMUM, "tea": 1}
MINIMUMS: tuple[Mapping[str, int], ...] = (EQUAL, MIXED, {"": 1, "tea": MINIMUM})
"""Of the collections of one service: any of them may have none, which is a minimum of 1."""

_EACH = 4
_REPORTS = 2 * len(EPOCHS) * len(COLLECTIONS) * _EACH * 2

SUMMED = bit_vector_kind("summed", _REPORTS)
COLLECTED = record_kind("collected", {"number": Integers(0, _REPORTS - 1)})
KINDS = (SUMMED, COLLECTED)


@dataclass(frozen=True)
class HonestFrame:
    """A frame of one or two reports, and whom its device made it for."""

    collection: str
    kind: Kind
    epoch: int
    data: bytes
    numbers: tuple[int, ...]


def _frames() -> Iterator[HonestFrame]:
    number = 0
    for collection in COLLECTIONS:
        for kind in KINDS:
            for epoch in EPOCHS:
                for place in range(_EACH):
                    numbers = np.arange(number, number + 1 + place % 2)
                    number += 2
                    rows: object = {"number": numbers}
                    if kind is SUMMED:
                        rows = np.arange(_REPORTS) == numbers[:, None]
                    batch_id = number.to_bytes(16, "big")
                    data = seal(kind, epoch, kind.encode(rows), batch_id, collection=collection)
                    yield HonestFrame(collection, kind, epoch, data, tuple(numbers.tolist()))


FRAMES = tuple(_frames())
_MADE_FOR = {number: one.collection for one in FRAMES for number in one.numbers}


def collection_of(name: str, minimum: int = MINIMUM) -> CollectionConfig:
    """Return one of the collections as services make it: its rule says which frames it takes."""
    kinds = {kind.name: kind for kind in KINDS}
    return CollectionConfig(kinds=kinds, minimum_batch=minimum, name=name)


class Attacked(Protocol):
    """Collections as the attacker can use them."""

    def deliver(self, collection: str, data: bytes) -> None:
        """Send a frame to a collection, whoever it was made for."""
        ...

    def close(self, collection: str, kind: str, epoch: int) -> None:
        """Close an epoch, once or again."""
        ...

    def read(self, collection: str, kind: str, epoch: int) -> bytes | None:
        """Return an answer; None if it is refused."""
        ...

    def retire(self, collection: str, kind: str, epoch: int) -> None:
        """Retire an epoch, if it is closed."""
        ...

    def restart(self, collection: str) -> None:
        """End the process that counts, and start another one from what it left."""
        ...


@dataclass(frozen=True)
class AttackStep:
    """One step: what is done to which frame or batch."""

    action: str
    collection: str
    kind: Kind = SUMMED
    epoch: int = 0
    frame: int = 0


@st.composite
def _rounds(draw: st.DrawFn) -> list[AttackStep]:
    """Draw a few actions around one frame: its own batch, at either collection."""
    place = draw(st.integers(0, len(FRAMES) - 1))
    at, one = draw(st.sampled_from(COLLECTIONS)), FRAMES[place]
    actions = st.sampled_from(["deliver", "deliver", "close", "read", "read", "retire", "restart"])
    drawn = draw(st.lists(actions, min_size=1, max_size=4))
    return [AttackStep(action, at, one.kind, one.epoch, place) for action in drawn]


@st.composite
def attacks(draw: st.DrawFn, *, most: int = 8) -> list[AttackStep]:
    """Draw an attack: a prelude that fills batches nearly, then any steps, and at last a look."""
    left_out = draw(st.sets(st.integers(0, len(FRAMES) - 1), max_size=12))
    prelude = [
        AttackStep("deliver", one.collection, frame=place)
        for place, one in enumerate(FRAMES)
        if place not in left_out
    ]
    rounds = draw(st.lists(_rounds(), max_size=most))
    steps = [step for one in rounds for step in one]
    return [*draw(st.sampled_from([prelude, []])), *steps, *LAST_LOOK]


LAST_LOOK = [
    AttackStep(action, collection, kind, epoch)
    for action in ("close", "read")
    for collection in COLLECTIONS
    for kind in KINDS
    for epoch in EPOCHS
]


BESIDE = [
    *(AttackStep("deliver", "", frame=place) for place in range(_EACH)),
    AttackStep("deliver", "tea", frame=2),
    *LAST_LOOK,
]
"""A batch of the first collection, and one of its frames to another as well."""


def reports_in(answer: bytes, kind: Kind) -> list[int]:
    """Return the numbers of the reports behind an answer, by the answer alone."""
    if kind.reduction is Reduction.COLLECT:
        with pa.ipc.open_stream(answer) as reader:
            return list(map(int, reader.read_next_batch().column(0).to_pylist()))
    cells = np.asarray(json.loads(answer)["cells"])
    return np.repeat(np.arange(len(cells)), cells).tolist()


def isolated(
    world: Attacked, steps: Sequence[AttackStep], minimums: Mapping[str, int] = EQUAL
) -> list[str]:
    """Carry an attack out, and return what it found that it should not have.

    A report is protected by the minimum of the collection that its device made it for, wherever
    it is counted: it may be shown among so many reports or more, and in no smaller difference.
    """
    answers: dict[tuple[str, str, int], set[bytes]] = {}
    for step in steps:
        batch = (step.collection, step.kind.name, step.epoch)
        if step.action == "deliver":
            world.deliver(step.collection, FRAMES[step.frame].data)
        elif step.action == "restart":
            world.restart(step.collection)
        elif step.action == "read":
            answer = world.read(*batch)
            if answer is not None:
                answers.setdefault(batch, set()).add(answer)
        else:
            getattr(world, step.action)(*batch)
    return list(_findings(answers, minimums))


def _findings(
    answers: dict[tuple[str, str, int], set[bytes]], minimums: Mapping[str, int]
) -> Iterator[str]:
    kinds = {kind.name: kind for kind in KINDS}
    found = []
    for batch, given in answers.items():
        if len(given) > 1:
            yield f"{batch} was answered with different bytes"
        for answer in given:
            reports = reports_in(answer, kinds[batch[1]])
            found.append((batch, set(reports)))
            if len(set(reports)) < len(reports):
                yield f"{batch} counts a report twice"
            if _is_few(set(reports), minimums[batch[0]], minimums):
                yield f"{batch} shows {len(reports)} reports"
    for (one, ours), (other, theirs) in combinations(found, 2):
        parts = (ours - theirs, theirs - ours) if ours & theirs else ()
        if any(_is_few(part, 1, minimums) for part in parts):
            yield f"{one} without {other} shows {min(map(len, parts))} reports"


def _is_few(reports: set[int], minimum: int, minimums: Mapping[str, int]) -> bool:
    """Whether they are fewer than a minimum, or than that of one of their own collections."""
    least = max([minimum, *(minimums[_MADE_FOR[one]] for one in reports)])
    return least > 1 and len(reports) < least
