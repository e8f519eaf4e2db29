"""Private training from scratch of a small convolutional network on the digits of scikit-learn.

1,797 pictures of 8 x 8 pixels. One fifth judges and is touched by nothing else. Learning rates are
fixed by another fifth, named ``CHOOSING``, of what is left, at epsilon 2, one for each method; the
network is then trained on all four other fifths. The pictures are public: where they were not,
that choice would have to be paid for (``ChargedSelection``), and is not in epsilon here.

Three blocks of convolution, GroupNorm and ReLU, and a linear head. First weights are random and
public. ``full`` and ``sparse`` train all of it, normalisation included; methods with factors leave
normalisation as it starts, and adapters add factors to frozen random convolutions.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import LayeredModule
from noisefloor.publication.fine_tuning.methods import (
    METHODS,
    EncoderShapes,
    FineTuningPlan,
    MethodSettings,
    fine_tune,
    train_plain,
)
from noisefloor.publication.private_sgd import initialise
from noisefloor.randomness import SeededSource
from noisefloor.tables import folds

SEED, PARTS, JUDGING, CHOOSING = 20, 5, 0, 1
NAMES = ("full", "sparse", "rgp", "combined-rgp", "lora", "combined-lora", "plain")
EPSILONS, TRAININGS = (2.0, 8.0), 3
RATES = (0.005, 0.01, 0.02, 0.04)
SETTINGS = MethodSettings(steps=100, batch=256, clip=1.0, averaging=0.3)
Row: TypeAlias = dict[str, str | float]
Places: TypeAlias = NDArray[np.int64]


class DigitBlock(nn.Module):
    """A convolution, its normalisation and a ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.normalisation = nn.GroupNorm(outputs // 4, outputs)

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(self.normalisation(self.convolution(values)))


class DigitNetwork(LayeredModule):
    """8 x 8 pixels to ten digits."""

    def __init__(self, source: SeededSource) -> None:
        super().__init__()
        blocks = [DigitBlock(1, 16, 1), DigitBlock(16, 32, 2), DigitBlock(32, 32, 2)]
        self.layers = nn.ModuleList(blocks)
        self.head = nn.Linear(32 * 2 * 2, 10)
        initialise(self, source)

    def forward(self, pictures: Tensor) -> Tensor:
        for layer in self.layers:
            pictures = layer(pictures)
        logits: Tensor = self.head(pictures.flatten(1))
        return logits


def digits() -> tuple[Tensor, Tensor, Places]:
    """Return pictures, labels and the fifth that each is in."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pictures = torch.from_numpy(found.images / 8 - 1).float().unsqueeze(1)
    part = folds(len(pictures), PARTS, SeededSource(SEED, "digit parts"))
    return pictures, torch.from_numpy(found.target.astype(np.int64)), part


class DigitBench:
    """Trains and judges."""

    def __init__(self) -> None:
        self.pictures, self.labels, self.part = digits()

    def accuracy(
        self, name: str, epsilon: float, rate: float, trained: Places, judged: Places, *path: int
    ) -> tuple[float, FineTuningPlan]:
        """Train on some pictures from scratch, and judge on others."""
        source = SeededSource(SEED, "digits", name, str(epsilon), str(rate), *path)
        module = DigitNetwork(source.child("weights"))
        cost = Guarantee(
            epsilon, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL
        )
        settings = replace(SETTINGS, learning_rate=rate)
        if not METHODS[name].is_private:
            settings = replace(settings, averaging=0.0)
        shapes = EncoderShapes.of_module(module)
        plan = FineTuningPlan.of(name, shapes, cost, len(trained), settings)
        train = fine_tune if METHODS[name].is_private else train_plain
        inputs, labels = (self.pictures[trained],), self.labels[trained]
        train(plan, module, inputs, labels, source.child("run"))
        with torch.no_grad():
            right = module(self.pictures[judged]).argmax(1) == self.labels[judged]
        return float(right.float().mean()), plan

    def chosen_rate(self, name: str) -> float:
        """Return the rate that does best on the fifth that chooses."""
        judged = np.flatnonzero(self.part == CHOOSING)
        trained = np.flatnonzero((self.part != CHOOSING) & (self.part != JUDGING))
        found = {
            rate: self.accuracy(name, EPSILONS[0], rate, trained, judged)[0] for rate in RATES
        }
        return max(RATES, key=lambda rate: found[rate])

    def row(self, name: str, epsilon: float, rate: float) -> Row:
        """Return what some trainings of a method reach on the fifth that judges."""
        start = time.process_time()
        judged, trained = (
            np.flatnonzero(self.part == JUDGING),
            np.flatnonzero(self.part != JUDGING),
        )
        runs = [
            self.accuracy(name, epsilon, rate, trained, judged, number)
            for number in range(TRAININGS)
        ]
        reached, plan = [one for one, _ in runs], runs[0][1]
        return {
            "method": name,
            "proved epsilon": f"{plan.proved.epsilon:.3f}",
            "noised": f"{plan.updated:,}",
            "rate": f"{rate:g}",
            "accuracy": f"{np.mean(reached):.4f}",
            "trainings": " ".join(f"{one:.4f}" for one in reached),
            "CPU s": f"{time.process_time() - start:.0f}",
        }


def judge_digits(names: Sequence[str] = NAMES) -> list[Row]:
    """Choose a rate for each method, then judge it at each epsilon."""
    bench, rows = DigitBench(), list[Row]()
    for name in names:
        rate = bench.chosen_rate(name)
        for epsilon in EPSILONS if METHODS[name].is_private else EPSILONS[-1:]:
            rows.append(bench.row(name, epsilon, rate))
            print(rows[-1], flush=True)
    return rows
