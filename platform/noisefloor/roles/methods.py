"""Every method of publication, in one list: services and simulator find them here.

A method is declared beside its mathematics; here it is bound to the data sets that it reads.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from noisefloor.publication import histogram
from noisefloor.publication.records import Records
from noisefloor.publication.tensors import MEDIA_TYPE
from noisefloor.roles.model_publisher import Method, Request

DataSets: TypeAlias = Mapping[str, Records]


def histogram_method(data_sets: DataSets) -> Method:
    """Make the method that publishes noisy counts; see ``publication.histogram``."""

    def planned(request: Request) -> histogram.Histogram:
        schema = data_sets[request.data_set].schema
        return histogram.Histogram.of(schema, request.parameters, request.cost)

    return Method(
        histogram.NAME,
        MEDIA_TYPE,
        proved=lambda request: planned(request).guarantee,
        release=lambda request, source: planned(request).release(
            data_sets[request.data_set], source
        ),
        describe=lambda request, _: planned(request).facts,
        help=histogram.HELP,
    )


BUILDERS: Mapping[str, Callable[[DataSets], Method]] = MappingProxyType(
    {histogram.NAME: histogram_method}
)
"""What makes each method, by its name."""


def methods_of(data_sets: DataSets) -> dict[str, Method]:
    """Make every method for some data sets."""
    return {name: build(data_sets) for name, build in BUILDERS.items()}
