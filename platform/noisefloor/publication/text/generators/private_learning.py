"""Generators learnt from documents by private SGD."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor.publication.noised_vectors import ResidualObserver
from noisefloor.publication.private_sgd import PrivateTraining, SgdPlan, SgdReport
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.generators.generator_plan import GeneratorPlan
from noisefloor.publication.text.generators.model_weights import (
    Module,
    check_start,
    copy_weights,
    fresh_module,
    weights_of,
)
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


class TrainedGenerator(NamedTuple):
    """A generator, and what may be said of how it was trained.

    Attributes:
        generator: What is published.
        reports: Of each training.
    """

    generator: TextGenerator
    reports: tuple[SgdReport, ...]


def learn_generator(
    plan: GeneratorPlan,
    documents: Documents,
    vocabulary: PieceVocabulary,
    source: Source,
    *,
    labels: tuple[str | int, ...],
    tokeniser_sha256: str,
    start: TextGenerator | None = None,
    residuals: ResidualObserver | None = None,
) -> TrainedGenerator:
    """Learn a generator privately.

    Args:
        plan: What is done, and what is proved of it.
        documents: The private ones.
        vocabulary: Public, unless the plan is the paper's.
        source: Draws.
        labels: Names of labels, in their order.
        tokeniser_sha256: Of the documents' tokeniser.
        start: A generator of the same shape and vocabulary, learnt from public documents; fresh
            weights if left out.
        residuals: Gets the sum of every step before and after its noise; for simulations alone.

    Raises:
        BadParameter: The vocabulary is private and the plan says it is not, or the plan is for
            another number of labels.
        TrainingFailed: Weights are NaN or infinite, or did not move.
    """
    if not (vocabulary.is_public or plan.is_paper):
        raise BadParameter("vocabulary", "<pieces>", "of a public corpus: this one costs privacy")
    shape, models = plan.shape, len(plan.trainings)
    check_labels(shape, models, labels, documents)
    if start is not None:
        check_start(start, shape, vocabulary, models)
    texts = lay_out(documents, vocabulary, shape)
    weights, reports = [], []
    for place, sgd in enumerate(plan.trainings):
        own = texts if shape.classes else texts[np.flatnonzero(texts.labels == place)]
        draws = source.child("model", place)
        module = fresh_module(shape, vocabulary, draws.child("weights"))
        if start is not None:
            copy_weights(module, start.weights[place])
        observer = residuals if models == 1 else _named(residuals, place)
        reports.append(_train(module, plan, sgd, own, draws, observer))
        weights.append(weights_of(module))
    made = TextGenerator(shape, vocabulary, labels, tokeniser_sha256, tuple(weights))
    return TrainedGenerator(made, tuple(reports))


def _named(residuals: ResidualObserver | None, place: int) -> ResidualObserver | None:
    """Return an observer that gets the model of each vector: their noise may differ."""
    if residuals is None:
        return None
    return lambda vector: residuals(replace(vector, part=f"{vector.part} of model {place}"))


def _train(
    module: Module,
    plan: GeneratorPlan,
    sgd: SgdPlan,
    texts: TrainingTexts,
    source: Source,
    residuals: ResidualObserver | None,
) -> SgdReport:
    """Train one model; factors of dropout are drawn anew about once an epoch."""
    keep = DropoutFactors(plan.shape, texts.count, plan.dropout, source.child("dropout"))
    examples, padding = forced(texts, keep.factors)
    steps_an_epoch = max(1, round(sgd.examples / sgd.expected_batch))
    keep.renew(0)
    with PrivateTraining(
        module,
        *examples,
        sgd,
        source.child("training"),
        loss=text_loss,
        micro_batch=MICRO_BATCH,
        padding=padding,
        residuals=residuals,
    ) as training:
        for epoch, until in enumerate(range(steps_an_epoch, sgd.steps + 1, steps_an_epoch)):
            training.run(until)
            keep.renew(epoch + 1)
        training.run()
        return training.finish()
