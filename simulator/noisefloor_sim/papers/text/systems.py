"""What writes the corpora that are compared, each with what is proved of its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import noise_multiplier_for
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd import Flat, SgdPlan
from noisefloor.publication.synthesis import NoiseBudget, table_change
from noisefloor.publication.text import Documents, shared_tokeniser
from noisefloor.publication.text.generalisation import (
    FixedLevels,
    GeneralisationForm,
    KAnonymous,
    Ladders,
    generalise,
    shared_place_graph,
)
from noisefloor.publication.text.generators import (
    GeneratorPlan,
    GeneratorShape,
    PieceVocabulary,
    Prompts,
    TextGenerator,
    copied_prompts,
    generate,
    learn_generator,
    learn_without_privacy,
    most_frequent_pieces,
)
from noisefloor.publication.text.ngrams import (
    NgramPlan,
    NgramWriter,
    PublicCorpus,
    count_ngrams,
    fit_pairs,
)
from noisefloor.randomness import Source
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.corpora import PreparedCorpus, Rows
from noisefloor_sim.papers.text.plans import (
    LENGTH_SHARE,
    LEVELS,
    PARTS,
    PUBLIC_WEIGHT,
    K,
    TextCell,
    TextRunPlan,
)

RELATION = Neighbours.RECORD_ADD_REMOVE
CLASSES = 2
Parts = Mapping[str, Guarantee]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenCorpus:
    """One corpus, and what is proved of how it was made.

    Attributes:
        documents: The texts as pieces.
        parts: What is proved of each part that was released; empty without any privacy.
        generator: What wrote it, if a network did.
    """

    documents: Documents
    parts: Parts
    generator: TextGenerator | None = None


def budget_of(epsilon: float, share: float = 1.0) -> Guarantee:
    """Return a part of what a corpus may cost."""
    delta = printed.DELTA * share
    return Guarantee(epsilon * share, RELATION, delta=delta, model=TrustModel.CENTRAL)


def declared_sizes(labels: NDArray[np.integer]) -> tuple[int, ...]:
    """Return how many documents of each label are declared in public to be learnt from.

    Two digits of four fifths of all: the same for all splits, so that they have one plan.
    """
    counts = np.bincount(labels, minlength=CLASSES) * (PARTS - 1) / PARTS
    return tuple(max(1, int(float(f"{count:.1e}"))) for count in counts)


def shape_of(cell: TextCell, plan: TextRunPlan, vocabulary: int, longest: int) -> GeneratorShape:
    """Return the sizes of each encoder-decoder."""
    return GeneratorShape(
        kind="encoder-decoder",
        vocabulary=vocabulary,
        longest=longest,
        embedding=plan.embedding,
        hidden=plan.hidden,
        # Trained on whole texts it is given one word to write from: the other reading of the
        # paper trains on what is given.
        reads="text" if cell.is_paper else "seed",
    )


def generator_plan(
    cell: TextCell, plan: TextRunPlan, shape: GeneratorShape, sizes: tuple[int, ...]
) -> GeneratorPlan:
    """Return the private training of an encoder-decoder."""
    if not cell.is_paper:
        return _corrected_plan(cell.epsilon, plan, shape, sizes)
    sigmas = [_sigma(cell.epsilon, size, plan.batch, plan.epochs) for size in sizes]
    if cell.variant == "printed":
        return GeneratorPlan.as_printed(
            shape,
            sizes,
            noise_multiplier=max(sigmas),
            expected_batch=plan.batch,
            epochs=plan.epochs,
            delta=printed.DELTA,
            learning_rate=printed.RATE,
            clipping=Flat(plan.clip),
            dropout=printed.DROPOUT,
        )
    trainings = tuple(
        SgdPlan(
            examples=size,
            expected_batch=min(plan.batch, size),
            steps=_steps(size, plan.batch, plan.epochs),
            noise_multiplier=max(sigmas),
            clipping=Flat(plan.clip),
            optimiser="adam-printed",
            learning_rate=plan.rate,
        )
        for size in sizes
    )
    return GeneratorPlan(
        shape=shape,
        trainings=trainings,
        delta=printed.DELTA,
        variant="paper",
        noise_multiplier=max(sigmas),
        dropout=printed.DROPOUT,
    )


@lru_cache(maxsize=32)
def _corrected_plan(
    epsilon: float, plan: TextRunPlan, shape: GeneratorShape, sizes: tuple[int, ...]
) -> GeneratorPlan:
    return GeneratorPlan.for_budget(
        budget_of(epsilon, 1 - LENGTH_SHARE),
        shape,
        sizes,
        expected_batch=plan.batch,
        epochs=plan.epochs,
        clipping=Flat(plan.clip),
        learning_rate=plan.rate,
        averaging=plan.averaging,
    )


def _steps(size: int, batch: int, epochs: float) -> int:
    return max(1, round(epochs * size / min(batch, size)))


@lru_cache(maxsize=64)
def _sigma(epsilon: float, size: int, batch: int, epochs: float) -> float:
    steps = _steps(size, batch, epochs)
    return noise_multiplier_for(epsilon, printed.DELTA, min(batch, size) / size, steps)


@lru_cache(maxsize=16)
def length_budget(epsilon: float) -> NoiseBudget:
    """Return the noise of a table of lengths by label: a document is in one cell."""
    cost = budget_of(epsilon, LENGTH_SHARE)
    return NoiseBudget.of(cost, {"lengths": table_change(1, RELATION)}, {"lengths": 1.0})


def form_of(cell: TextCell) -> GeneralisationForm | None:
    """Return how far names are generalised, or None where they are not."""
    if cell.system != "dpvg-ed":
        return None
    return KAnonymous(K) if cell.is_paper else FixedLevels(LEVELS)


def generalised(prepared: PreparedCorpus, rows: Rows, cell: TextCell, longest: int) -> Documents:
    """Return the texts that a cell learns from, generalised if it says so.

    Climbing to k counts the documents that are learnt from, and no others.
    """
    form = form_of(cell)
    if form is None:
        return prepared.documents[rows]
    texts = [prepared.texts[row] for row in rows]
    ladders = Ladders(shared_place_graph())
    done = generalise(texts, prepared.mentions.of_documents(rows), form, ladders)
    pieces, offsets = shared_tokeniser().cut(done.texts, longest)
    found = Documents(pieces, offsets, prepared.documents.labels[rows])
    return found[np.flatnonzero(found.lengths > 1)]


def write_corpus(
    cell: TextCell, plan: TextRunPlan, prepared: PreparedCorpus, rows: Rows, source: Source
) -> WrittenCorpus:
    """Write one corpus from the texts of a split, as many as there are to learn from."""
    longest = int(max(prepared.documents.lengths.max(), prepared.public.lengths.max()))
    if cell.system == "original":
        return WrittenCorpus(prepared.documents[rows], {})
    train = generalised(prepared, rows, cell, longest)
    if cell.system in ("ngrams", "crossed"):
        return _ngrams(cell, prepared, train, longest, source)
    return _encoder_decoder(cell, plan, prepared, train, longest, source)


def _ngrams(
    cell: TextCell, prepared: PreparedCorpus, train: Documents, longest: int, source: Source
) -> WrittenCorpus:
    tokeniser = shared_tokeniser()
    public = PublicCorpus("public", prepared.public, tokeniser)
    declared = sum(declared_sizes(prepared.documents.labels))
    made = NgramPlan.of(budget_of(cell.epsilon), declared, CLASSES, longest, tokeniser.size)
    counts = count_ngrams(train, made, public, source.child("counts"))
    model = fit_pairs(counts, tokeniser.continuations)
    writer = NgramWriter(model, made.bin_width, longest)
    if cell.system == "crossed":
        writer = replace(writer, public=public, public_weight=PUBLIC_WEIGHT)
    written = writer.write(train.count, source.child("texts"))
    return WrittenCorpus(written, {"counts": made.guarantee})


def _encoder_decoder(
    cell: TextCell,
    plan: TextRunPlan,
    prepared: PreparedCorpus,
    train: Documents,
    longest: int,
    source: Source,
) -> WrittenCorpus:
    tokeniser = shared_tokeniser()
    known = train if cell.is_paper else prepared.public
    vocabulary = most_frequent_pieces(known.pieces, plan.vocabulary, is_public=not cell.is_paper)
    shape = shape_of(cell, plan, vocabulary.size, longest)
    labels, draws = tuple(range(CLASSES)), source.child("learning")
    parts: dict[str, Guarantee] = {}
    if cell.system == "plain":
        generator = learn_without_privacy(
            shape,
            train,
            vocabulary,
            draws,
            labels=labels,
            tokeniser_sha256=tokeniser.sha256,
            epochs=plan.plain_epochs,
            dropout=printed.DROPOUT,
        )
    else:
        sizes = declared_sizes(prepared.documents.labels)
        planned = generator_plan(cell, plan, shape, sizes)
        parts |= planned.parts
        generator = learn_generator(
            planned,
            train,
            vocabulary,
            draws,
            labels=labels,
            tokeniser_sha256=tokeniser.sha256,
        ).generator
    prompts = copied_prompts(train, source.child("prompts"))
    if not cell.is_paper:
        seeds = public_seeds(vocabulary, train.count, source.child("seeds"))
        prompts = Prompts(prompts.labels, seeds, prompts.lengths)
        if cell.epsilon:
            budget = length_budget(cell.epsilon)
            parts["lengths"] = budget.guarantee
            prompts = noisy_prompts(train, seeds, longest, budget, source.child("lengths"))
    pieces, offsets = generate(generator, *prompts, source.child("writing"))
    return WrittenCorpus(Documents(pieces, offsets, prompts.labels), parts, generator)


def public_seeds(vocabulary: PieceVocabulary, count: int, source: Source) -> NDArray[np.int32]:
    """Return first pieces by how frequent they are in public: nothing is spent on them."""
    running = np.cumsum(vocabulary.shares[:-1])
    places = np.searchsorted(running, uniform(source, count) * running[-1], side="right")
    return np.asarray(vocabulary.pieces[np.minimum(places, len(running) - 1)])


def noisy_prompts(
    train: Documents,
    seeds: NDArray[np.int32],
    longest: int,
    budget: NoiseBudget,
    source: Source,
) -> Prompts:
    """Return labels and lengths by a noisy table of both, as many as there are seeds.

    How many are drawn of each cell is what its share of all comes to, so nothing is random but the
    noise; where no cell is above zero, all texts are of the longest length.
    """
    cells = train.labels * longest + train.lengths - 1
    counts = np.bincount(cells, minlength=CLASSES * longest)
    noisy = np.maximum(budget.noises["lengths"].add(counts, source), 0)
    if not noisy.any():
        noisy[longest - 1 :: longest] = 1
    ends = np.round(np.cumsum(noisy) / noisy.sum() * len(seeds))
    chosen = np.searchsorted(ends, np.arange(len(seeds)), side="right")
    labels, lengths = np.divmod(chosen, longest)
    return Prompts(labels.astype(np.int64), seeds, (lengths + 1).astype(np.int64))


def uniform(source: Source, count: int) -> NDArray[np.float64]:
    """Return numbers in [0, 1) of 53 bits."""
    return np.asarray((source.words(count) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)
