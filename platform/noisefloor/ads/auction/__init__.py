"""A real-time auction that needs no identifier: requests, bidders, tables, clearing, market."""

from noisefloor.ads.auction.bidders import UNLIMITED, Bidders, Campaign, equilibrium_shade
from noisefloor.ads.auction.clearing import UNFILLED, AuctionType
from noisefloor.ads.auction.learning import ReportCells, learn_chances
from noisefloor.ads.auction.market import AuctionLog, Inventory, run_auctions, run_regimes
from noisefloor.ads.auction.openrtb import (
    BID_REQUESTS,
    ReleasedSymbol,
    Slot,
    bid_request,
    bid_requests_kind,
    read_request,
    released_of,
    write_request,
)
from noisefloor.ads.auction.pacing import Pacing
from noisefloor.ads.auction.signals import (
    Signal,
    contextual,
    expected_chance,
    protected,
    tracking,
)
from noisefloor.ads.auction.summary import MeanWithError, summarise

__all__ = [
    "BID_REQUESTS",
    "UNFILLED",
    "UNLIMITED",
    "AuctionLog",
    "AuctionType",
    "Bidders",
    "Campaign",
    "Inventory",
    "MeanWithError",
    "Pacing",
    "ReleasedSymbol",
    "ReportCells",
    "Signal",
    "Slot",
    "bid_request",
    "bid_requests_kind",
    "contextual",
    "equilibrium_shade",
    "expected_chance",
    "learn_chances",
    "protected",
    "read_request",
    "released_of",
    "run_auctions",
    "run_regimes",
    "summarise",
    "tracking",
    "write_request",
]
