"""What single steps of fine-tuning cost on MiniLM-L6, by CPU time: part ``steps``.

64 texts, all in each step; of 32 pieces where nothing else is said. Sides take steps in turn, in
one process and one thread; a ratio is the median over rounds of a side's CPU time over that of
its baseline in the same round, so that a loaded machine matters little. The plain step is torch's:
forward, backward, Adam. ``cached`` compares steps that run all six layers with steps on kept
outputs of those that are frozen. ``cut`` has 64 texts of Rotten Tomatoes, padded to 48 pieces or
cut to about their own length, as ``PaddedInputs`` does it. ``opacus`` takes the same step by its
hooks.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from bench.fine_tuning import COST, SEED
from torch import Tensor, nn

from noisefloor.publication.fine_tuning import Backbone, TopLayers, public_scaling, tokenise
from noisefloor.publication.fine_tuning.methods import (
    EncoderShapes,
    FineTuningPlan,
    FineTuningRun,
    MethodSettings,
    prepare_module,
)
from noisefloor.publication.private_sgd import PaddedInputs
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import load_texts

BATCH, LENGTH, LONGEST, LAYERS, POOLED = 64, 32, 48, 6, (4, 5, 6)
Row: TypeAlias = dict[str, str | float]
Step: TypeAlias = Callable[[], object]


class StepBench:
    """Sides that take steps in turn, and what they took."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.times: dict[str, list[float]] = {}

    def run(self, sides: dict[str, Step]) -> None:
        """Take a step of each side that does not count, then one in each round."""
        for step in sides.values():
            step()
        for _ in range(self.rounds):
            for name, step in sides.items():
                start = time.process_time()
                step()
                self.times.setdefault(name, []).append(time.process_time() - start)

    def ratio(self, side: str, baseline: str) -> float:
        """Return the median over rounds of a side's time over its baseline's."""
        pairs = zip(self.times[side], self.times[baseline], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def milliseconds(self, side: str) -> float:
        """Return the median time of a step."""
        return 1e3 * statistics.median(self.times[side])


def texts_of(
    module: TopLayers, width: int, lengths: Tensor | None = None
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return made-up hidden states of 64 texts, and labels; padded if they have lengths."""
    positions = LENGTH if lengths is None else LONGEST
    with new_run():
        numbers = SeededSource(SEED, "bench texts").normals(BATCH * positions * width)
    hidden = torch.from_numpy(numbers).view(BATCH, positions, width)
    mask = torch.ones(BATCH, positions)
    if lengths is not None:
        mask = (torch.arange(positions) < lengths[:, None]).float()
    frozen = [one for one in module.pooled if one < module.first]
    pooled = hidden.mean(1).repeat(1, len(frozen))
    return (hidden, mask, pooled), torch.arange(BATCH) % 2


def planned(
    name: str, backbone: Backbone, layers: int, steps: int, **changes: float
) -> FineTuningPlan:
    """Return a plan of full batches with some noise."""
    shapes = EncoderShapes.of(backbone, layers, POOLED, classes=2)
    settings = replace(MethodSettings(steps=steps), **changes)  # type: ignore[arg-type]  # numbers
    return FineTuningPlan.of(name, shapes, COST, BATCH, settings, noise_multiplier=1.0)


def fresh(plan: FineTuningPlan, backbone: Backbone, layers: int) -> TopLayers:
    """Return top layers made ready for a plan."""
    module = TopLayers(backbone, layers, POOLED, public_scaling(backbone, POOLED), classes=2)
    with new_run():  # sides have the same numbers on purpose
        prepare_module(plan, module, SeededSource(SEED, "adapters"))
    return module


def plain_step(plan: FineTuningPlan, backbone: Backbone, layers: int) -> Step:
    """Return a step of torch's Adam without clipping and noise."""
    module = fresh(plan, backbone, layers)
    inputs, labels = texts_of(module, backbone.width)
    optimiser = torch.optim.Adam([one for one in module.parameters() if one.requires_grad])

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(*inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def private_step(
    plan: FineTuningPlan,
    backbone: Backbone,
    layers: int,
    module: TopLayers | None = None,
    *,
    beside: str = "plain",
) -> Step:
    """Return a private step of a plan; what it is compared with names its draws."""
    module = fresh(plan, backbone, layers) if module is None else module
    inputs, labels = texts_of(module, backbone.width)
    source = SeededSource(SEED, "run", plan.method.name, layers, len(module.layers), beside)
    run = FineTuningRun(plan, module, inputs, labels, source)
    run.__enter__()
    return lambda: run.run(run.step + 1)


def uncached_step(plan: FineTuningPlan, backbone: Backbone, layers: int) -> Step:
    """Return a step that trains top layers alone and runs all of them."""
    module = TopLayers(backbone, LAYERS, POOLED, public_scaling(backbone, POOLED), classes=2)
    top = fresh(plan, backbone, layers)
    for place in range(layers):
        module.layers[LAYERS - layers + place] = top.layers[place]
    for number, layer in enumerate(module.layers):
        if number < LAYERS - layers:
            layer.requires_grad_(False)
    module.head = top.head
    return private_step(plan, backbone, layers, module)


def steps(backbone: Backbone, rounds: int) -> list[Row]:
    """Compare steps of methods."""
    bench, most = StepBench(rounds), rounds + 1
    names = ("lora", "ffa-lora", "combined-lora", "full", "sparse", "rgp", "combined-rgp")
    plans = {name: planned(name, backbone, LAYERS, most) for name in names}
    rows: list[Row] = []
    pairs: list[tuple[tuple[str, str, str], float | None]] = [
        (("plain lora", "lora", "combined-lora"), 1.25),
        (("plain full", "rgp", "combined-rgp"), 2.0),
        (("plain full", "full", "sparse"), None),
    ]
    for sides, target in pairs:
        bench.times.clear()
        bench.run(
            {
                name: plain_step(plans[name.split()[1]], backbone, LAYERS)
                if name.startswith("plain")
                else private_step(plans[name], backbone, LAYERS)
                for name in sides
            }
        )
        plain, private, masked = sides
        rows += [_row(bench, private, plain, target), _row(bench, masked, private, 1.05)]
    return [*rows, *cached(backbone, rounds), *cut(backbone, rounds), opacus(backbone, rounds)]


def cached(backbone: Backbone, rounds: int) -> list[Row]:
    """Compare steps on kept outputs of frozen layers with steps that run these."""
    rows: list[Row] = []
    for layers, target in ((2, 1.6), (1, 2.5)):
        bench, plan = StepBench(rounds), planned("lora", backbone, layers, rounds + 1)
        kept, whole = f"cached, {layers} of 6 trained", f"all layers run, {layers} trained"
        bench.run(
            {
                kept: private_step(plan, backbone, layers),
                whole: uncached_step(plan, backbone, layers),
            }
        )
        rows.append(_row(bench, whole, kept, target, is_least=True))
    return rows


def cut(backbone: Backbone, rounds: int) -> list[Row]:
    """Compare padded texts with texts that are cut to about their own length."""
    records = load_texts("rotten-tomatoes")
    with new_run():
        order = SeededSource(SEED, "bench lengths").permutation(records.count)[:BATCH]
    found = tokenise(backbone, records.schema, records[order].texts).lengths
    lengths = torch.from_numpy(found.copy()).clamp(max=LONGEST)
    rows: list[Row] = []
    for name, layers in (("lora", LAYERS), ("ffa-lora", 1)):
        bench, plan = StepBench(rounds), planned(name, backbone, layers, rounds + 1)
        sides = {}
        for side, padding in (
            (f"padded to {LONGEST}, {name}, {layers} trained", None),
            (f"cut, {name}, {layers} trained", PaddedInputs(lengths, inputs=(0, 1))),
        ):
            module = fresh(plan, backbone, layers)
            inputs, labels = texts_of(module, backbone.width, lengths)
            source = SeededSource(SEED, "run", side)
            run = FineTuningRun(plan, module, inputs, labels, source, padding=padding)
            run.__enter__()
            sides[side] = _step_of(run)
        bench.run(sides)
        padded, short = sides
        rows.append(_row(bench, padded, short, 1.3, is_least=True))
    return rows


def _step_of(run: FineTuningRun) -> Step:
    return lambda: run.run(run.step + 1)


def opacus(backbone: Backbone, rounds: int) -> Row:
    """Compare our step with that of Opacus by hooks: LoRA of rank 8 on all six layers."""
    plan, bench = planned("lora", backbone, LAYERS, rounds + 1), StepBench(rounds)
    bench.run(
        {
            "lora": private_step(plan, backbone, LAYERS, beside="Opacus"),
            "Opacus hooks, lora": opacus_step(plan, backbone),
        }
    )
    return _row(bench, "lora", "Opacus hooks, lora", 1.0)


def opacus_step(plan: FineTuningPlan, backbone: Backbone) -> Step:
    """Return the private step of Opacus: the same module, Adam, joint clipping, noise."""
    warnings.filterwarnings("ignore", module="opacus")
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    inner = fresh(plan, backbone, LAYERS)
    inputs, labels = texts_of(inner, backbone.width)
    module: Any = GradSampleModule(inner)  # Any: Opacus wraps whatever module there is
    adam = torch.optim.Adam([one for one in inner.parameters() if one.requires_grad])
    optimiser = DPOptimizer(
        adam,
        noise_multiplier=plan.private.noise_multiplier,
        max_grad_norm=plan.settings.clip,
        expected_batch_size=BATCH,
    )

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(*inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def _row(
    bench: StepBench, side: str, baseline: str, target: float | None, *, is_least: bool = False
) -> Row:
    rule = "-" if target is None else f"{'>=' if is_least else '<='} {target:g}"
    row: Row = {
        "side": side,
        "baseline": baseline,
        "ms": bench.milliseconds(side),
        "baseline ms": bench.milliseconds(baseline),
        "ratio": bench.ratio(side, baseline),
        "target": rule,
    }
    print(row, flush=True)  # a table takes minutes
    return row
