"""A tiny encoder, its top layers and made-up records for tests of fine-tuning methods."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import Backbone, FeatureScaling, TopLayers, load_backbone
from noisefloor.publication.fine_tuning.methods import (
    EncoderShapes,
    FineTuningPlan,
    MethodSettings,
)
from tiny_backbones import WIDTH, write_tiny_bert

POOLED, CLASSES, RECORDS, POSITIONS = (2, 3), 2, 8, 5
COST = Guarantee(2.0, Neighbours.RECORD_ADD_REMOVE, delta=1e-5, model=TrustModel.CENTRAL)
STEPS = MethodSettings(steps=3, learning_rate=0.05)


class TinyCase(NamedTuple):
    """Top layers of a tiny encoder, and records for them."""

    backbone: Backbone
    train_layers: int = 1

    def module(self) -> TopLayers:
        """Return fresh top layers with a head that is not zero, so that gradients pass it."""
        width = WIDTH * len(POOLED)
        scaling = FeatureScaling(
            np.linspace(-0.1, 0.1, width, dtype=np.float32),
            np.full(width, 0.2, dtype=np.float32),
            "made up",
        )
        made = TopLayers(self.backbone, self.train_layers, POOLED, scaling, classes=CLASSES)
        with torch.no_grad():
            made.head.weight.copy_(torch.linspace(-1, 1, 2 * width).view(2, width).cos())
        return made

    @property
    def shapes(self) -> EncoderShapes:
        """What a plan takes."""
        return EncoderShapes.of(self.backbone, self.train_layers, POOLED, classes=CLASSES)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Hidden states, masks and means of frozen layers."""
        hidden = torch.linspace(0, 60, RECORDS * POSITIONS * WIDTH).sin()
        mask = torch.ones(RECORDS, POSITIONS)
        mask[::2, 3:] = 0
        pooled = torch.linspace(0, 9, RECORDS * WIDTH * (2 - self.train_layers)).cos()
        return hidden.view(RECORDS, POSITIONS, WIDTH), mask, pooled.view(RECORDS, -1)

    @property
    def labels(self) -> Tensor:
        """The class of each record."""
        return torch.arange(RECORDS) % CLASSES

    def plan(
        self, name: str, settings: MethodSettings = STEPS, noise: float = 1.0
    ) -> FineTuningPlan:
        """Return a plan with noise as it is: no test needs a search for it."""
        return FineTuningPlan.of(
            name, self.shapes, COST, RECORDS, settings, noise_multiplier=noise
        )


def tiny_case(folder: Path) -> TinyCase:
    """Write a tiny encoder to a folder and load it."""
    return TinyCase(load_backbone(write_tiny_bert(folder / "tiny")))
