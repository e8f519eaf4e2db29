"""The parts of the chaos command: what each runs, and how large it is."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from noisefloor.errors import BadParameter
from noisefloor_services.chaos.budget_races import run_spending
from noisefloor_services.chaos.epoch_closing import run_closing
from noisefloor_services.chaos.outage import OutageOutcome, run_outage
from noisefloor_services.chaos.plan import ChaosPlan, ProgressCallback
from noisefloor_services.chaos.publisher_crashes import run_publishing
from noisefloor_services.chaos.service_faults import ServicePlan, run_services
from noisefloor_services.chaos.stream_faults import run_chaos
from noisefloor_services.chaos.termination import run_termination
from noisefloor_services.store import Durability, EmbeddedServer

NAMES = ("streams", "services", "closing", "outage", "termination", "ledger")
MOST_OUTAGE_S = 600.0
RECOVERY_S = 5.0
"""Within which everything has to be as before, once the store is back."""

_JSON_NAMES = {
    "pending_frames": "held_frames",
    "answered_410": "told_closed",
    "requested": "asked",
}
"""Fields that have another name in ``chaos.json``, whose format stays as it is."""

Json = dict[str, Any]  # Any: JSON


class ExperimentOutcome(Protocol):
    """What every part comes to."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What should not have been, in words."""


@dataclass(frozen=True, slots=True)
class ChaosSuite:
    """What is to be run.

    Attributes:
        streams: The plan of the workers' storm; its seed is replaced by each of the seeds.
        services: The plan of the services' storm; likewise.
        seeds: Each storm is run once with each.
        names: Of the parts.
        outage_s: For how long the store is away.
        closings: Epochs that are closed under load.
        stops: SIGTERMs of ad server and aggregator, each.
        spenders: Processes and threads in each.
        publisher_kills: SIGKILLs of the publisher.
        is_small: Whether what only takes long is left out.
    """

    streams: ChaosPlan
    services: ServicePlan
    seeds: tuple[int, ...] = (1, 2, 3)
    names: tuple[str, ...] = NAMES
    outage_s: float = 30.0
    closings: int = 20
    stops: int = 3
    spenders: tuple[int, int] = (100, 1)
    publisher_kills: int = 20
    is_small: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.outage_s <= MOST_OUTAGE_S:
            raise BadParameter("outage-s", self.outage_s, f"in [1, {MOST_OUTAGE_S:g}]")
        if not self.seeds or not all(0 <= seed < 1 << 53 for seed in self.seeds):
            raise BadParameter("seeds", self.seeds, "at least one, each in [0, 2**53)")
        if len(set(self.seeds)) < len(self.seeds):
            raise BadParameter("seeds", self.seeds, "each named once")
        if not self.names or not set(self.names) <= set(NAMES):
            raise BadParameter("only", ",".join(self.names), f"some of {', '.join(NAMES)}")

    def small(self) -> "ChaosSuite":
        """Return the same in small: a minute or two instead of ten."""
        return replace(
            self,
            streams=replace(
                self.streams,
                reports=min(self.streams.reports, 60_000),
                worker_kills=8,
                zombies=4,
                server_kills=min(self.streams.server_kills, 2),
                poison=20,
            ),
            services=replace(
                self.services,
                reports=20_000,
                ad_server_kills=2,
                aggregator_kills=1,
                zombies=0,
                server_kills=min(self.services.server_kills, 1),
            ),
            outage_s=min(self.outage_s, 3.0),
            closings=5,
            stops=1,
            spenders=(10, 10),
            publisher_kills=3,
            is_small=True,
        )


@dataclass(frozen=True, slots=True)
class ChaosTask:
    """One run of one part.

    Attributes:
        name: Of the part.
        title: Shown as progress.
        key: Under which its result stands in the section of its part.
        run: Runs it in a folder, and returns the result.
    """

    name: str
    title: str
    key: str
    run: Callable[[Path, ProgressCallback], Json]


def tasks(order: ChaosSuite) -> Iterator[ChaosTask]:
    """Yield what an order comes to, part by part."""
    makers: dict[str, Callable[[ChaosSuite], Iterator[ChaosTask]]] = {
        "streams": _streams,
        "services": _services,
        "closing": _closing,
        "outage": _outage,
        "termination": _termination,
        "ledger": _ledger,
    }
    for name in NAMES:
        if name in order.names:
            yield from makers[name](order)


def _streams(order: ChaosSuite) -> Iterator[ChaosTask]:
    for seed in order.seeds:
        plan = replace(order.streams, seed=seed)
        yield ChaosTask(
            "streams",
            f"workers killed, seed {seed}",
            str(seed),
            lambda folder, progress, plan=plan: _seeded(plan, run_chaos(plan, folder, progress)),  # type: ignore[misc]
        )


def _services(order: ChaosSuite) -> Iterator[ChaosTask]:
    for seed in order.seeds:
        plan = replace(order.services, seed=seed)
        yield ChaosTask(
            "services",
            f"services killed, seed {seed}",
            str(seed),
            lambda folder, progress, plan=plan: _seeded(
                plan, run_services(plan, folder, progress)
            ),  # type: ignore[misc]
        )


def _closing(order: ChaosSuite) -> Iterator[ChaosTask]:
    durability = order.streams.durability
    yield ChaosTask(
        "closing",
        "epochs closed under load",
        "closing",
        lambda folder, progress: _plain(
            run_closing(order.closings, folder, progress, durability=durability)
        ),
    )


def _outage(order: ChaosSuite) -> Iterator[ChaosTask]:
    if order.streams.durability is Durability.MEMORY:
        return  # a store that keeps nothing has nothing to come back with
    yield ChaosTask(
        "outage",
        f"store away for {order.outage_s:g} s",
        "killed",
        lambda folder, _: _away(run_outage(order.outage_s, folder)),
    )
    yield ChaosTask(
        "outage",
        "store hangs",
        "hangs",
        lambda folder, _: _away(run_outage(min(order.outage_s, 15.0), folder, hangs=True)),
    )


def _termination(order: ChaosSuite) -> Iterator[ChaosTask]:
    durability = order.streams.durability
    yield ChaosTask(
        "termination",
        "SIGTERM under load",
        "sigterm",
        lambda folder, _: _plain(
            run_termination(
                order.stops, folder, durability=durability, with_hang=not order.is_small
            )
        ),
    )


def _ledger(order: ChaosSuite) -> Iterator[ChaosTask]:
    yield ChaosTask("ledger", "many spenders", "spending", lambda folder, _: _spent(order, folder))
    yield ChaosTask(
        "ledger",
        "publisher killed",
        "publishing",
        lambda folder, progress: _plain(run_publishing(order.publisher_kills, folder, progress)),
    )


def _spent(order: ChaosSuite, folder: Path) -> Json:
    processes, threads = order.spenders
    with EmbeddedServer(folder) as server:
        outcome = run_spending(
            server.url, processes=processes, threads=threads, is_naive=order.streams.is_naive
        )
    return _plain(outcome)


def _away(outcome: OutageOutcome) -> Json:
    late = f"everything was as before after {outcome.recovery_s:.1f} s, not {RECOVERY_S:g}"
    if outcome.recovery_s > RECOVERY_S:
        outcome = replace(outcome, faults=(*outcome.faults, late))
    return {**_plain(outcome), "recovery_s": round(outcome.recovery_s, 3)}


def _seeded(plan: ChaosPlan | ServicePlan, outcome: ExperimentOutcome) -> Json:
    return {"plan": _json(asdict(plan)), **_plain(outcome)}


def _plain(outcome: ExperimentOutcome) -> Json:
    """Return an outcome as JSON, with the verdict first."""
    fields = asdict(outcome)  # type: ignore[call-overload]  # every outcome is a dataclass
    named = {_JSON_NAMES.get(name, name): _json(value) for name, value in fields.items()}
    return {"is_exact": not outcome.faults, **named}


def _json(value: Any) -> Any:  # Any: JSON
    """Return plain values: enumerations by their value, times to the millisecond."""
    if isinstance(value, dict):
        return {name: _json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    if isinstance(value, Enum):
        return value.value
    return round(value, 3) if isinstance(value, float) else value
