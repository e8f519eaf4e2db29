"""What every training of a generator needs: rows as tensors, losses, and factors of dropout.

Dropout: a step leaves values out by factors that are inputs of the module. They are drawn for
every document, in or out of the sample, anew for each epoch; a gradient is then a function of one
document and its own draws, whatever others are there, and clipping bounds it as any other.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.publication.private_sgd import ExampleBatch, PaddedInputs
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators.shapes import STEP, GeneratorShape
from noisefloor.publication.text.generators.training_texts import TrainingTexts
from noisefloor.randomness import Source

MICRO_BATCH = 64
"""Texts at once: logits of 64 texts of 60 pieces over 3,000 places take 46 MB."""


class DropoutFactors:
    """Factors of dropout for every document, written anew for each epoch.

    Args:
        shape: Its widths are masked.
        count: How many documents.
        share: Of values that are left out; the others are scaled up, so that means stay.
        source: Draws.
    """

    def __init__(self, shape: GeneratorShape, count: int, share: float, source: Source) -> None:
        self._share, self._source = share, source
        self.factors = torch.ones(count, sum(shape.masked_widths) if share else 0)

    def renew(self, epoch: int) -> None:
        """Draw the factors of an epoch, in place: a training under way sees them."""
        if not self._share:
            return
        stream = self._source.child("epoch", epoch).stage("keep")
        drawn = stream.bernoulli(int((1 - self._share) * ONE), self.factors.numel())
        kept = torch.from_numpy(drawn).view(self.factors.shape)
        self.factors.copy_(kept).div_(1 - self._share)


class ForcedTexts(NamedTuple):
    """Documents as a module and a loss take them.

    Attributes:
        examples: Inputs and targets.
        padding: What is cut off.
    """

    examples: ExampleBatch
    padding: PaddedInputs


def forced(texts: TrainingTexts, factors: Tensor) -> ForcedTexts:
    """Return rows as tensors, with the factors of dropout as they are and will be."""
    inputs, read, labels, targets, lengths = (
        torch.from_numpy(one)
        for one in (texts.inputs, texts.read, texts.labels, texts.targets, texts.lengths)
    )
    padded = (0, 1) if texts.reads_text else (0,)
    padding = PaddedInputs(lengths, padded, targets=True, step=STEP)
    return ForcedTexts(ExampleBatch((inputs, read, labels, factors), targets), padding)


def piece_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the negative log-likelihood of each target; zero where there is none."""
    flat = functional.cross_entropy(
        logits.flatten(0, 1), targets.reshape(-1), ignore_index=-1, reduction="none"
    )
    return flat.view(targets.shape)


def text_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean negative log-likelihood a piece, of each text."""
    counts = (targets >= 0).sum(1).clamp(min=1)
    return piece_losses(logits, targets).sum(1) / counts


def check_labels(
    shape: GeneratorShape, models: int, labels: tuple[str | int, ...], documents: Documents
) -> None:
    """Refuse documents or plans that are not of these labels.

    Raises:
        BadParameter: The number of models or of classes is another one, or a document's label is
            none of them.
    """
    expected = 1 if shape.classes else len(labels)
    if models != expected or shape.classes not in (0, len(labels)):
        raise BadParameter("labels", len(labels), "one for each class, or for each model")
    own = documents.labels
    if len(own) and not (0 <= own.min() and own.max() < len(labels)):
        raise BadParameter("documents", "<labels>", f"with labels below {len(labels)}")
