"""The kind of frame that carries joint responses, and records as the response takes them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, check_count
from noisefloor.collection.classes import Codes
from noisefloor.collection.schema import Labels
from noisefloor.mechanisms.base import Reports
from noisefloor.wire.columns import Symbols
from noisefloor.wire.kinds import Kind, record_kind

JOINT_ROWS = "joint-rows"
"""The kind's name."""


def joint_rows(codes: Codes, labels: Labels | None = None) -> NDArray[np.uint16]:
    """Return classes and labels side by side, as ``JointResponse.randomise`` takes them."""
    if labels is None:
        return codes
    return np.column_stack([codes, labels.astype(np.uint16)])


def joint_rows_kind(attributes: int, classes: int, chosen: int) -> Kind:
    """Make the kind of joint responses: attributes drawn, a class for each, and the label.

    Args:
        attributes: How many there are to draw from.
        classes: The most that one of them has.
        chosen: How many an owner draws.
    """
    check_count(chosen, "chosen", most=attributes)
    domains = [*[Symbols(attributes)] * chosen, *[Symbols(classes)] * chosen, Symbols(2)]
    return record_kind(JOINT_ROWS, dict(zip(_names(chosen), domains, strict=True)))


def columns_of(reports: Reports) -> dict[str, Array]:
    """Return labelled reports as the columns of their kind."""
    return dict(zip(_names(reports.shape[1] // 2), np.asarray(reports).T, strict=True))


def reports_of(columns: Mapping[str, Array]) -> NDArray[np.uint16]:
    """Return what ``columns_of`` was given; ``check_reports`` says whether it is in the domain."""
    rows = [columns[name] for name in _names(len(columns) // 2)]
    return np.column_stack(rows).astype(np.uint16)


def _names(chosen: int) -> list[str]:
    places = range(1, chosen + 1)
    return [*(f"attribute_{one}" for one in places), *(f"class_{one}" for one in places), "label"]
