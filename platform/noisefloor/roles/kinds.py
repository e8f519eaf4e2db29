"""Every kind of frame that services and simulator may ask for, listed in one place.

A pipeline declares its kind beside its mathematics and adds one line to ``BUILDERS``. Nothing
registers itself: what is not written here does not exist. A kind whose columns are its user's own
(records with a schema) is told by its columns instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from noisefloor.ads.bit_training import GRADIENT_BITS, gradient_bits_kind
from noisefloor.ads.clicks import CLICKS, clicks_kind
from noisefloor.ads.delivered_click import DELIVERED_CLICKS, delivered_clicks_kind
from noisefloor.ads.gradient_column import GRADIENT_NOISE, GradientRows, gradient_noise_kind
from noisefloor.ads.impressions import (
    SHOWN_AD_SETS,
    SHOWN_ADS,
    shown_ad_sets_kind,
    shown_ads_kind,
)
from noisefloor.ads.spectral import (
    RATED_BITS,
    RATING_AXES,
    RATING_DIRECTIONS,
    rated_bits_kind,
    rating_axes_kind,
    rating_directions_kind,
)
from noisefloor.collection.asking import ASKED_VALUES, asked_values_kind
from noisefloor.collection.decisions import DECISIONS, decisions_kind
from noisefloor.collection.joint_rows import JOINT_ROWS, joint_rows_kind
from noisefloor.collection.told import (
    QUERY_VALUES,
    TOLD_VALUES,
    query_values_kind,
    told_values_kind,
)
from noisefloor.errors import BadParameter
from noisefloor.roles.ad_server import IMPRESSIONS, impressions_kind
from noisefloor.wire.columns import Bits, Column, Integers, Symbols
from noisefloor.wire.kinds import Kind, Reduction
from noisefloor.wire.sign_pairs import SignPairs
from noisefloor.wire.text import Text

Builder = Callable[..., Kind]
"""Takes a kind's sizes as keywords; what it makes has the name under which it is listed."""

BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {
        IMPRESSIONS: impressions_kind,
        CLICKS: clicks_kind,
        SHOWN_ADS: shown_ads_kind,
        SHOWN_AD_SETS: shown_ad_sets_kind,
        DELIVERED_CLICKS: delivered_clicks_kind,
        GRADIENT_BITS: gradient_bits_kind,
        GRADIENT_NOISE: gradient_noise_kind,
        RATED_BITS: rated_bits_kind,
        RATING_DIRECTIONS: rating_directions_kind,
        RATING_AXES: rating_axes_kind,
        JOINT_ROWS: joint_rows_kind,
        DECISIONS: decisions_kind,
        ASKED_VALUES: asked_values_kind,
        TOLD_VALUES: told_values_kind,
        QUERY_VALUES: query_values_kind,
    }
)

COLUMNS: Mapping[str, Callable[..., Column]] = MappingProxyType(
    {
        "bits": Bits,
        "symbols": Symbols,
        "integers": Integers,
        "text": Text,
        "sign-pairs": SignPairs,
        "gradient-rows": GradientRows,
    }
)
"""Every type of column, by the name under which a description has it."""


def kinds_of(
    sizes: Mapping[str, Mapping[str, Any]],  # Any: numbers, or a description by columns
    builders: Mapping[str, Builder] = BUILDERS,
) -> dict[str, Kind]:
    """Make the kinds that were asked for: ``kinds_of({"impressions": {"size": 20}})``.

    A kind may be told by its columns, too, as ``kind_description`` writes it.
    """
    kinds = {}
    for name, given in sizes.items():
        if "columns" in given:
            kinds[name] = _by_columns(name, given)
            continue
        if name not in builders:
            raise BadParameter("kind", name, f"one of {', '.join(sorted(builders))}")
        try:
            kinds[name] = builders[name](**given)
        except TypeError:
            raise BadParameter(name, sorted(given), "the sizes that this kind takes") from None
        if kinds[name].name != name:
            raise BadParameter("kind", kinds[name].name, f"to be called {name}")
    return kinds


def kind_description(kind: Kind) -> dict[str, Any]:  # Any: JSON
    """Describe a kind by its columns, as plain data that ``kinds_of`` reads."""
    names = {made: name for name, made in COLUMNS.items()}
    columns = [
        {"name": name, "type": names[type(column)], **asdict(column)}  # type: ignore[call-overload]
        for name, column in kind.columns
    ]
    return {"reduction": kind.reduction.value, "columns": columns}


def _by_columns(name: str, told: Mapping[str, Any]) -> Kind:  # Any: JSON
    if set(told) - {"columns", "reduction"}:
        raise BadParameter(name, sorted(told), "columns and reduction, and nothing else")
    columns = tuple(_column(name, one) for one in told["columns"])
    reductions = {one.value: one for one in Reduction}
    if told.get("reduction", "sum") not in reductions:
        raise BadParameter("reduction", told["reduction"], f"one of {', '.join(reductions)}")
    return Kind(name, columns, reductions[told.get("reduction", "sum")])


def _column(kind: str, told: Mapping[str, Any]) -> tuple[str, Column]:  # Any: JSON
    sizes = {key: value for key, value in told.items() if key not in ("name", "type")}
    make = COLUMNS.get(told.get("type", ""))
    if make is None:
        raise BadParameter(f"{kind}: type", told.get("type"), f"one of {', '.join(COLUMNS)}")
    try:
        return str(told["name"]), make(**sizes)
    except (TypeError, KeyError):
        raise BadParameter(kind, sorted(told), "name, type and the type's own sizes") from None
