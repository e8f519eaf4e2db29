"""Who holds which record: rows of a data set, split before anybody draws, or synthetic ones.

A row belongs to the side of training or to that of tests, for the whole run, and so does whoever
holds it. Where there are no more users than rows, each row is held once at most; where there are
more, users draw rows with replacement, and the report says so.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.collection import ionosphere, schema_of_data, wdbc
from noisefloor.errors import BadTable
from noisefloor.randomness import SeededSource
from noisefloor.tables import Continuous, Label, ScaledRecords, ScaledSchema, load_table
from noisefloor_sim.pipelines.collection.block import CollectionBlock, block_of
from noisefloor_sim.pipelines.collection.synthetic_wearables import SCHEMA, health_records
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import DEVICES, Cohort

WEARABLE = DEVICES.index("wearable")


@dataclass(frozen=True, slots=True, eq=False)
class CohortRecords:
    """What the users of a cohort hold.

    Attributes:
        records: One for each.
        is_test: Whether it is one that nobody trains on.
        row: Its place in the data set; every synthetic record has one of its own.
        holder: The device that holds it: the wearable, or else the first device.
    """

    records: ScaledRecords
    is_test: NDArray[np.bool_]
    row: NDArray[np.int64]
    holder: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class RecordAssignment:
    """Where the records of one world come from.

    Attributes:
        scenario: Of the world.
        schema: Of the records.
        table: The rows of a data set; nothing where records are synthetic.
        outside: Which values of the rows lay outside their declared range.
    """

    scenario: Scenario
    schema: ScaledSchema
    table: ScaledRecords | None
    outside: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, scenario: Scenario) -> "RecordAssignment":
        """Load what a scenario names; a data set that was not fetched is an error."""
        block = block_of(scenario)
        if block.source == "synthetic":
            return cls(scenario, SCHEMA, None)
        return cls(scenario, *load_source(block.source, block.schema_file))

    @property
    def rows(self) -> int:
        """How many different records there are to hold."""
        users = self.scenario.population.users
        return users if self.table is None else len(self.table)

    @property
    def is_reused(self) -> bool:
        """Whether there are more users than rows."""
        return self.scenario.population.users > self.rows

    @property
    def owners(self) -> int:
        """About how many users train: a public figure."""
        block = block_of(self.scenario)
        return max(1, round(self.scenario.population.users * (1 - block.test_share)))

    def moved(self, rows: NDArray[np.int64], records: ScaledRecords) -> NDArray[np.bool_]:
        """Return which values of records were moved into their declared range.

        A synthetic number is continuous: it lies on an end only if it was moved there.
        """
        if self.outside is not None:
            return np.asarray(self.outside[rows])
        is_number = [isinstance(one, Continuous) for one in self.schema.attributes]
        return np.asarray((np.abs(records.values) == 1.0) & is_number)

    def people(self, cohort: Cohort) -> CohortRecords:
        """Return what a cohort's users hold, the same at each wake."""
        rows, is_test = self._rows(cohort)
        holder = np.where(cohort.owns[:, WEARABLE], WEARABLE, cohort.owns.argmax(axis=1))
        if self.table is None:
            draw = self._source("records", cohort.number).generator()
            records = health_records(self.scenario.population.cohort, draw)[: len(cohort)]
        else:
            records = self.table[rows]
        return CohortRecords(records, is_test, rows, holder)

    def _rows(self, cohort: Cohort) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return each user's row, and whether it is one to test with."""
        numbers = cohort.first + np.arange(len(cohort))
        draw = self._source("rows", cohort.number).generator()
        drawn = draw.random(self.scenario.population.cohort)[: len(cohort)]
        if self.table is None:
            return numbers, drawn < block_of(self.scenario).test_share
        split = self._split()
        rows = (drawn * len(split)).astype(np.int64)
        if not self.is_reused:
            rows = self._source("held").generator().permutation(len(split))[numbers]
        return rows, split[rows]

    def _split(self) -> NDArray[np.bool_]:
        """Return which rows are kept back: at least one, and not all."""
        count = 0 if self.table is None else len(self.table)
        back = round(count * block_of(self.scenario).test_share)
        is_test = np.zeros(count, dtype=np.bool_)
        order = self._source("split").generator().permutation(count)
        is_test[order[: min(max(back, 1), count - 1)]] = True
        return is_test

    def _source(self, *path: str | int) -> SeededSource:
        return SeededSource(self.scenario.seed, "pipeline", "collection", *path)


@lru_cache(maxsize=4)
def load_source(
    source: str, schema_file: str
) -> tuple[ScaledSchema, ScaledRecords, NDArray[np.bool_]]:
    """Return a data set by name or a user's own file, and which values are outside their range."""
    if source in ("wdbc", "ionosphere"):
        schema, records = wdbc() if source == "wdbc" else ionosphere()
        return schema, records, np.zeros(records.values.shape, dtype=np.bool_)
    if source == "adult":
        table = load_table("adult")
        label = next(name for name in table if name.startswith("income"))
        low, high = sorted({str(value) for value in np.unique(table[label])})
        schema = schema_of_data(table, Label(label, low, high), source)
    else:
        schema = ScaledSchema.read(schema_file)
        table = load_table(source, schema.columns)
    records = schema.records(table, source)
    if len(np.unique(records.labels)) < 2:
        rule = "Expected two classes of the label at least, found one: nothing could be learnt."
        raise BadTable(source, rule, schema.label.name)
    return schema, records, schema.outside(table)


def schema_is_public(block: CollectionBlock) -> bool:
    """Say whether ranges are declared; those of the named data sets are taken from their rows."""
    return block.source == "synthetic" or bool(block.schema_file)
