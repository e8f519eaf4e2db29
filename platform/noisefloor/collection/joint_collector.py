"""The joint response as a collector: everybody tells of the same attributes, all in one symbol."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from noisefloor.collection.classes import Classes, check_columns
from noisefloor.collection.collectors import OfClasses, check_positive, told_of
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.joint_rows import joint_rows
from noisefloor.collection.schema import Records
from noisefloor.collection.told import Told
from noisefloor.privacy import Guarantee
from noisefloor.randomness import Source


@dataclass(frozen=True, slots=True)
class JointCollector(OfClasses):
    """One response over the classes of some attributes and the label, with the whole epsilon.

    Attributes:
        classes: Of the attributes.
        epsilon: Of the record.
        with_label: Whether a label is part of the symbol; not so for a question.
    """

    classes: Classes
    epsilon: float
    with_label: bool = True
    name: str = "joint"

    def __post_init__(self) -> None:
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> JointResponse:
        """Return the mechanism for some attributes, all of which are drawn."""
        chosen = check_columns(self.classes.schema, columns)
        sizes = tuple(self.classes.sizes[column] for column in chosen)
        return _joint(sizes, self.epsilon, self.with_label)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two or none."""
        return max(self.classes.sizes), 2 * self.with_label

    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return the classes and the label that the answer stands for."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        rows = joint_rows(codes, records.labels if self.with_label else None)
        reports = self.response(columns).randomise(rows, source)
        return told_of(reports[:, len(columns) :], len(columns))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the record costs."""
        return self.response(columns).guarantee()


@lru_cache(maxsize=64)
def _joint(sizes: tuple[int, ...], epsilon: float, labelled: bool) -> JointResponse:
    return JointResponse(sizes, len(sizes), epsilon, labelled)
