"""A naive Bayes classifier as it is published: log-odds of each class of each attribute.

It is a function of reports alone, so publishing it costs nothing beyond them (post-processing).
A device applies it to its own record, which then never leaves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisefloor.checks import Floats, check_finite, check_reals
from noisefloor.collection.classes import Classes
from noisefloor.collection.schema import Categorical, Labels, Schema
from noisefloor.errors import BadParameter


@dataclass(frozen=True, slots=True, eq=False)
class NaiveBayes:
    """What each attribute says for the positive label, added up.

    Attributes:
        classes: Of each attribute.
        odds: ln P(class | positive) - ln P(class | negative), those of the first attribute
            first.
        prior: ln P(positive) - ln P(negative).
    """

    classes: Classes
    odds: Floats
    prior: float

    def __post_init__(self) -> None:
        if self.odds.shape != (sum(self.classes.sizes),) or not np.isfinite(self.odds).all():
            raise BadParameter("odds", "<odds>", "one finite number for each class")
        check_finite(self.prior, "prior")

    def scores(self, values: Floats) -> Floats:
        """Return the log-odds of the positive label for records in [-1, 1].

        Between the centres of two classes of a range the odds run straight; categories have
        those of their class.
        """
        numbers = check_reals(values, -1.0, 1.0, width=len(self.classes.schema))
        scores = np.full(len(numbers), self.prior)
        start = 0
        for column, size in enumerate(self.classes.sizes):
            odds = self.odds[start : start + size]
            if isinstance(self.classes.schema.attributes[column], Categorical):
                codes = self.classes.codes(numbers[:, column : column + 1], [column])
                scores += odds[codes[:, 0]]
            else:
                scores += np.interp(numbers[:, column], self.classes.centres(column), odds)
            start += size
        return scores

    def predict(self, values: Floats) -> Labels:
        """Return whether each record is taken to be positive."""
        return np.asarray(self.scores(values) > 0)

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Return plain data that ``of_json`` reads."""
        return {
            "schema": self.classes.schema.as_json(),
            "classes": self.classes.most,
            "odds": self.odds.tolist(),
            "prior": self.prior,
        }

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "NaiveBayes":  # Any: JSON
        """Read a model from plain data, or raise BadParameter."""
        try:
            classes = Classes(Schema.of_json(told["schema"]), told["classes"])
            return cls(classes, np.array(told["odds"], dtype=np.float64), told["prior"])
        except (TypeError, KeyError) as error:
            raise BadParameter("model", type(error).__name__, "to be a model") from None


def check_sizes(classes: Classes, sizes: tuple[int, ...]) -> None:
    """Refuse a response that is not one about these classes."""
    if classes.sizes != sizes:
        raise BadParameter("classes", "<classes>", "of the sizes that the response has")
