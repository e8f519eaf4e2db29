"""Every kind of frame that services and simulator may ask for, listed in one place.

A pipeline declares its kind beside its mathematics and adds one line to ``BUILDERS``. Nothing
registers itself: what is not written here does not exist.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from noisefloor.ads.bit_training import GRADIENT_BITS, gradient_bits_kind
from noisefloor.ads.clicks import CLICKS, clicks_kind
from noisefloor.ads.delivered_click import DELIVERED_CLICKS, delivered_clicks_kind
from noisefloor.ads.gradient_column import GRADIENT_NOISE, gradient_noise_kind
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
from noisefloor.errors import BadParameter
from noisefloor.roles.ad_server import IMPRESSIONS, impressions_kind
from noisefloor.wire.kinds import Kind

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
    }
)


def kinds_of(
    sizes: Mapping[str, Mapping[str, int]], builders: Mapping[str, Builder] = BUILDERS
) -> dict[str, Kind]:
    """Make the kinds that were asked for: ``kinds_of({"impressions": {"size": 20}})``."""
    kinds = {}
    for name, given in sizes.items():
        if name not in builders:
            raise BadParameter("kind", name, f"one of {', '.join(sorted(builders))}")
        try:
            kinds[name] = builders[name](**given)
        except TypeError:
            raise BadParameter(name, sorted(given), "the sizes that this kind takes") from None
        if kinds[name].name != name:
            raise BadParameter("kind", kinds[name].name, f"to be called {name}")
    return kinds
