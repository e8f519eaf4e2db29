"""A real-time auction that needs no identifier: requests, bidders, pacing, clearing, market."""

from noisefloor.ads.auction.bidders import UNLIMITED, Bidders, Campaign, equilibrium_shade
from noisefloor.ads.auction.clearing import UNFILLED, AuctionType, ClearedAuctions, clear
from noisefloor.ads.auction.market import (
    AuctionLog,
    AuctionResult,
    Inventory,
    run_auctions,
    run_regimes,
)
from noisefloor.ads.auction.openrtb import (
    ReleasedSymbol,
    Slot,
    bid_request,
    check_request,
    read_request,
    released_of,
    write_request,
)
from noisefloor.ads.auction.openrtb_fields import IDENTIFIERS
from noisefloor.ads.auction.pacing import Pacing, PacingState
from noisefloor.ads.auction.signals import (
    Regime,
    Signal,
    contextual,
    expected_chance,
    mean_chance,
    protected,
    tracking,
)
from noisefloor.ads.auction.summary import AuctionSummary, MeanWithError, summarise

__all__ = [
    "IDENTIFIERS",
    "UNFILLED",
    "UNLIMITED",
    "AuctionLog",
    "AuctionResult",
    "AuctionSummary",
    "AuctionType",
    "Bidders",
    "Campaign",
    "ClearedAuctions",
    "Inventory",
    "MeanWithError",
    "Pacing",
    "PacingState",
    "Regime",
    "ReleasedSymbol",
    "Signal",
    "Slot",
    "bid_request",
    "check_request",
    "clear",
    "contextual",
    "equilibrium_shade",
    "expected_chance",
    "mean_chance",
    "protected",
    "read_request",
    "released_of",
    "run_auctions",
    "run_regimes",
    "summarise",
    "tracking",
    "write_request",
]
