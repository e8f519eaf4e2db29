"""Generators learnt without privacy: to compare with, or from public documents as a start."""

from math import ceil

import numpy as np
import torch

from noisefloor.checks import check_count
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators.model_weights import Module, fresh_module, weights_of
from noisefloor.publication.text.generators.shapes import GeneratorShape
from noisefloor.publication.text.generators.teacher_forcing import (
    MICRO_BATCH,
    DropoutFactors,
    check_labels,
    forced,
    text_loss,
)
from noisefloor.publication.text.generators.text_generator import TextGenerator
from noisefloor.publication.text.generators.training_texts import TrainingTexts, lay_out
from noisefloor.publication.text.generators.vocabulary import PieceVocabulary
from noisefloor.randomness import Source


def learn_without_privacy(
    shape: GeneratorShape,
    documents: Documents,
    vocabulary: PieceVocabulary,
    source: Source,
    *,
    labels: tuple[str | int, ...],
    tokeniser_sha256: str,
    batch: int = 64,
    epochs: float = 3.0,
    learning_rate: float = 2e-3,
    dropout: float = 0.0,
) -> TextGenerator:
    """Learn a generator by torch's Adam on shuffled batches; nothing is proved of it.

    Learnt from private documents it is the encoder-decoder without privacy that private ones are
    compared with. Learnt from PUBLIC ones it may be where a private training starts, for free.

    Args:
        shape: Of each model; without classes there is one for each label.
        documents: What is learnt from.
        vocabulary: What can be written.
        source: Draws.
        labels: Names of labels, in their order.
        tokeniser_sha256: Of the documents' tokeniser.
        batch: Documents in a step.
        epochs: How often each document is seen.
        learning_rate: Of Adam.
        dropout: The share of values that a step leaves out.
    """
    check_count(batch, "batch")
    models = 1 if shape.classes else len(labels)
    check_labels(shape, models, labels, documents)
    texts = lay_out(documents, vocabulary, shape)
    weights = []
    for place in range(models):
        own = texts if shape.classes else texts[np.flatnonzero(texts.labels == place)]
        draws = source.child("model", place)
        module = fresh_module(shape, vocabulary, draws.child("weights"))
        keep = DropoutFactors(shape, own.count, dropout, draws.child("dropout"))
        optimiser = torch.optim.Adam(module.parameters(), learning_rate)
        for epoch in range(ceil(epochs)):
            keep.renew(epoch)
            stream = draws.child("epoch", epoch).stage("order")
            order = torch.from_numpy(stream.permutation(own.count))
            seen = ceil(min(1.0, epochs - epoch) * own.count)
            for places in torch.split(order[:seen], batch):
                optimiser.zero_grad()
                _add_gradients(module, own, keep, places)
                optimiser.step()
        weights.append(weights_of(module))
    return TextGenerator(shape, vocabulary, labels, tokeniser_sha256, tuple(weights))


def _add_gradients(
    module: Module,
    texts: TrainingTexts,
    keep: DropoutFactors,
    places: torch.Tensor,
) -> None:
    examples, padding = forced(texts, keep.factors)
    for part in padding.micro_batches(places, MICRO_BATCH):
        taken = padding.cut(examples.taken(part), part)
        losses = text_loss(module(*taken.inputs), taken.targets)
        (losses.sum() / len(places)).backward()  # type: ignore[no-untyped-call] # torch's own
