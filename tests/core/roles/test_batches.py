"""Batches: too few reports are never released, and no two answers isolate a few of them."""

import json
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest
from hypothesis import Phase, example, find, given
from hypothesis import strategies as st

from batches import batched
from differencing import (
    BESIDE,
    COLLECTIONS,
    EQUAL,
    FRAMES,
    KINDS,
    LAST_LOOK,
    MINIMUM,
    MINIMUMS,
    MIXED,
    SUMMED,
    AttackStep,
    attacks,
    collection_of,
    isolated,
)
from noisefloor.errors import BadParameter, BatchTooSmall, EpochOpen
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.roles import (
    Aggregator,
    BatchTerms,
    CollectionConfig,
    FrameStatus,
    ReportProtection,
    read_parameters,
)
from noisefloor.roles.batches import UNSTATED
from noisefloor.roles.epochs import EpochState
from noisefloor.roles.frame_outcomes import FrameOutcome
from noisefloor.wire import Frame, decode_frame
from properties import examples

NAMED = {kind.name: kind for kind in KINDS}
TERMS = BatchTerms(
    MINIMUM, {"summed": ReportProtection("Laplace", Guarantee(0.5, Neighbours.BIT))}
)


class RoleWorld:
    """The collections as roles in this process.

    Args:
        minimums: By collection.
        made: The class of the role.
        takes: Which frames a collection takes, by the names in them; by default as services do.
    """

    def __init__(
        self,
        minimums: Mapping[str, int] = EQUAL,
        made: type[Aggregator] = Aggregator,
        *,
        takes: Callable[[CollectionConfig], tuple[str, ...]] = lambda one: one.frame_names,
    ) -> None:
        self._made = made
        listed = [collection_of(name, minimum) for name, minimum in minimums.items()]
        self._names = {one.name: takes(one) for one in listed}
        self.roles = {
            one.name: made(KINDS, terms=one.terms, collections=self._names[one.name])
            for one in listed
        }

    def deliver(self, collection: str, data: bytes) -> None:
        """Send a frame."""
        self.roles[collection].apply(data)

    def close(self, collection: str, kind: str, epoch: int) -> None:
        """Close an epoch."""
        self.roles[collection].close(kind, epoch)

    def read(self, collection: str, kind: str, epoch: int) -> bytes | None:
        """Return an answer, or None."""
        try:
            return self.roles[collection].answer(kind, epoch)
        except (BatchTooSmall, EpochOpen, BadParameter):
            return None

    def retire(self, collection: str, kind: str, epoch: int) -> None:
        """Retire an epoch, if it is closed."""
        if self.roles[collection].summary(kind, epoch).is_closed:
            self.roles[collection].retire(kind, epoch)

    def restart(self, collection: str) -> None:
        """Restore it from its own snapshot."""
        kept = self.roles[collection].snapshot()
        self.roles[collection] = self._made.restore(
            kept, KINDS, collections=self._names[collection]
        )


@given(attacks(), st.sampled_from(MINIMUMS))
@example(BESIDE, MIXED)
@examples(90, deadline=None)
def test_no_attack_isolates_fewer_reports_than_the_minimum(
    steps: list[AttackStep], minimums: Mapping[str, int]
) -> None:
    assert isolated(RoleWorld(minimums), steps, minimums) == []


class LateCounting(Aggregator):
    """Counts a frame that comes after the close."""

    def _refuse(self, frame: Frame, state: EpochState | None) -> FrameOutcome:
        if state is not None and not state.has(frame.batch_id):
            state.count(frame)
        return FrameOutcome(FrameStatus.COUNTED, frame=frame)


def _delivered(places: range) -> list[AttackStep]:
    return [AttackStep("deliver", FRAMES[place].collection, frame=place) for place in places]


ONE_BATCH = range(4)
LATE = [
    *_delivered(range(3)),
    AttackStep("close", ""),
    AttackStep("read", ""),
    *_delivered(range(3, 4)),
    *LAST_LOOK,
]
TWICE = [
    *_delivered(ONE_BATCH),
    *(AttackStep("deliver", "tea", frame=place) for place in range(3)),
    *LAST_LOOK,
]
FEW = [*_delivered(range(1)), *LAST_LOOK]


def _takes_all(collection: CollectionConfig) -> tuple[str, ...]:
    return COLLECTIONS


def _takes_unnamed_without_minimum(collection: CollectionConfig) -> tuple[str, ...]:
    return COLLECTIONS if collection.terms.minimum == 1 else collection.frame_names


Mutant = tuple[Callable[[], RoleWorld], list[AttackStep], str, Mapping[str, int]]
NONE = dict.fromkeys(COLLECTIONS, 1)
MUTANTS: dict[str, Mutant] = {
    "no minimum": (lambda: RoleWorld(NONE), FEW, "shows 1 reports", EQUAL),
    "late frames": (lambda: RoleWorld(made=LateCounting), LATE, "different bytes", EQUAL),
    "no names": (lambda: RoleWorld(takes=_takes_all), TWICE, "without", EQUAL),
    "names only where there is a minimum": (
        lambda: RoleWorld(MIXED, takes=_takes_unnamed_without_minimum),
        BESIDE,
        "('tea', 'summed', 0) shows 1 reports",
        MIXED,
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_is_found_by_an_attack_and_by_drawn_ones(mutant: str) -> None:
    world, steps, what, minimums = MUTANTS[mutant]
    assert isolated(RoleWorld(minimums), steps, minimums) == []
    assert any(what in one for one in isolated(world(), steps, minimums))
    drawn = examples(300, database=None, phases=[Phase.generate])
    assert find(attacks(), lambda steps: bool(isolated(world(), steps, minimums)), settings=drawn)


def _fed(terms: BatchTerms, reports: int) -> Aggregator:
    """Return a role with a closed epoch of a number of reports of either kind."""
    role = Aggregator(KINDS, terms=terms)
    for kind in KINDS:
        left = reports
        for one in FRAMES:
            if (one.collection, one.kind, one.epoch) == ("", kind, 0):
                rows = decode_frame(one.data, NAMED).batch.num_rows
                if rows <= left:
                    role.apply(one.data)
                    left -= rows
        assert not left
        role.close(kind.name, 0)
    return role


@batched("reports", range(MINIMUM + 2), label=str)
def test_a_closed_batch_is_released_from_the_minimum_on(reports: int) -> None:
    role = _fed(TERMS, reports)
    reads: list[Callable[[], object]] = [
        lambda: role.answer("summed", 0),
        lambda: role.answer("collected", 0),
        lambda: role.release("summed", 0),
        lambda: role.release_rows("collected", 0),
    ]
    for read in reads:
        if reports >= MINIMUM:
            assert read()
            continue
        with pytest.raises(BatchTooSmall, match=f"minimum of {MINIMUM}.*later epoch") as refused:
            read()
        assert refused.value.minimum == MINIMUM  # how many there are is not said


def test_without_a_minimum_an_epoch_without_reports_is_read_as_zeros() -> None:
    role = _fed(BatchTerms(), 0)
    answer = json.loads(role.answer("summed", 0))
    assert (answer["rows"], set(answer["cells"])) == (0, {0})
    assert answer["parameters"]["threshold"] == 1


def test_every_answer_carries_its_parameters_and_what_was_not_stated_is_null() -> None:
    role = _fed(TERMS, 4)
    stated = json.loads(role.answer("summed", 0))
    assert stated["parameters"] == {
        **{"format": 1, "rows": 4, "threshold": MINIMUM, "sensitivity": SUMMED.cells},
        **{"mechanism": "Laplace", "epsilon": 0.5, "delta": 0.0, "neighbours": "bit"},
        "reason": "",
    }
    with pa.ipc.open_stream(role.answer("collected", 0)) as reader:
        batch = reader.read_next_batch()
    unstated = read_parameters(batch.schema)
    assert batch.num_rows == unstated["rows"] == 4
    assert (unstated["sensitivity"], unstated["reason"]) == (1, UNSTATED)
    names = ("mechanism", "epsilon", "delta", "neighbours")
    assert [unstated[name] for name in names] == [None] * 4


def test_a_restore_keeps_the_terms_and_can_only_raise_the_minimum() -> None:
    role = _fed(TERMS, 4)
    kept = role.snapshot()
    for minimum in (1, MINIMUM):
        again = Aggregator.restore(kept, KINDS, minimum=minimum)
        assert again.answer("summed", 0) == role.answer("summed", 0)
        assert again.snapshot() == kept
    with pytest.raises(BatchTooSmall):
        Aggregator.restore(kept, KINDS, minimum=5).answer("summed", 0)


def test_protections_read_back_and_wrong_ones_are_refused_by_name() -> None:
    none = ReportProtection("none", Guarantee.none("sent in the open", Neighbours.USER))
    for one in (none, TERMS.protections["summed"]):
        assert ReportProtection.read(json.loads(json.dumps(one.fields))) == one
    good = none.fields
    for name, wrong in (
        *(("mechanism", ""), ("mechanism", "a\n"), ("epsilon", "1"), ("epsilon", True)),
        *(("epsilon", -1), ("delta", 2), ("delta", None), ("neighbours", "people")),
        *(("reason", ""), ("user", 1)),
    ):
        with pytest.raises(BadParameter) as refused:
            ReportProtection.read({**good, name: wrong})
        assert refused.value.name in (name, "protections")


@batched("minimum", (0, -1, True, 1.5, (1 << 31) + 1), label=str)
def test_a_minimum_that_is_none_is_refused_by_name(minimum: int) -> None:
    with pytest.raises((BadParameter, TypeError), match="minimum_batch"):
        BatchTerms(minimum)
