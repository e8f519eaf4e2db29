"""What writes the corpora that are compared, each with what is proved of its parts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import epsilon_at, noise_multiplier_for, parallel, sequential
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.private_sgd import Flat, SgdPlan
from noisefloor.publication.synthesis import NoiseBudget, table_change
from noisefloor.publication.text import Documents, shared_tokeniser
from noisefloor.publication.text.generalisation import (
    FixedLevels,
    GeneralisationForm,
    KAnonymous,
    Ladders,
    NoisyPlacesPlan,
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
from noisefloor_sim.papers.text.budgets import CLASSES, RELATION, budget_of
from noisefloor_sim.papers.text.corpora import PreparedCorpus, Rows
from noisefloor_sim.papers.text.plans import (
    LENGTH_DEVIATIONS,
    LENGTH_SHARE,
    LEVELS,
    MOST_PLACES,
    PARTS,
    PLACE_SHARE,
    PUBLIC_WEIGHT,
    K,
    TextCell,
    TextRunPlan,
)

Parts = Mapping[str, Guarantee]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenCorpus:
    """One corpus, and what is proved of how it was made.

    Attributes:
        documents: The texts as pieces.
        parts: What is proved of each part that was released; empty without any privacy.
        generator: What wrote it, if a network did.
        noise: The multiplier that its trainings claim, if they are private.
        substituted: What is proved of its weights if a document becomes another, of any label.
    """

    documents: Documents
    parts: Parts
    generator: TextGenerator | None = None
    noise: float | None = None
    substituted: Guarantee | None = None


def declared_sizes(labels: NDArray[np.integer]) -> tuple[int, ...]:
    """Return how many documents of each label are declared in public to be learnt from.

    Two digits of four fifths of all: the same for all splits, so that they have one plan. Where
    something is proved, their sum is how many texts are written: adding or removing a document
    changes how many there are, and must not change that. These are declared figures: whoever
    publishes chooses them, and guarantees are for what they are declared for.
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
        share = 1 - LENGTH_SHARE - (PLACE_SHARE if cell.system == "dpvg-ed" else 0)
        return _corrected_plan(budget_of(cell.epsilon, share), plan, shape, sizes)
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
def of_substitution(plan: GeneratorPlan) -> Guarantee:
    """Return what is proved of the weights of a model for each label if a document is substituted.

    One that changes its label leaves one training and enters another: a step in each. One that
    keeps it is two steps in one training, which can cost more: all of its noise is one training's.
    """
    relation = Neighbours.RECORD_SUBSTITUTE
    moved = replace(sequential([plan.weights_guarantee] * 2), neighbours=relation)
    stays = [epsilon_at(one.events, moved.delta, neighbours=relation) for one in plan.trainings]
    return parallel([moved, *stays])


@lru_cache(maxsize=32)
def _corrected_plan(
    cost: Guarantee, plan: TextRunPlan, shape: GeneratorShape, sizes: tuple[int, ...]
) -> GeneratorPlan:
    return GeneratorPlan.for_budget(
        cost,
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


def generalised(
    prepared: PreparedCorpus, rows: Rows, cell: TextCell, longest: int, source: Source
) -> tuple[Documents, Parts]:
    """Return the texts that a cell learns from, generalised if it says so, and what that costs.

    Only documents that are learnt from are counted.
    """
    if cell.system != "dpvg-ed":
        return prepared.documents[rows], {}
    texts, ladders = [prepared.texts[row] for row in rows], Ladders(shared_place_graph())
    mentions = prepared.mentions.of_documents(rows)
    form: GeneralisationForm = KAnonymous(K)
    if not cell.is_paper:
        plan = NoisyPlacesPlan.of(
            budget_of(cell.epsilon, PLACE_SHARE),
            ladders.places,
            k=K,
            most_places=MOST_PLACES,
            others=FixedLevels(LEVELS),
        )
        form = plan.release(mentions, ladders, source)
    done = generalise(texts, mentions, form, ladders)
    pieces, offsets = shared_tokeniser().cut(done.texts, longest)
    found = Documents(pieces, offsets, prepared.documents.labels[rows])
    return found[np.flatnonzero(found.lengths > 1)], {"generalisation": form.proved}


def write_corpus(
    cell: TextCell, plan: TextRunPlan, prepared: PreparedCorpus, rows: Rows, source: Source
) -> WrittenCorpus:
    """Write one corpus from the texts of a split.

    What is private writes as many texts as are declared; the paper, and what has no privacy, as
    many as there are to learn from.
    """
    longest = prepared.longest
    if cell.system == "original":
        return WrittenCorpus(prepared.documents[rows], {})
    train, parts = generalised(prepared, rows, cell, longest, source.child("names"))
    if cell.system in ("ngrams", "crossed"):
        return _ngrams(cell, prepared, train, longest, source)
    made = _encoder_decoder(cell, plan, prepared, train, longest, source)
    return replace(made, parts={**parts, **made.parts})


def _ngrams(
    cell: TextCell, prepared: PreparedCorpus, train: Documents, longest: int, source: Source
) -> WrittenCorpus:
    tokeniser = shared_tokeniser()
    public = PublicCorpus("public", prepared.public, tokeniser)
    made = NgramPlan.of(budget_of(cell.epsilon), CLASSES, longest, tokeniser.size)
    counts = count_ngrams(train, made, public, source.child("counts"))
    model = fit_pairs(counts, tokeniser.continuations)
    writer = NgramWriter(model, made.bin_width, longest)
    if cell.system == "crossed":
        writer = replace(writer, public=public, public_weight=PUBLIC_WEIGHT)
    texts = sum(declared_sizes(prepared.documents.labels))
    written = writer.write(texts, source.child("texts"))
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
    noise = substituted = None
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
        noise, substituted = planned.noise_multiplier, of_substitution(planned)
        generator = learn_generator(
            planned,
            train,
            vocabulary,
            draws,
            labels=labels,
            tokeniser_sha256=tokeniser.sha256,
        ).generator
    if cell.is_paper or not cell.epsilon:
        prompts = _copied(cell, train, vocabulary, source)
    else:
        texts, budget = sum(declared_sizes(prepared.documents.labels)), length_budget(cell.epsilon)
        parts["lengths"] = budget.guarantee
        seeds = public_seeds(vocabulary, texts, source.child("seeds"))
        prompts = noisy_prompts(train, seeds, longest, budget, source.child("lengths"))
    pieces, offsets = generate(generator, *prompts, source.child("writing"))
    documents = Documents(pieces, offsets, prompts.labels)
    return WrittenCorpus(documents, parts, generator, noise, substituted)


def _copied(
    cell: TextCell, train: Documents, vocabulary: PieceVocabulary, source: Source
) -> Prompts:
    """Return a prompt for each document, where nothing is proved of labels and lengths."""
    prompts = copied_prompts(train, source.child("prompts"))
    if cell.is_paper:
        return prompts
    seeds = public_seeds(vocabulary, len(prompts.labels), source.child("seeds"))
    return Prompts(prompts.labels, seeds, prompts.lengths)


def public_seeds(vocabulary: PieceVocabulary, count: int, source: Source) -> NDArray[np.int32]:
    """Return first pieces by how frequent they are in public: nothing is spent on them."""
    running = np.cumsum(vocabulary.shares[:-1])
    places = np.searchsorted(running, source.uniforms(count) * running[-1], side="right")
    return np.asarray(vocabulary.pieces[np.minimum(places, len(running) - 1)])


def noisy_prompts(
    train: Documents,
    seeds: NDArray[np.int32],
    longest: int,
    budget: NoiseBudget,
    source: Source,
) -> Prompts:
    """Return labels and lengths by a noisy table of both, as many as there are seeds.

    Cells below some deviations of the noise count as empty: most of them are, and positive noise
    of many empty cells would make lengths up. Where no cell is left, all texts are of the longest
    length. How many texts a cell gets is what its share comes to; their order is drawn.
    """
    cells = train.labels * longest + train.lengths - 1
    counts = np.bincount(cells, minlength=CLASSES * longest)
    noise = budget.noises["lengths"]
    noisy = noise.add(counts, source)
    noisy[noisy < max(1.0, LENGTH_DEVIATIONS * math.sqrt(noise.variance))] = 0
    if not noisy.any():
        noisy[longest - 1 :: longest] = 1
    ends = np.round(np.cumsum(noisy) / noisy.sum() * len(seeds))
    places = source.child("order").permutation(len(seeds))
    chosen = np.searchsorted(ends, places, side="right")
    labels, lengths = np.divmod(chosen, longest)
    return Prompts(labels.astype(np.int64), seeds, (lengths + 1).astype(np.int64))
