"""Bid requests in the shape of OpenRTB 2.6, with no field for anybody.

What a device released rides as one segment of ``site.content.data``. OpenRTB would put a segment
about a person into ``user.data``; here there is no ``user`` object at all, so that nothing can be
put beside it. The segment's id is the released symbol, ``ext.noisefloor`` says how many symbols
there are and at which epsilon it was released: all that a bidder needs to weigh it.

A reader takes listed fields only, so that a field nobody thought of is refused like an identifier.
That stops habits and accidents. It does not stop a sender who hides bits in a floor, nor does it
hide when a request is sent or from which address.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from noisefloor.ads.auction import openrtb_fields
from noisefloor.ads.auction.clearing import AuctionType
from noisefloor.checks import check_count, check_epsilon
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.randomness import Source
from noisefloor.wire import Kind, Symbols

Request = dict[str, Any]  # JSON

MOST_BYTES = 1 << 14
_ID_BYTES = 16

BID_REQUESTS = "bid-requests"
"""The kind of frame that carries what the day's bid requests tell bidders."""


def bid_requests_kind(ads: int, topics: int) -> Kind:
    """Make the kind of bid requests: a released symbol and the page's topic, each counted.

    Args:
        ads: Symbols that can be released; the one past the last says that none was.
        topics: Of pages.
    """
    return Kind(BID_REQUESTS, (("symbol", Symbols(ads + 1)), ("topic", Symbols(topics))))


@dataclass(frozen=True, slots=True)
class Slot:
    """The place for an ad, as a publisher offers it; nothing here is about who looks at it.

    Attributes:
        width: Of the banner, in pixels.
        height: Of the banner, in pixels.
        floor_micros: What an impression costs at least, in millionths of the currency.
        currency: ISO 4217.
        category: Of the page, in a content taxonomy; none if the page is not to be named.
        taxonomy: Which one: AdCOM's number.
        blocked_categories: Of advertisers that the publisher does not take.
        blocked_domains: Of advertisers that the publisher does not take.
    """

    width: int = 300
    height: int = 250
    floor_micros: int = 0
    currency: str = "USD"
    category: str | None = None
    taxonomy: int = 1
    blocked_categories: Sequence[str] = ()
    blocked_domains: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_count(self.width, "width", most=openrtb_fields.MOST_SIDE)
        check_count(self.height, "height", most=openrtb_fields.MOST_SIDE)
        check_count(self.floor_micros, "floor_micros", least=0, most=openrtb_fields.MOST_FLOOR)
        check_count(self.taxonomy, "taxonomy", most=openrtb_fields.MOST_LISTED)
        if not openrtb_fields.CURRENCY.fullmatch(self.currency):
            raise BadParameter("currency", self.currency, "to be three capital letters")
        if self.category is not None and not openrtb_fields.CATEGORY.fullmatch(self.category):
            raise BadParameter(
                "category", self.category, f"to match {openrtb_fields.CATEGORY.pattern}"
            )


@dataclass(frozen=True, slots=True)
class ReleasedSymbol:
    """What a device let out: one of n symbols, by a mechanism of this epsilon."""

    symbol: int
    symbols: int
    epsilon: float

    def __post_init__(self) -> None:
        check_count(self.symbols, "symbols", most=openrtb_fields.MOST_SYMBOLS)
        check_count(self.symbol, "symbol", least=0, most=self.symbols - 1)
        check_epsilon(self.epsilon)


def bid_request(
    released: ReleasedSymbol | None,
    slot: Slot,
    source: Source,
    *,
    rule: AuctionType = AuctionType.SECOND_PRICE,
    tmax_ms: int = 120,
    country: str | None = None,
    device_type: int | None = None,
    gdpr: bool = True,
) -> Request:
    """Return the request of one impression; its id is drawn anew and says nothing.

    Args:
        released: What the device let out; none for a request that is contextual only.
        slot: What the publisher offers.
        source: Draws for the id; a source serves one request.
        rule: How the auction is cleared.
        tmax_ms: How long bidders have.
        country: ISO 3166-1 alpha-3; the finest place there is.
        device_type: AdCOM's number of the general type: phone, tablet, television.
        gdpr: Whether the regulation applies.
    """
    request_id = source.stage("request").bytes_of(_ID_BYTES)[:_ID_BYTES].tobytes().hex()
    request: Request = {
        "id": request_id,
        "imp": [_impression(slot)],
        "site": _site(slot, released),
        "at": rule.value,
        "tmax": tmax_ms,
        "cur": [slot.currency],
        "regs": {"gdpr": int(gdpr)},
    }
    if slot.blocked_categories:
        request |= {"cattax": slot.taxonomy, "bcat": list(slot.blocked_categories)}
    if slot.blocked_domains:
        request["badv"] = list(slot.blocked_domains)
    if device_type is not None:
        request["device"] = {"devicetype": device_type}
    if country is not None:
        request.setdefault("device", {})["geo"] = {"country": country}
    check_request(request)
    return request


def _impression(slot: Slot) -> Request:
    return {
        "id": openrtb_fields.IMPRESSION,
        "banner": {"w": slot.width, "h": slot.height},
        "bidfloor": slot.floor_micros / openrtb_fields.MICROS_PER_CPM,
        "bidfloorcur": slot.currency,
        "secure": 1,
    }


def _site(slot: Slot, released: ReleasedSymbol | None) -> Request:
    site: Request = {}
    if slot.category is not None:
        site |= {"cattax": slot.taxonomy, "cat": [slot.category]}
    if released is not None:
        terms = {"epsilon": float(released.epsilon), "symbols": released.symbols}
        segment = {"id": str(released.symbol)}
        data = {
            "name": openrtb_fields.PROVIDER,
            "segment": [segment],
            "ext": {openrtb_fields.PROVIDER: terms},
        }
        site["content"] = {"data": [data]}
    return site


def write_request(request: Request) -> str:
    """Return the request as JSON text, after checking it."""
    check_request(request)
    return json.dumps(request, separators=(",", ":"), allow_nan=False)


def read_request(text: str | bytes) -> Request:
    """Read JSON text, or raise OutOfDomain, whatever the text is; no value is ever quoted."""
    if len(text) > MOST_BYTES:
        raise OutOfDomain(f"Bid request: the text has more than {MOST_BYTES} characters.")
    try:
        request = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, OutOfDomain):
            raise
        raise OutOfDomain("Bid request: the text is not JSON.") from None
    check_request(request)
    checked: Request = request
    return checked


def released_of(request: Request) -> ReleasedSymbol | None:
    """Return what a checked request carries."""
    data = request.get("site", {}).get("content", {}).get("data")
    if not data:
        return None
    terms = data[0]["ext"][openrtb_fields.PROVIDER]
    return ReleasedSymbol(int(data[0]["segment"][0]["id"]), terms["symbols"], terms["epsilon"])


def check_request(request: object) -> None:
    """Refuse identifiers wherever they stand, and every field that is not listed.

    Raises:
        OutOfDomain: Names the path and the rule, and never shows the value.
    """
    for path, reason in openrtb_fields.find_identifiers(request):
        raise OutOfDomain(f"Bid request: {path} is {reason}; it may not be sent.")
    openrtb_fields.check_shape(request)


def _once(pairs: list[tuple[str, Any]]) -> Request:
    """Refuse a name that comes twice: two readers could take different ones."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise OutOfDomain("Bid request: an object has a name twice.")
    return made


def _no_constant(_: str) -> float:
    raise OutOfDomain("Bid request: NaN and infinity are no JSON.")
