"""Every method of publication, in one list: services and simulator find them here.

A method is declared beside its mathematics; here it is bound to the data sets that it reads.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from noisefloor.publication import histogram
from noisefloor.publication.model_methods import MODEL_METHODS
from noisefloor.publication.records import Records
from noisefloor.publication.tensors import MEDIA_TYPE, check_writable
from noisefloor.roles.model_publisher import Method, Request
from noisefloor.roles.published_models import Audit, model_method

DataSets: TypeAlias = Mapping[str, Records]


def histogram_method(data_sets: DataSets) -> Method:
    """Make the method that publishes noisy counts; see ``publication.histogram``."""

    def planned(request: Request) -> histogram.Histogram:
        check_writable()
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


def _histogram(data_sets: DataSets, _: Audit | None) -> Method:
    return histogram_method(data_sets)


BUILDERS: Mapping[str, Callable[[DataSets, Audit | None], Method]] = MappingProxyType(
    {
        histogram.NAME: _histogram,
        **{name: partial(model_method, kind) for name, kind in MODEL_METHODS.items()},
    }
)
"""What makes each method, by its name."""


def methods_of(data_sets: DataSets, audit: Audit | None = None) -> dict[str, Method]:
    """Make every method for some data sets.

    Args:
        data_sets: What is published from, by name.
        audit: Plays the games that cards tell of; without one they say that nobody did.
    """
    return {name: build(data_sets, audit) for name, build in BUILDERS.items()}
