"""Synthetic labelled records of a service's customers, by a stated law: no data are needed.

A person has two hidden factors, standard normal: means and leisure. Each column is a factor with
noise of its own, cut at public edges; the region is independent of everything. Whether somebody
subscribes is drawn by the logistic law of

    -0.9 + 1.5 means - 0.9 leisure + 0.9 means * leisure,

so a linear model is good, one with a hidden layer is better, and a tenth or so of the labels
cannot be told by anybody. All of it is made up: figures that come of it are about methods.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import Generator
from noisefloor.tables import Categories, ColumnDomain, Records, Schema

LABEL = "subscribes"
SOURCE = "synthetic"


@dataclass(frozen=True, slots=True)
class CustomerTrait:
    """A column that follows from a factor.

    Attributes:
        name: Of the column.
        values: Its categories, from low to high.
        means: Weight of the factor of means.
        leisure: Weight of the factor of leisure.
        noise: Weight of what is the column's own.
    """

    name: str
    values: tuple[str, ...]
    means: float
    leisure: float
    noise: float


TRAITS = (
    CustomerTrait("age", ("-25", "25-34", "35-44", "45-54", "55-64", "65-"), 0.5, 0.5, 0.7),
    CustomerTrait("education", ("school", "trade", "college", "degree"), 0.8, 0.0, 0.6),
    CustomerTrait("income", ("low", "lower", "middle", "upper", "high"), 0.9, -0.2, 0.4),
    CustomerTrait("hours", ("none", "part", "full", "more"), 0.3, -0.8, 0.5),
    CustomerTrait("household", ("one", "two", "three", "more"), 0.2, -0.3, 0.9),
    CustomerTrait("evenings", ("never", "some", "often", "daily"), -0.2, 0.9, 0.4),
    CustomerTrait("devices", ("phone", "two", "three"), 0.6, 0.1, 0.8),
)
REGIONS = ("north", "east", "south", "west", "centre", "isles")

_CUTS = {3: (-0.6, 0.6), 4: (-0.8, 0.0, 0.8), 5: (-1.0, -0.3, 0.3, 1.0)}
_CUTS[6] = (-1.1, -0.5, 0.0, 0.5, 1.1)

_COLUMNS: dict[str, ColumnDomain] = {trait.name: Categories(trait.values) for trait in TRAITS}
SCHEMA = Schema(
    "one customer's record",
    {**_COLUMNS, "region": Categories(REGIONS), LABEL: Categories(("no", "yes"))},
)


def customer_records(count: int, draw: Generator) -> Records:
    """Draw the records of a number of people."""
    means, leisure = draw.standard_normal((2, count))
    own = draw.standard_normal((len(TRAITS), count))
    columns: dict[str, NDArray[np.str_]] = {}
    for trait, noise in zip(TRAITS, own, strict=True):
        scale = np.sqrt(trait.means**2 + trait.leisure**2 + trait.noise**2)
        level = (trait.means * means + trait.leisure * leisure + trait.noise * noise) / scale
        place = np.searchsorted(_CUTS[len(trait.values)], level)
        columns[trait.name] = np.array(trait.values)[place]
    columns["region"] = np.array(REGIONS)[draw.integers(0, len(REGIONS), count)]
    lean = -0.9 + 1.5 * means - 0.9 * leisure + 0.9 * means * leisure
    is_one = draw.random(count) < 1 / (1 + np.exp(-2 * lean))
    columns[LABEL] = np.array(("no", "yes"))[is_one.astype(np.intp)]
    return Records.of(columns, SCHEMA, SOURCE)
