"""A real-time auction that needs no identifier: requests, bidders, pacing, clearing, market."""

from noisefloor.ads.auction.bidders import UNLIMITED, Bidders, Campaign, equilibrium_shade
from noisefloor.ads.auction.clearing import UNFILLED, Cleared, Rule, clear
from noisefloor.ads.auction.identifiers import IDENTIFIERS
from noisefloor.ads.auction.market import Impressions, Log, Sales, run_auctions, run_regimes
from noisefloor.ads.auction.pacing import Pacing, Purses
from noisefloor.ads.auction.request import (
    Released,
    Slot,
    bid_request,
    check_request,
    read_request,
    released_of,
    write_request,
)
from noisefloor.ads.auction.signals import (
    Regime,
    Signal,
    contextual,
    expected_chance,
    mean_chance,
    protected,
    tracking,
)
from noisefloor.ads.auction.summary import Mean, Summary, paired_gain, summarise

__all__ = [
    "IDENTIFIERS",
    "UNFILLED",
    "UNLIMITED",
    "Bidders",
    "Campaign",
    "Cleared",
    "Impressions",
    "Log",
    "Mean",
    "Pacing",
    "Purses",
    "Regime",
    "Released",
    "Rule",
    "Sales",
    "Signal",
    "Slot",
    "Summary",
    "bid_request",
    "check_request",
    "clear",
    "contextual",
    "equilibrium_shade",
    "expected_chance",
    "mean_chance",
    "paired_gain",
    "protected",
    "read_request",
    "released_of",
    "run_auctions",
    "run_regimes",
    "summarise",
    "tracking",
    "write_request",
]
