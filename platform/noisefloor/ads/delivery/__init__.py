"""delivery."""

from noisefloor.ads.delivery.ad_request import AdDelivery, AdSelection, utility_of

__all__ = ["AdDelivery", "AdSelection", "utility_of"]
