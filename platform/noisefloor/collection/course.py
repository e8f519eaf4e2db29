"""A collection of records as a course: select attributes, collect, learn, then answer questions.

A frozen value of public parameters, so that server and devices agree on it by its description.
What passes between them are contents (see ``contents``): the round, the chosen attributes and in
the end the model. Owners who take part in both rounds pay for both.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Protocol, get_args

import numpy as np
import pyarrow as pa

from noisefloor.checks import check_count, check_types
from noisefloor.collection.asking import Answers
from noisefloor.collection.classes import Classes
from noisefloor.collection.contents import Content, read_content, write_content
from noisefloor.collection.course_parts import (
    RECORD_METHODS,
    SELECTIONS,
    Method,
    SelectionName,
    lesson_of,
    selector_of,
    sizes_of,
)
from noisefloor.collection.lessons import NOTHING, Learnt, Lesson, Rows
from noisefloor.collection.rules import Queries
from noisefloor.collection.schema import Labels, Records, Schema
from noisefloor.collection.scoring import Form
from noisefloor.collection.selection import Asking, Selector
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.randomness import SeededSource, Source
from noisefloor.wire.kinds import Kind

Variant = Literal["corrected", "paper"]


class Released(Protocol):
    """What a closed round released."""

    @property
    def count(self) -> int:
        """Reports behind it."""
        ...

    @property
    def rows(self) -> pa.RecordBatch | None:
        """The rows of a kind that is collected."""
        ...


@dataclass(frozen=True, slots=True)
class RecordCourse:
    """One collection of records.

    Attributes:
        schema: Of the records.
        epsilon: Of each phase: a report to the selection, one in training, one question.
        owners: How many will take part, as far as is publicly known; sizes follow from it.
        method: ``joint-bayes``, ``joint-svm``, ``unified``, ``weak`` (no noise) or ``piecewise``.
        attributes: How many are told of; 0: by the public rule.
        classes: Of an attribute, at most; 0: by the public rule.
        selection: How attributes are chosen; each owner of ``joint-bayes`` draws by itself.
        form: How the selections ``response`` and ``weak`` score.
        classifier: A key of ``CLASSIFIERS``; ``joint-bayes`` has its own.
        weight: Its C.
        variant: Whether the unified response is as it has to be or as its paper prints it.
        queries: Whether those who ask later send protected values, or ask their own device.
        seed: Of attributes that are chosen at random; public.
    """

    schema: Schema
    epsilon: float
    owners: int
    method: Method = "joint-bayes"
    attributes: int = 0
    classes: int = 0
    selection: SelectionName = "random"
    form: Form = "prod"
    classifier: str = "svm"
    weight: float = 1.0
    variant: Variant = "corrected"
    queries: Queries = "on-device"
    seed: int = 0
    chosen: int = field(init=False, compare=False)
    cut: Classes = field(init=False, repr=False, compare=False)
    selector: Selector = field(init=False, repr=False, compare=False)
    lesson: Lesson = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        chosen, classes = sizes_of(self)
        object.__setattr__(self, "chosen", chosen)
        object.__setattr__(self, "cut", Classes(self.schema, classes))
        object.__setattr__(self, "selector", selector_of(self))
        object.__setattr__(self, "lesson", lesson_of(self))

    @property
    def rounds(self) -> int:
        """One of training, and one before it where the selection uses data."""
        return 1 + isinstance(self.selector, Asking)

    @property
    def query_kind(self) -> Kind | None:
        """The kind of frame of protected questions."""
        return self.lesson.query_kind

    def kind(self, number: int) -> Kind:
        """Return the kind of frame of a round."""
        check_count(number, "number", least=0, most=self.rounds - 1)
        if isinstance(self.selector, Asking) and number == 0:
            return self.selector.kind(len(self.schema))
        return self.lesson.kind

    def first(self) -> bytes:
        """Return what devices are told first: attributes, if no data are needed to choose them."""
        drawn = () if isinstance(self.selector, Asking) else self._drawn()
        return self._written(0, drawn)

    def round_of(self, content: bytes) -> int:
        """Return the round of a content, or raise BadFrame if it is of another course."""
        return int(self._read(content).told["round"])

    def columns(self, content: bytes) -> tuple[int, ...]:
        """Return the chosen attributes; none are named before a selection by data."""
        return tuple(self._read(content).told["columns"])

    def learnt(self, content: bytes) -> Learnt:
        """Return the model, or raise BadFrame before the last round is closed."""
        read = self._read(content)
        if read.told["round"] < self.rounds:
            raise BadFrame("content", "is of a round that is still open")
        return Learnt(read.told["form"], read.arrays)

    def report(self, number: int, content: bytes, records: Records, source: Source) -> Rows:
        """Return what devices send in a round, as the columns of its kind."""
        if self.round_of(content) != number:
            raise BadFrame("content", "is of another round")
        if isinstance(self.selector, Asking) and number == 0:
            return self.selector.tell(records, source).columns()
        return self.lesson.report(records, self.columns(content), source)

    def next(self, number: int, content: bytes, released: Released) -> bytes:
        """Return the next content.

        A selection without reports chooses at random; training without reports teaches nothing.
        """
        rows: Rows = {}
        if released.count and released.rows is not None:
            rows = self.kind(number).decode(released.rows)
        if isinstance(self.selector, Asking) and number == 0:
            return self._written(1, self._selected(self.selector, rows))
        columns = self.columns(content)
        learnt = self.lesson.learn(rows, columns) if rows else NOTHING
        return self._written(number + 1, columns, learnt)

    def predict(self, content: bytes, records: Records) -> Labels:
        """Return the labels of records that stay on their devices."""
        return self.lesson.predict(self.learnt(content), records.values, self.columns(content))

    def query(self, content: bytes, records: Records, source: Source) -> Rows:
        """Return what devices send to ask about records, as the columns of ``query_kind``."""
        columns = self.columns(content)
        return self.lesson.query(self.learnt(content), records, columns, source)

    def answers(self, content: bytes, queries: pa.RecordBatch) -> Labels:
        """Return a decision for each protected question."""
        rows = self.lesson.query_kind.decode(queries)
        return self.lesson.answers(self.learnt(content), rows, self.columns(content))

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return plain data that ``of_json`` reads."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {**told, "schema": self.schema.as_json()}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "RecordCourse":  # Any: JSON
        """Read a course from plain data, or raise BadParameter."""
        check_types(cls, told)
        try:
            return cls(**{**told, "schema": Schema.of_json(told["schema"])})
        except (TypeError, KeyError):
            rule = "to have schema, epsilon, owners and what else a course of records takes"
            raise BadParameter("course", sorted(told), rule) from None

    def _check(self) -> None:
        choices = {
            "method": RECORD_METHODS,
            "selection": SELECTIONS,
            "variant": get_args(Variant),
            "queries": get_args(Queries),
        }
        for name, listed in choices.items():
            if getattr(self, name) not in listed:
                raise BadParameter(name, getattr(self, name), f"one of {', '.join(listed)}")
        check_count(self.attributes, "attributes", least=0, most=len(self.schema))
        check_count(self.seed, "seed", least=0, most=1 << 53)

    def _selected(self, selector: Asking, rows: Rows) -> tuple[int, ...]:
        """Return the chosen attributes; answers that no device could give are left out."""
        if not rows:
            return self._drawn()
        return selector.choose(Answers.of(rows), len(self.schema)).columns

    def _drawn(self) -> tuple[int, ...]:
        """Return attributes that are chosen without data: all, or so many by the public seed."""
        if self.method == "joint-bayes":
            return ()  # every owner draws
        if self.selection == "none":
            return tuple(range(len(self.schema)))
        order = SeededSource(self.seed, "attributes").generator().permutation(len(self.schema))
        return tuple(int(one) for one in order[: self.chosen])

    def _written(
        self, number: int, columns: tuple[int, ...], learnt: Learnt | None = None
    ) -> bytes:
        told = {"course": self._digest(), "round": number, "columns": list(columns)}
        if learnt is None:
            return write_content(Content(told, {}))
        return write_content(Content({**told, "form": learnt.form}, learnt.arrays))

    def _read(self, content: bytes) -> Content:
        """Read a content of this course; whatever else it is raises BadFrame."""
        read = read_content(content)
        told, number = read.told, read.told.get("round")
        is_done = type(number) is int and number == self.rounds
        keys = {"course", "round", "columns", *({"form"} if is_done else ())}
        if set(told) != keys or type(number) is not int or not 0 <= number <= self.rounds:
            raise BadFrame("content", "is not one of a collection of records")
        if told["course"] != self._digest():
            raise BadFrame("content", "is of another course")
        columns = told["columns"]
        places = range(len(self.schema))
        if not isinstance(columns, list) or not all(
            type(one) is int and one in places for one in columns
        ):
            raise BadFrame("content", "names attributes that the schema does not have")
        is_chosen = bool(number) or not isinstance(self.selector, Asking)
        wanted = self.chosen if is_chosen and self.method != "joint-bayes" else 0
        if len(set(columns)) != len(columns) or len(columns) != wanted:
            raise BadFrame("content", "does not name as many attributes as are told of")
        if is_done:
            self._check_model(Learnt(told["form"], read.arrays), columns)
        return read

    def _check_model(self, learnt: Learnt, columns: list[int]) -> None:
        """Refuse a model that does not go with the attributes, by trying it."""
        try:
            self.lesson.predict(learnt, np.zeros((1, len(self.schema))), columns)
        except (BadParameter, KeyError, IndexError, ValueError, TypeError):
            raise BadFrame("content", "has no model of this course") from None

    def _digest(self) -> str:
        return _digest_of(self)


@lru_cache(maxsize=64)
def _digest_of(course: RecordCourse) -> str:
    """Return a hash of a course's description."""
    text = json.dumps(course.as_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
