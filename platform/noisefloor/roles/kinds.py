"""Every kind of frame that services and simulator may ask for, listed in one place.

A pipeline declares its kind beside its mathematics and adds one line to ``BUILDERS``. Nothing
registers itself: what is not written here does not exist.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from noisefloor.ads.clicks import CLICKS, clicks_kind
from noisefloor.errors import BadParameter
from noisefloor.roles.ad_server import IMPRESSIONS, impressions_kind
from noisefloor.wire.kinds import Kind

Builder = Callable[..., Kind]
"""Takes a kind's sizes as keywords; what it makes has the name under which it is listed."""

BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {IMPRESSIONS: impressions_kind, CLICKS: clicks_kind}
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
