"""Shadow models trained together against one after another, and what they find on UCI Adult.

Speed: 64 networks (two hidden layers of 64, batch 64, half of 10,000 records each) by batched
products against a loop of nn.Sequential and torch.optim.Adam; start, order of examples, steps and
logits count. CPU time of one thread, warmed up, the two in turns. Attacks: an overfitted network
and DP-SGD at epsilon 1 and 8, each in a fresh process whose peak memory is told. It reports; it
does not fail on a missed target.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

# `python bench/shadows.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from bench.memory import peak_bytes
from bench.private_shadow_networks import PrivateDenseTraining
from bench.shadow_networks import DenseTraining, fine_examples, tensors
from bench.shadow_study import study
from bench.table import aligned, figure
from bench.worker import ONE_THREAD, ROOT
from torch import nn

from noisefloor.adversary.models.shadow_runs import Bits, TrainingProcedure, fair_members
from noisefloor.randomness import SeededSource
from noisefloor.tables import load_records
from noisefloor.tables.one_hot import Examples

OUT = ROOT / "bench/results/shadows.json"
MODELS, RECORDS, HIDDEN, BATCH, RATE = 64, 10_000, (64, 64), 64, 1e-3
STEPS, ROUNDS = 156, 3  # two passes over half of the records
OVERFIT_STEPS, OVERFIT_RATE = 8_000, 2e-3
DELTA, SAMPLING_RATE, PRIVATE_STEPS, PRIVATE_RATE = 1e-5, 0.2, 100, 1e-2

TARGETS = {"speed-up": ">= 4", "peak": "< 1 GB"}
CASES = ("no privacy, overfitted", "DP-SGD, epsilon 8", "DP-SGD, epsilon 1")


def adult(records: int = RECORDS) -> Examples:
    """Return a number of records at random."""
    examples = fine_examples(load_records("adult"), "income")
    return examples[SeededSource(1, "rows").permutation(len(examples))[:records]]


def one_after_another(
    examples: Examples, members: Bits, steps: int, *, fused: bool | None = None
) -> None:
    """Train as anybody would: a network, an optimiser and a loop for each model."""
    features, labels = tensors(examples)
    loss = nn.CrossEntropyLoss()
    for own in torch.from_numpy(members):
        sizes = (features.shape[1], *HIDDEN, examples.classes)
        layers: list[nn.Module] = []
        for place in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[place], sizes[place + 1]), nn.ReLU()]
        network = nn.Sequential(*layers[:-1])
        optimiser = torch.optim.Adam(network.parameters(), lr=RATE, fused=fused)
        rows = own.nonzero().view(-1)
        passes = -(-steps * BATCH // len(rows))
        order = torch.cat([rows[torch.randperm(len(rows))] for _ in range(passes)])
        for batch in order[: steps * BATCH].view(steps, BATCH):
            optimiser.zero_grad()
            loss(network(features[batch]), labels[batch]).backward()
            optimiser.step()
        with torch.no_grad():
            network(features)


def seconds(work: Any, *given: Any, **named: Any) -> float:
    start = time.process_time()
    work(*given, **named)
    return time.process_time() - start


def speed(rounds: int, steps: int) -> dict[str, Any]:
    """Time both ways in turns, and the loop with torch's one-pass Adam beside them."""
    examples = adult()
    members = fair_members(MODELS, RECORDS, SeededSource(2, "members"))
    training = DenseTraining(examples, HIDDEN, BATCH, steps, RATE)
    warm = DenseTraining(examples, HIDDEN, BATCH, 10, RATE)
    warm(members, SeededSource(2, "warm"))
    one_after_another(examples, members[:4], 10)
    times: dict[str, list[float]] = {"together": [], "one by one": [], "one by one, fused": []}
    for turn in range(rounds):
        times["together"].append(seconds(training, members, SeededSource(2, "turn", turn)))
        times["one by one"].append(seconds(one_after_another, examples, members, steps))
        times["one by one, fused"].append(
            seconds(one_after_another, examples, members, steps, fused=True)
        )
    ratios = {
        name: [other / ours for other, ours in zip(some, times["together"], strict=True)]
        for name, some in times.items()
    }
    return {"steps": steps, "cpu_seconds": times, "speed_up": ratios}


def procedure_of(case: str, examples: Examples, *, quick: bool) -> TrainingProcedure:
    """Return the training that a case attacks."""
    if case == CASES[0]:
        steps = OVERFIT_STEPS // 4 if quick else OVERFIT_STEPS
        return DenseTraining(examples, HIDDEN, BATCH, steps, OVERFIT_RATE)
    epsilon, steps = float(case.split()[-1]), PRIVATE_STEPS // 4 if quick else PRIVATE_STEPS
    return PrivateDenseTraining.within(
        examples,
        epsilon,
        DELTA,
        sampling_rate=SAMPLING_RATE,
        steps=steps,
        hidden=HIDDEN,
        rate=PRIVATE_RATE,
    )


def attack_here(case: str, *, quick: bool) -> dict[str, Any]:
    """Attack one case in this process."""
    examples = adult()
    procedure = procedure_of(case, examples, quick=quick)
    models = MODELS // 2 if quick else MODELS
    start = time.process_time()
    source = SeededSource(3, case)
    found = study(procedure, examples.labels, models, source, delta=DELTA).as_json()
    found["cpu_seconds"] = time.process_time() - start
    if isinstance(procedure, PrivateDenseTraining):
        found["proved"] = procedure.guarantee(DELTA).epsilon
        found["noise_multiplier"] = procedure.noise_multiplier
    return found | {"case": case, "peak_bytes": peak_bytes()}


def attack_apart(case: str, *, quick: bool) -> dict[str, Any]:
    """Attack one case in a fresh process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--case", case]
    done = subprocess.run(  # noqa: S603  our own command
        command + ["--quick"] * quick,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{case}: {done.stderr[-2000:]}")
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def printed_speed(found: dict[str, Any]) -> str:
    """Return the table of times."""
    rows = [
        (name, figure(median(times)), figure(median(found["speed_up"][name])))
        for name, times in found["cpu_seconds"].items()
    ]
    return aligned((f"{MODELS} networks, {found['steps']} steps", "CPU-s", "over together"), rows)


def printed_attacks(found: list[dict[str, Any]]) -> str:
    """Return the table of attacks: a line for each case and attack."""
    header = ("case", "train", "test", "attack", "AUC", "+-", "TPR@1%", "TPR@0.1%", "audited")
    rows = []
    for one in found:
        for name, figures in one["attacks"].items():
            rows.append(
                (
                    one["case"],
                    f"{one['accuracy_on_members']:.3f}",
                    f"{one['accuracy_on_others']:.3f}",
                    name,
                    f"{figures['auc']:.3f}",
                    f"{figures['auc_error']:.4f}",
                    figure(figures["tpr_at_0.01"]),
                    figure(figures["tpr_at_0.001"]),
                    figure(one["audited"]["epsilon"]) if name == "lira" else "-",
                )
            )
    return aligned(header, rows)


def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps and models")
    parser.add_argument("--speed-only", action="store_true")
    parser.add_argument("--case", choices=CASES, help="attack one case in this process")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(attack_here(arguments.case, quick=arguments.quick)))
        return
    timed = speed(1 if arguments.quick else ROUNDS, STEPS // 3 if arguments.quick else STEPS)
    print(printed_speed(timed), f"\ntarget: {TARGETS['speed-up']} over the plain loop\n")
    results: dict[str, Any] = {"speed": timed}
    if not arguments.speed_only:
        found = [attack_apart(case, quick=arguments.quick) for case in CASES]
        print(printed_attacks(found))
        for one in found:
            figures = f"{one['peak_bytes'] / 1e6:.0f} MB peak, {one['cpu_seconds']:.0f} CPU-s"
            print(f"{one['case']}: {figures} (target {TARGETS['peak']})")
        results["attacks"] = found
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
