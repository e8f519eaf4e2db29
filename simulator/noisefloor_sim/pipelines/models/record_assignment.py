"""Who holds which record, and who never gives it away.

A row belongs to the side of training or to that of tests, for the whole run. Where there are no
more users than rows each is held once at most; where there are more, users of a side draw its rows
with replacement, and the report says so.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadTable
from noisefloor.randomness import SeededSource
from noisefloor.tables import OneHot, Records, load_records
from noisefloor_sim.pipelines.models.block import ModelsBlock, block_of
from noisefloor_sim.pipelines.models.synthetic_customers import LABEL, SCHEMA, customer_records
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import cohort_sizes

_LABELS = {"synthetic": LABEL, "adult": "income"}


@dataclass(frozen=True, slots=True, eq=False)
class UserRecordAssignment:
    """The record of every user of one world.

    Attributes:
        encoding: Public schema and label.
        records: A row for each user.
        is_test: Whose record is never given to the data holder.
        is_reused: Whether users share rows of a data set.
    """

    encoding: OneHot
    records: Records
    is_test: NDArray[np.bool_]
    is_reused: bool

    @classmethod
    def of(cls, scenario: Scenario) -> "UserRecordAssignment":
        """Load or draw what a scenario names; a data set that was not fetched is an error."""
        block = block_of(scenario)
        source = SeededSource(scenario.seed, "pipeline", "models")
        if block.source == "synthetic":
            records, is_reused = _drawn(scenario, source), False
            table, row = records, np.arange(records.count)
        else:
            table = load_source(block)[0]
            row, is_reused = _assigned_rows(table.count, scenario, source)
            records = table[row]
        encoding = _encoding(block, table)
        return cls(
            encoding, records, _split(table.count, block.test_share, source)[row], is_reused
        )

    @property
    def users(self) -> int:
        """How many there are."""
        return self.records.count

    @property
    def owners(self) -> int:
        """About how many give their records to the data holder: a public figure."""
        return max(1, round(self.users * (1 - float(self.is_test.mean()))))


def _drawn(scenario: Scenario, source: SeededSource) -> Records:
    """Draw records cohort by cohort: more users move nobody else's."""
    full = scenario.population.cohort
    sizes = cohort_sizes(scenario.population.users, full)
    parts = [
        customer_records(full, source.child("records", number).generator())[:size]
        for number, size in enumerate(sizes)
    ]
    return Records(
        SCHEMA,
        {name: np.concatenate([one.values[name] for one in parts]) for name in SCHEMA.columns},
        {name: np.concatenate([one.codes[name] for one in parts]) for name in SCHEMA.columns},
    )


def _assigned_rows(
    count: int, scenario: Scenario, source: SeededSource
) -> tuple[NDArray[np.int64], bool]:
    """Return the row of each user, and whether some are held by several."""
    users = scenario.population.users
    order = source.child("held").generator().permutation(count)
    if users <= count:
        return order[:users], False
    drawn = source.child("rows").generator().integers(0, count, users - count)
    return np.concatenate([order, drawn]), True


def _split(count: int, share: float, source: SeededSource) -> NDArray[np.bool_]:
    """Return which rows are kept back: at least one, and not all."""
    is_test = source.child("split").generator().random(count) < share
    if is_test.all() or not is_test.any():
        is_test[0] = not is_test[0]
    return is_test


def load_source(block: ModelsBlock) -> tuple[Records, OneHot]:
    """Load the table of a data set or file, with the encoding of its columns."""
    table = _loaded(block.source)
    return table, _encoding(block, table)


def _encoding(block: ModelsBlock, table: Records) -> OneHot:
    encoding = OneHot(table.schema, _label(block, table))
    _check_classes(block.source, encoding, table)
    return encoding


def _label(block: ModelsBlock, table: Records) -> str:
    label = block.label or _LABELS[block.source]
    if label not in table.schema.columns:
        listed = ", ".join(table.schema.columns)
        raise BadTable(block.source, f"Expected label to name one of its columns, {listed}.")
    return label


def _check_classes(source: str, encoding: OneHot, table: Records) -> None:
    if len(np.unique(table.codes[encoding.label])) < 2:
        rule = "Expected two classes of the label at least, found one: nothing could be learnt."
        raise BadTable(source, rule, encoding.label)


@lru_cache(maxsize=4)
def _loaded(source: str) -> Records:
    """Return a data set by name, or a file with its schema beside it."""
    return load_records(source)
