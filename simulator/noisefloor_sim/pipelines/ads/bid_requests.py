"""Bid requests as they would leave for bidders: built from what devices released, and checked."""

import json

from noisefloor.ads.auction.request import (
    Released,
    Slot,
    bid_request,
    read_request,
    released_of,
    write_request,
)
from noisefloor.ads.delivery import Delivery
from noisefloor.checks import LARGEST_EPSILON, SMALLEST_EPSILON
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.scenario.model import Scenario

EACH_DAY = 4
"""Requests that are written out and read back on each day."""


def market_source(scenario: Scenario) -> SeededSource:
    """Return where the market's coins come from."""
    return SeededSource(scenario.seed, "pipeline", "ads", "market")


def request_text(
    scenario: Scenario, delivery: Delivery, symbol: int, topic: int, source: SeededSource
) -> str:
    """Return one impression's request as JSON, after it was read back as a bidder would.

    Args:
        scenario: The point.
        delivery: By which the device released an ad.
        symbol: The ad; one past the last where none was released.
        topic: Of the page.
        source: Of the request's id.
    """
    epsilon, released = delivery.guarantee().epsilon, None
    # What is drawn blindly or told in the open has no place in a request: it goes without.
    if symbol < delivery.ads and SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        released = Released(symbol, delivery.ads, epsilon)
    floor = block_of(scenario).auction.floor_micros
    slot = Slot(floor_micros=floor, category=f"IAB{topic + 1}")
    text = write_request(bid_request(released, slot, source))
    if released_of(read_request(text)) != released:
        raise OutOfDomain("Bid request: does not read back as it was written.")
    return text


def request_source(source: SeededSource, day: int, place: int) -> SeededSource:
    """Return where the id of one request comes from."""
    return source.child("bid-request", day, place)


def example_lines(scenario: Scenario, day: int, symbol: int, topic: int) -> list[str]:
    """Return the first request of a day again, as lines of indented JSON, for the report."""
    with new_run():
        source = request_source(market_source(scenario), day, 0)
        text = request_text(scenario, delivery_of(scenario), symbol, topic, source)
    return json.dumps(json.loads(text), indent=2).splitlines()
