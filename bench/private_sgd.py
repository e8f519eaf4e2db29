"""What a private step costs against a plain one: ours, and Opacus by hooks and by ghost clipping.

Two networks: an MLP of the shape that UCI Adult needs (167 inputs, 64, 64, 2), and an LSTM of 64
hidden units over 40 of 5,000 tokens with two classes; a third, the same LSTM as a generator (the
next token at each position), has no target. A private step is all of it: the Poisson sample out of
all examples, gathering, both passes, clipping, noise, optimiser. A plain step is the ordinary loop
of torch over shuffled batches. Opacus gets its sample from one call of ``torch.rand`` and no data
loader, which would cost it more.

CPU time, one thread, one process. In every round each side takes some steps in turn; a ratio is
the median over rounds of a side's time over the plain one's in the same round. Prints a table and
writes every number; it reports, and does not fail on a missed target. A second table has masks,
groups, carriers and cut batches (``private_sgd_variants.py``).
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn
from torch.nn import functional

# `python bench/private_sgd.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.private_sgd_variants import measure_variants, printed_variants
from bench.table import aligned, figure
from bench.worker import ROOT

from noisefloor.publication.private_sgd import Flat, PrivateTraining, SgdPlan, initialise
from noisefloor.randomness import SeededSource, new_run

OUT = ROOT / "bench/results/private_sgd.json"
BATCHES = (64, 256)
OPTIMISERS = ("sgd", "adam")
TARGETS = {"mlp": 2.0, "lstm": 3.5}
RATE, MOMENTUM, CLIP, NOISE = 1e-3, 0.9, 1.0, 1.0
VOCABULARY, LENGTH, SIZE = 5_000, 40, 64
ENDLESS = 1 << 20


class Text(nn.Module):
    """Tokens, an LSTM, and logits: of two classes at the end, or of the next token everywhere."""

    def __init__(self, lstm: nn.Module, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, SIZE)
        self.lstm = lstm
        self.head = nn.Linear(SIZE, outputs)
        self.is_generator = outputs == VOCABULARY

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.lstm(self.embedding(tokens))[0]
        logits: Tensor = self.head(states if self.is_generator else states[:, -1])
        return logits


def mlp() -> nn.Module:
    return nn.Sequential(
        *(nn.Linear(167, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, 2))
    )


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of each example, summed over positions if there are any."""
    if outputs.dim() == 2:
        return functional.cross_entropy(outputs, targets, reduction="none")
    return functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none").sum(1)


class Data(NamedTuple):
    inputs: Tensor
    targets: Tensor


def data_of(network: str) -> Data:
    """Return examples at random: what they say does not matter to the clock."""
    draw = SeededSource(1, "bench", network).generator()
    if network == "mlp":
        values = torch.from_numpy(draw.random((45_222, 167), dtype="float32"))
        return Data(values, torch.from_numpy(draw.integers(0, 2, len(values))))
    tokens = torch.from_numpy(draw.integers(0, VOCABULARY, (20_000, LENGTH)))
    if network == "generator":
        return Data(tokens, tokens.roll(-1, 1))
    return Data(tokens, torch.from_numpy(draw.integers(0, 2, len(tokens))))


def module_of(network: str, *, lstm: Callable[..., nn.Module] = nn.LSTM) -> nn.Module:
    if network == "mlp":
        return mlp()
    outputs = VOCABULARY if network == "generator" else 2
    return Text(lstm(SIZE, SIZE, batch_first=True), outputs)


def optimiser_of(kind: str, module: nn.Module) -> torch.optim.Optimizer:
    if kind == "adam":
        return torch.optim.Adam(module.parameters(), lr=RATE)
    return torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)


Steps = Callable[[int], None]
"""Takes a number of steps of a training that goes on."""


def plain(network: str, data: Data, batch: int, kind: str) -> Steps:
    """Return the ordinary loop: shuffled batches, mean loss, backward, step."""
    module = module_of(network)
    optimiser = optimiser_of(kind, module)

    def batches() -> Iterator[Tensor]:
        while True:
            yield from torch.randperm(len(data.inputs)).split(batch)[:-1]  # type: ignore[no-untyped-call]

    order = batches()

    def take(steps: int) -> None:
        for _ in range(steps):
            places = next(order)
            optimiser.zero_grad()
            losses(module(data.inputs[places]), data.targets[places]).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    return take


def ours(network: str, data: Data, batch: int, kind: str) -> Steps:
    """Return noisefloor's."""
    module = module_of(network)
    source = SeededSource(2, network, batch, kind)
    initialise(module, source.child("weights"))
    plan = SgdPlan(
        examples=len(data.inputs),
        expected_batch=batch,
        steps=ENDLESS,
        noise_multiplier=NOISE,
        clipping=Flat(CLIP),
        optimiser=kind,  # type: ignore[arg-type] # one of the two
        learning_rate=RATE,
        momentum=MOMENTUM,
    )
    training = PrivateTraining(module, *data, plan, source.child("training"), loss=losses)
    training.__enter__()  # for as long as the process lives
    return lambda steps: training.run(training.step + steps)


def opacus(network: str, data: Data, batch: int, kind: str, *, is_ghost: bool) -> Steps:
    """Return Opacus, its sample drawn by one call."""
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.layers import DPLSTM
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    class Criterion(nn.Module):
        """The losses, with the attribute that Opacus changes."""

        reduction = "mean"

        def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
            each = losses(outputs, targets)
            return each if self.reduction == "none" else each.mean()

    plain_module = module_of(network, lstm=DPLSTM)
    inner = optimiser_of(kind, plain_module)
    settings: dict[str, Any] = {"noise_multiplier": NOISE, "max_grad_norm": CLIP}
    settings["expected_batch_size"] = batch
    criterion: Any = Criterion()
    if is_ghost:
        module = GradSampleModuleFastGradientClipping(
            plain_module, max_grad_norm=CLIP, use_ghost_clipping=True
        )
        optimiser = DPOptimizerFastGradientClipping(inner, **settings)
        criterion = DPLossFastGradientClipping(module, optimiser, criterion)
    else:
        module = GradSampleModule(plain_module)
        optimiser = DPOptimizer(inner, **settings)
    rate, examples = batch / len(data.inputs), len(data.inputs)

    def take(steps: int) -> None:
        for _ in range(steps):
            places = (torch.rand(examples) < rate).nonzero().view(-1)
            optimiser.zero_grad()
            criterion(module(data.inputs[places]), data.targets[places]).backward()
            optimiser.step()

    return take


SIDES: dict[str, Callable[[str, Data, int, str], Steps]] = {
    "plain": plain,
    "ours": ours,
    "Opacus hooks": lambda *case: opacus(*case, is_ghost=False),
    "Opacus ghost": lambda *case: opacus(*case, is_ghost=True),
}


@dataclass(slots=True)
class Row:
    """The times of one network, batch and optimiser, in seconds a step, by side and round."""

    network: str
    batch: int
    optimiser: str
    step_s: dict[str, list[float]] = field(default_factory=dict)

    def ratio(self, side: str) -> float | None:
        """Return how many times a plain step a side's step takes."""
        if side not in self.step_s:
            return None
        pairs = zip(self.step_s[side], self.step_s["plain"], strict=True)
        return statistics.median(one / other for one, other in pairs)

    @property
    def verdict(self) -> str:
        """Say whether the target is met."""
        target, ratio = TARGETS.get(self.network), self.ratio("ours")
        if target is None or ratio is None:
            return ""
        return "met" if ratio <= target else "missed"


def measure_one(network: str, batch: int, kind: str, rounds: int, sides: list[str]) -> Row:
    """Let the sides take steps in turn."""
    data = data_of(network)
    steps = 20 if network == "mlp" else 2
    takes = {}
    for side in sides:
        takes[side] = SIDES[side](network, data, batch, kind)
        takes[side](steps)  # warm up
    row = Row(network, batch, kind, {side: [] for side in sides})
    for _ in range(rounds):
        for side, take in takes.items():
            start = time.process_time()
            take(steps)
            row.step_s[side].append((time.process_time() - start) / steps)
    return row


def measure(*, quick: bool = False, only: str = "") -> list[Row]:
    """Measure every network, batch and optimiser."""
    torch.set_num_threads(1)
    rows = []
    for network in ("mlp", "lstm", "generator"):
        for batch in BATCHES:
            for kind in OPTIMISERS:
                if only not in f"{network} {batch} {kind}":
                    continue
                # A generator's gradients of 256 examples would take Opacus a gigabyte.
                sides = list(SIDES)[: 2 if network == "generator" else 4]
                print(f"measuring {network} {batch} {kind}", file=sys.stderr)
                rounds = {"mlp": 25, "lstm": 9, "generator": 5}[network] // (3 if quick else 1)
                with new_run(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Opacus warns of its insecure generator
                    rows.append(measure_one(network, batch, kind, rounds, sides))
                print(f"  ours {figure(rows[-1].ratio('ours'))} times plain", file=sys.stderr)
    return rows


def printed(rows: list[Row]) -> str:
    """Return the table."""
    header = ["network", "batch", "optimiser", "plain ms", "ours ms", "ours", "target"]
    header += ["verdict", "Opacus hooks", "Opacus ghost"]
    lines = []
    for row in rows:
        medians = [1000 * statistics.median(row.step_s[side]) for side in ("plain", "ours")]
        lines.append(
            [
                *(row.network, str(row.batch), row.optimiser, *map(figure, medians)),
                *(figure(row.ratio("ours")), figure(TARGETS.get(row.network)), row.verdict),
                *(figure(row.ratio("Opacus hooks")), figure(row.ratio("Opacus ghost"))),
            ]
        )
    return aligned(header, lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    rows = measure(quick=arguments.quick, only=arguments.only)
    print("A step over a plain step: CPU time, one thread, median over rounds taken in turns")
    print(printed(rows))
    variants = measure_variants(quick=arguments.quick, only=arguments.only)
    print("\nA step of a variant over one of its baseline, in CPU time taken in turns")
    print(printed_variants(variants))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    every = [asdict(row) for row in rows] + [asdict(row) for row in variants]
    arguments.out.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
