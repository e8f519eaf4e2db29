"""Click and impression reports, as printed and corrected, and the rates that follow from them."""

from noisefloor.ads.clicks.click_report import CLICKS, ClickEncoding, ClickReport, clicks_kind
from noisefloor.ads.clicks.delivered_click import (
    DELIVERED_CLICKS,
    PANEL_CLICKS,
    DeliveredClick,
    delivered_clicks_kind,
    panel_clicks_kind,
)
from noisefloor.ads.clicks.dropped_clicks import (
    DROPPED_CLICKS,
    DroppedClicks,
    dropped_clicks_kind,
)
from noisefloor.ads.clicks.impression_report import (
    SHOWN_AD_SETS,
    SHOWN_ADS,
    ImpressionReport,
    shown_ad_sets_kind,
    shown_ads_kind,
)
from noisefloor.ads.clicks.memoised_clicks import MemoisedClicks
from noisefloor.ads.clicks.rates import CONFIDENCE_LEVEL, click_through, counts_of, normal_quantile

__all__ = [
    "CLICKS",
    "CONFIDENCE_LEVEL",
    "DELIVERED_CLICKS",
    "DROPPED_CLICKS",
    "PANEL_CLICKS",
    "SHOWN_ADS",
    "SHOWN_AD_SETS",
    "ClickEncoding",
    "ClickReport",
    "DeliveredClick",
    "DroppedClicks",
    "ImpressionReport",
    "MemoisedClicks",
    "click_through",
    "clicks_kind",
    "counts_of",
    "delivered_clicks_kind",
    "dropped_clicks_kind",
    "normal_quantile",
    "panel_clicks_kind",
    "shown_ad_sets_kind",
    "shown_ads_kind",
]
