"""What the chained ledger costs: a spend by the filter, against one script that adds up costs.

The baseline is what a ledger without filter and chain does at the least: one script that compares
a sum with its budget and adds to it. Both spend on the same server in turns; a pair of turns gives
one ratio of CPU time, client and server together. Prints a table; it does not fail on a target.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# `python bench/ledger.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned, figure
from redis import Redis

from noisefloor.accounting import GaussianNoise, LedgerTerms, ReleaseLoss, SampledGaussian
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor_services.ledger import RedisLedger
from noisefloor_services.store.embedded import EmbeddedServer

ADDED = Neighbours.RECORD_ADD_REMOVE
COST = Guarantee(1e-3, ADDED, delta=1e-12, model=TrustModel.CENTRAL)
LOSSES = {
    "nothing but its guarantee": ReleaseLoss.of(COST),
    "Gaussian noise": ReleaseLoss((GaussianNoise(3000.0),)),
    "Gaussian noise on samples": ReleaseLoss((SampledGaussian(3000.0, 0.01, 100),)),
}
_SUM = """
local sum = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 'known' end
if sum + tonumber(ARGV[3]) > tonumber(ARGV[4]) then return 'refused' end
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[5])
return 'spent'
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spends", type=int, default=500, help="of one turn")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedServer(Path(folder) / "store") as store,
        Redis.from_url(store.url) as client,
    ):
        rows = [
            [name, *_compared(client, name, loss, arguments.spends, arguments.repeats)]
            for name, loss in LOSSES.items()
        ]
    header = ("what is known of the release", "sum us", "ledger us", "ratio", "from", "to")
    print("CPU time of a spend, client and server together, in turns; medians, and all ratios")
    print(aligned(header, rows))


def _compared(
    client: "Redis", name: str, loss: ReleaseLoss, spends: int, repeats: int
) -> list[str]:
    terms = LedgerTerms.of(100.0, 1e-3, neighbours=ADDED, model=TrustModel.CENTRAL)
    ledger = RedisLedger.create(client, name.replace(" ", "-").lower(), terms)
    script = client.register_script(_SUM)

    def add(number: int) -> None:
        entry = f'{{"release": "histogram", "number": {number}}}'
        script(keys=["sums", "entries"], args=[name, f"{name} {number}", 1000, 10**12, entry])

    def spend(number: int) -> None:
        ledger.spend("adult", f"{name} {number}", COST, "histogram", COST, loss=loss)

    pairs = []
    for turn in range(repeats + 1):
        numbers = range(turn * spends, (turn + 1) * spends)
        pairs.append(tuple(_cpu_us(client, one, numbers) for one in (add, spend)))
    base, ours = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    ratios = sorted(second / first for first, second in pairs[1:])
    found = (base, ours, statistics.median(ratios), ratios[0], ratios[-1])
    return [figure(value) for value in found]


def _cpu_us(client: "Redis", step: Callable[[int], None], numbers: range) -> float:
    """Return microseconds of CPU time of one step, of this process and of the server."""
    server, here = _server_s(client), time.process_time()
    for number in numbers:
        step(number)
    spent = time.process_time() - here + _server_s(client) - server
    return 1e6 * spent / len(numbers)


def _server_s(client: "Redis") -> float:
    used = client.info("cpu")
    return float(used["used_cpu_sys"]) + float(used["used_cpu_user"])


if __name__ == "__main__":
    main()
