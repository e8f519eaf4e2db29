"""The paper's two data sets, each with the C that the paper uses for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from noisefloor.collection.paper_data import ionosphere, wdbc
from noisefloor.collection.schema import Records, Schema


@dataclass(frozen=True, slots=True, eq=False)
class DataSource:
    """Records with their schema, and the C that the paper uses for them."""

    schema: Schema
    records: Records
    weight: float


SOURCES: Mapping[str, Callable[[], DataSource]] = {
    "wdbc": lambda: DataSource(*wdbc(), 2.1),
    "ionosphere": lambda: DataSource(*ionosphere(), 3.9),
}
TITLES = {"wdbc": "WDBC", "ionosphere": "Ionosphere"}
