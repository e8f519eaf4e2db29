"""A run states of every kind that it collects what protects its reports, as it is proved."""

import math

import pytest

from noisefloor.privacy import Neighbours
from noisefloor.randomness import new_run
from noisefloor.roles import CollectionConfig
from noisefloor_sim.deploy.hosting.servers import InProcessHost, InProcessServers
from noisefloor_sim.pipelines import BLOCKS, PIPELINES
from noisefloor_sim.runs.engine import Engine
from noisefloor_sim.scenario import expand, find_scenario, load

SHIPPED = ("quickstart", "ads-auction", "ads-training", "clicks-longitudinal", "collection-paper")


class Registering(InProcessHost):
    """Keeps what a world registers."""

    def __init__(self) -> None:
        self.collections: list[CollectionConfig] = []

    def open(self, collection: CollectionConfig) -> InProcessServers:
        """Keep it, and start the servers."""
        self.collections.append(collection)
        return super().open(collection)


def registered(name: str) -> tuple[Engine, CollectionConfig]:
    """Return the world at the first point of a shipped scenario, and what it registers."""
    host = Registering()
    scenario = load(find_scenario(name), BLOCKS, ["population.users=600"])
    with new_run():
        engine = Engine(expand(scenario, BLOCKS)[0].scenario, PIPELINES, hosting=host)
    (collection,) = host.collections
    return engine, collection


@pytest.mark.parametrize("name", SHIPPED)
def test_every_kind_of_a_run_is_stated_and_read_back_by_services(name: str) -> None:
    engine, collection = registered(name)
    assert set(collection.protections) == set(collection.kinds)
    assert collection.terms.minimum == 1
    assert CollectionConfig.parse(collection.content) == collection
    prices = {
        flow: price
        for pipeline in engine.pipelines.values()
        for flow, price in pipeline.prices().items()
    }
    proved = [price.proved for price in prices.values()]
    for kind, stated in collection.protections.items():
        if stated.mechanism == "none":
            assert math.isinf(stated.guarantee.epsilon) and stated.guarantee.reason, kind
        else:
            assert stated.guarantee in proved, kind


def test_the_clicks_of_quickstart_are_stated_with_what_is_proved_of_a_report() -> None:
    engine, collection = registered("quickstart")
    stated = collection.protections["clicks"]
    ((_, price),) = engine.pipelines["clicks"].prices().items()
    assert stated.mechanism == "ClickReport"
    assert stated.guarantee == price.proved
    assert stated.guarantee.neighbours is Neighbours.USER
