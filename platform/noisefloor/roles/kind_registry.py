"""Every kind of frame that services and simulator may ask for, listed in one place.

A pipeline declares its kind beside its mathematics and adds one line to ``KIND_BUILDERS``. Nothing
registers itself: what is not written here does not exist. A kind whose columns are its user's own
(records with a schema) is described by its columns instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from noisefloor.ads import auction, clicks, delivery, training
from noisefloor.collection import collecting, encoding
from noisefloor.errors import BadParameter
from noisefloor.publication.text import POSTED_TEXTS, PostedText, posted_texts_kind
from noisefloor.roles.ad_server import IMPRESSIONS, impressions_kind
from noisefloor.wire import Bits, Column, Integers, Kind, Reduction, Symbols, Text

KindBuilder = Callable[..., Kind]
"""Takes a kind's sizes as keywords; what it makes has the name under which it is listed."""

KIND_BUILDERS: Mapping[str, KindBuilder] = MappingProxyType(
    {
        IMPRESSIONS: impressions_kind,
        delivery.AD_REQUESTS: delivery.ad_requests_kind,
        delivery.AD_SLATES: delivery.ad_slates_kind,
        auction.BID_REQUESTS: auction.bid_requests_kind,
        clicks.CLICKS: clicks.clicks_kind,
        clicks.SHOWN_ADS: clicks.shown_ads_kind,
        clicks.SHOWN_AD_SETS: clicks.shown_ad_sets_kind,
        clicks.DELIVERED_CLICKS: clicks.delivered_clicks_kind,
        clicks.DROPPED_CLICKS: clicks.dropped_clicks_kind,
        clicks.PANEL_CLICKS: clicks.panel_clicks_kind,
        training.GRADIENT_BITS: training.gradient_bits_kind,
        training.GRADIENT_NOISE: training.gradient_noise_kind,
        training.RATED_BITS: training.rated_bits_kind,
        training.RATING_DIRECTIONS: training.rating_directions_kind,
        training.RATING_AXES: training.rating_axes_kind,
        encoding.RANGE_ROWS: encoding.range_rows_kind,
        encoding.JOINT_ROWS: encoding.joint_rows_kind,
        collecting.DECISIONS: collecting.decisions_kind,
        collecting.SELECTION_VALUES: collecting.selection_values_kind,
        encoding.TRAINING_VALUES: encoding.training_values_kind,
        encoding.QUERY_VALUES: encoding.query_values_kind,
        POSTED_TEXTS: posted_texts_kind,
    }
)

COLUMN_TYPES: Mapping[str, Callable[..., Column]] = MappingProxyType(
    {
        "bits": Bits,
        "symbols": Symbols,
        "integers": Integers,
        "text": Text,
        "posted-text": PostedText,
        "slate-rows": delivery.SlateRows,
        "sign-pairs": training.SignPairs,
        "gradient-rows": training.GradientRows,
    }
)
"""Every type of column, by the name under which a description has it."""


def kinds_from_sizes(
    sizes: Mapping[str, Mapping[str, Any]],  # Any: numbers, or a description by columns
    builders: Mapping[str, KindBuilder] = KIND_BUILDERS,
) -> dict[str, Kind]:
    """Make the kinds that were requested: ``kinds_from_sizes({"impressions": {"size": 20}})``.

    A kind may also be described by its columns, as ``kind_description`` writes it.
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
    """Describe a kind by its columns, as plain data that ``kinds_from_sizes`` reads."""
    names = {made: name for name, made in COLUMN_TYPES.items()}
    columns = [
        {"name": name, "type": names[type(column)], **asdict(column)}  # type: ignore[call-overload]
        for name, column in kind.columns
    ]
    return {"reduction": kind.reduction.value, "columns": columns}


def _by_columns(name: str, payload: Mapping[str, Any]) -> Kind:  # Any: JSON
    if set(payload) - {"columns", "reduction"}:
        raise BadParameter(name, sorted(payload), "columns and reduction, and nothing else")
    columns = tuple(_column(name, one) for one in payload["columns"])
    reductions = {one.value: one for one in Reduction}
    if payload.get("reduction", "sum") not in reductions:
        raise BadParameter("reduction", payload["reduction"], f"one of {', '.join(reductions)}")
    return Kind(name, columns, reductions[payload.get("reduction", "sum")])


def _column(kind: str, payload: Mapping[str, Any]) -> tuple[str, Column]:  # Any: JSON
    sizes = {key: value for key, value in payload.items() if key not in ("name", "type")}
    make = COLUMN_TYPES.get(payload.get("type", ""))
    if make is None:
        raise BadParameter(
            f"{kind}: type", payload.get("type"), f"one of {', '.join(COLUMN_TYPES)}"
        )
    try:
        return str(payload["name"]), make(**sizes)
    except (TypeError, KeyError):
        raise BadParameter(kind, sorted(payload), "name, type and the type's own sizes") from None
