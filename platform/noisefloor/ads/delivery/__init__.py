"""Private requests for ads: how a device asks, and the exact distribution of what is shown."""

from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection, utility_of

__all__ = ["AdDelivery", "AdSelection", "utility_of"]
