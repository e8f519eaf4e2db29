"""What a run states of the reports of each kind: the mechanism, and what is proved of one report.

A run registers it with its collection, and every answer of the aggregator repeats it.
"""

from collections.abc import Iterable, Iterator

from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.roles import ReportProtection
from noisefloor_sim.inspection import Flow
from noisefloor_sim.pipelines import Pipeline

IN_THE_OPEN = Guarantee.none("reports are sent as they are, without noise", Neighbours.USER)
NO_NOISE = "none"


def stated_protections(
    pipelines: Iterable[Pipeline], plain_kinds: Iterable[str] = ()
) -> dict[str, ReportProtection]:
    """Return how reports are protected, by kind.

    Args:
        pipelines: Of the run.
        plain_kinds: Kinds of the world itself, which are sent in the open.
    """
    stated = {name: ReportProtection(NO_NOISE, IN_THE_OPEN) for name in plain_kinds}
    for pipeline in pipelines:
        for flow in (*pipeline.flows, *pipeline.request_flows, *pipeline.training_flows):
            stated |= dict(_stated(pipeline, flow))
    return stated


def _stated(pipeline: Pipeline, flow: Flow) -> Iterator[tuple[str, ReportProtection]]:
    prices = pipeline.prices()
    for epoch in flow.epochs:
        price = flow.price_at(epoch)
        found = None if price is None else prices.get(price.ledger)
        proved = IN_THE_OPEN if found is None else found.proved
        yield flow.kind_at(epoch).name, ReportProtection(flow.mechanism_name, proved)
