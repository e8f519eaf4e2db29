"""What is compared with whom, and which figure is asked for; how it is done stands elsewhere."""

from dataclasses import dataclass, field
from typing import Literal

MFL, PURE, DPL, OPENDP = "multi-freq-ldpy", "pure-ldp", "diffprivlib", "opendp"

LOOP = (
    "The peer is called as its users call it, once per report in a Python loop, over fewer users"
)
LINEAR = "The peer aggregates fewer reports; its cost is linear in them and is scaled"
EXACT = "Not like for like: OpenDP's coins are cryptographic; ours are under OS entropy only"
CSPRNG = "Not like for like: diffprivlib draws floats from OS entropy, one call each"
ROWS_OF_16 = "Ours takes rows of 16 scores; the peer takes its utilities at construction"
CALIBRATED = "The peer's scale is the classical one for the same request, ours is the analytic one"
FRAMES = "Ours works in frames of 65,536 rows"
FIRST_TOUCH = "One array of 100 MB: the system's time for giving out fresh pages can double it"
DENSE = "Ours takes and gives one byte per bit; OpenDP takes and gives packed bits"


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked: peer over ours, million reports per CPU-s, or CPU-s per million."""

    kind: Literal["ratio", "rate", "cost"]
    bound: float

    def is_met(self, cost: float, ratio: float | None) -> bool | None:
        """Judge CPU-s per million and the ratio; None where there is no peer to judge by."""
        if self.kind == "ratio":
            return None if ratio is None else ratio >= self.bound
        return 1 / cost >= self.bound if self.kind == "rate" else cost <= self.bound

    def __str__(self) -> str:
        forms = {"ratio": ">= {:g}x", "rate": ">= {:g} M/s", "cost": "<= {:g} s/M"}
        return forms[self.kind].format(self.bound)


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer of a workload, with what makes the comparison uneven."""

    library: str
    notes: tuple[str, ...] = (LOOP,)


@dataclass(frozen=True, slots=True)
class Workload:
    """One row of the table, or one per peer; the target is judged against the first peer."""

    name: str
    peers: tuple[Peer, ...] = ()
    target: Target | None = None
    draws: bool = field(default=True)
    """Whether our side draws coins, so that OS entropy makes a difference."""


WORKLOADS = (
    Workload(
        "OUE client, 100 bits",
        (Peer(MFL, (LOOP, FRAMES)), Peer(PURE, (LOOP, FRAMES))),
        Target("ratio", 35),
    ),
    Workload("OUE client, one array", (Peer(MFL, (LOOP, FIRST_TOUCH)),)),
    Workload(
        "bit vector, 100 bits, symmetric",
        (Peer(MFL, (LOOP, FRAMES)), Peer(OPENDP, (LOOP, EXACT, DENSE))),
        Target("ratio", 35),
    ),
    Workload(
        "OUE aggregate, 100 bits",
        (Peer(MFL, (LINEAR,)), Peer(PURE, (LINEAR,))),
        draws=False,
    ),
    Workload("OUE end to end, 100 bits", (Peer(MFL), Peer(PURE)), Target("cost", 0.3)),
    Workload("k-ary client, k=16", (Peer(MFL), Peer(PURE)), Target("ratio", 25)),
    Workload("k-ary end to end, k=100", (Peer(MFL), Peer(PURE)), Target("cost", 0.05)),
    Workload("OLH client, 100 values", (Peer(MFL), Peer(PURE))),
    Workload(
        "OLH aggregate, 100 values",
        (Peer(MFL, (LINEAR,)), Peer(PURE, (LINEAR,))),
        Target("ratio", 100),
        draws=False,
    ),
    Workload("L-SUE client, 5 bits", (Peer(MFL),)),
    Workload("L-SUE end to end, 5 bits", (Peer(MFL),), Target("cost", 0.1)),
    Workload("subset selection, k=16", (Peer(MFL),)),
    Workload("binary response", (Peer(OPENDP, (LOOP, EXACT)), Peer(DPL, (LOOP, CSPRNG)))),
    Workload(
        "discrete Laplace, scale 1000",
        (Peer(DPL, (LOOP, CSPRNG)), Peer(OPENDP, (EXACT,))),
        Target("rate", 30),
    ),
    Workload("discrete Gaussian", (Peer(OPENDP, (EXACT, CALIBRATED)),)),
    Workload("piecewise", target=Target("rate", 40)),
    Workload("hybrid"),
    Workload("one-bit mean"),
    Workload("square wave"),
    Workload("sampled bit, 16 dimensions"),
    Workload("argmax response, 16 scores"),
    Workload("noisy max Laplace, 16 scores"),
    Workload("noisy max exponential, 16 scores"),
    Workload("permute and flip, 16 scores", (Peer(DPL, (LOOP, CSPRNG, ROWS_OF_16)),)),
    Workload("exponential, 16 scores", (Peer(DPL, (LOOP, CSPRNG, ROWS_OF_16)),)),
)
