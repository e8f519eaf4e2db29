"""Private requests for ads: how a device asks, and the exact distribution of what is shown."""

from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection, utility_of
from noisefloor.ads.delivery.request_kinds import (
    AD_REQUESTS,
    AD_SLATES,
    SlateRows,
    ad_requests_kind,
    ad_slates_kind,
)

__all__ = [
    "AD_REQUESTS",
    "AD_SLATES",
    "AdDelivery",
    "AdSelection",
    "SlateRows",
    "ad_requests_kind",
    "ad_slates_kind",
    "utility_of",
]
