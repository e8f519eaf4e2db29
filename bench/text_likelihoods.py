"""Held-out losses of private generators beside those of a private unigram.

The negative log-likelihood a piece of held-out reviews, in nats, given label and first piece, of
generators and of a unigram of each label at the same epsilon (clipped counts of documents with
Gaussian noise, smoothed by public shares). The vocabulary is that of Rotten Tomatoes, which counts
as public; ``pretrained`` generators start from one that was learnt there, and stand beside it as
it was (``public alone``): what privacy was paid for is the difference. The private reviews are
IMDB's of at least 60 pieces, cut to 60, without duplicates. Settings of both sides were chosen on
10,000 reviews and 1,000 pieces of the split with number 0, which is not reported.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import noise_multiplier_for
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd import Flat
from noisefloor.publication.text import Documents, load_tokeniser, read_documents
from noisefloor.publication.text.generators import (
    GeneratorPlan,
    GeneratorShape,
    PieceVocabulary,
    TextGenerator,
    document_losses,
    learn_generator,
    learn_without_privacy,
    most_frequent_pieces,
)
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import load_texts

SEED, LONGEST, DELTA = 11, 60, 1e-5
LABELS = (0, 1)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeldOutLoss:
    """Losses a piece of one generator and of the unigram.

    Attributes:
        name: Which generator, how it began, epsilon and split.
        loss: Its own.
        unigram: The unigram's.
        is_private: Whether private texts were learnt from.
    """

    name: str
    loss: float
    unigram: float
    is_private: bool = True


@dataclass(frozen=True, slots=True)
class Corpora:
    """Public texts, and private ones to learn from and to hold out.

    Attributes:
        public: Rotten Tomatoes.
        train: IMDB.
        test: Likewise.
        tokeniser_sha256: Of all of them.
    """

    public: Documents
    train: Documents
    test: Documents
    tokeniser_sha256: str


def corpora(split: int, train: int, test: int) -> Corpora:
    """Return the texts of a split."""
    tokeniser = load_tokeniser()
    public = cut(read_documents(load_texts("rotten-tomatoes"), tokeniser))
    records = load_texts("imdb")
    _, first = np.unique(records.texts[next(iter(records.schema.texts))], return_index=True)
    whole = cut(read_documents(records[np.sort(first)], tokeniser))
    whole = whole[np.flatnonzero(whole.lengths == LONGEST)]
    with new_run():
        order = SeededSource(SEED, "split", split).stage("order").permutation(whole.count)
    return Corpora(
        public[np.flatnonzero(public.lengths > 1)],
        whole[order[:train]],
        whole[order[train : train + test]],
        tokeniser.sha256,
    )


def cut(documents: Documents) -> Documents:
    """Return the first pieces of each document."""
    places = np.arange(len(documents.pieces)) - documents.offsets[documents.owners]
    lengths = np.minimum(documents.lengths, LONGEST)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Documents(documents.pieces[places < LONGEST], offsets, documents.labels)


@dataclass(frozen=True, slots=True)
class UnigramSettings:
    """How counts of documents are made private and smoothed; chosen on split 0.

    Attributes:
        clip: The most that a document's counts weigh, in L2.
        public_pieces: How many pieces the public shares count for.
    """

    clip: float = 3.0
    public_pieces: float = 3000.0


def unigram_losses(
    data: Corpora, vocabulary: PieceVocabulary, epsilon: float, settings: UnigramSettings
) -> float:
    """Return the loss a piece of a private unigram of each label."""
    noise = noise_multiplier_for(epsilon, DELTA, 1.0, 1) * settings.clip
    total, count = 0.0, 0
    for label in LABELS:
        own = data.train[np.flatnonzero(data.train.labels == label)]
        counts = clipped_counts(own, vocabulary, settings.clip)
        drawn = SeededSource(SEED, "unigram", label, str(epsilon)).stage("noise")
        noisy = counts + noise * drawn.normals(len(counts))
        shares = np.maximum(noisy, 0) + settings.public_pieces * vocabulary.shares
        logs = np.log(shares / shares.sum())
        of_label = data.test[np.flatnonzero(data.test.labels == label)]
        places = vocabulary.places(of_label.pieces).reshape(of_label.count, LONGEST)[:, 1:]
        total -= float(logs[places].sum())
        count += places.size
    return total / count


def clipped_counts(documents: Documents, vocabulary: PieceVocabulary, clip: float) -> Floats:
    """Return sums of the documents' counts, each scaled to at most the clip in L2."""
    size = vocabulary.size
    keys = documents.owners * size + vocabulary.places(documents.pieces)
    found, counts = np.unique(keys, return_counts=True)
    owners, places = np.divmod(found, size)
    norms = np.sqrt(np.bincount(owners, counts.astype(np.float64) ** 2, documents.count))
    factors = np.minimum(1.0, clip / np.maximum(norms, 1e-9))
    return np.bincount(places, counts * factors[owners], size).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSettings:
    """How generators are trained privately; chosen on split 0.

    Attributes:
        expected_batch: Documents in a step, on average.
        epochs: How often each document is seen.
        learning_rate: Of Adam.
        clip: Of a document's gradient.
        averaging: The share of last steps whose weights are averaged.
    """

    expected_batch: float = 256
    epochs: float = 3
    learning_rate: float = 4e-3
    clip: float = 1.0
    averaging: float = 0.3


SETTINGS = {
    "fresh": GeneratorSettings(),
    "pretrained": GeneratorSettings(epochs=2, learning_rate=1e-3),
}


def private_loss(
    data: Corpora,
    vocabulary: PieceVocabulary,
    shape: GeneratorShape,
    epsilon: float,
    settings: GeneratorSettings,
    start: TextGenerator | None = None,
) -> float:
    """Return the loss a piece of a generator that is learnt privately."""
    cost = Guarantee(epsilon, Neighbours.RECORD_ADD_REMOVE, DELTA, TrustModel.CENTRAL)
    plan = GeneratorPlan.for_budget(
        cost,
        shape,
        np.bincount(data.train.labels, minlength=2).tolist(),
        expected_batch=settings.expected_batch,
        epochs=settings.epochs,
        clipping=Flat(settings.clip),
        learning_rate=settings.learning_rate,
        averaging=settings.averaging,
    )
    with new_run():
        found = learn_generator(
            plan,
            data.train,
            vocabulary,
            SeededSource(SEED, "learning"),
            labels=LABELS,
            tokeniser_sha256=data.tokeniser_sha256,
            start=start,
        )
    return mean_loss(found.generator, data.test)


def mean_loss(generator: TextGenerator, documents: Documents) -> float:
    """Return the loss a piece, the first pieces left out."""
    return float(document_losses(generator, documents).sum() / (documents.lengths - 1).sum())


def public_start(
    data: Corpora, vocabulary: PieceVocabulary, shape: GeneratorShape, epochs: float
) -> TextGenerator:
    """Return a generator that was learnt from public texts."""
    with new_run():
        return learn_without_privacy(
            shape,
            data.public,
            vocabulary,
            SeededSource(SEED, "public"),
            labels=LABELS,
            tokeniser_sha256=data.tokeniser_sha256,
            epochs=epochs,
            dropout=0.2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodSizes:
    """How much of the texts is taken.

    Attributes:
        train: Private reviews.
        test: Held-out ones.
        places: Pieces of the vocabulary.
        splits: Numbers of splits, from 1 on.
        epsilons: Of unigram and generators alike.
        public_epochs: How often a pretrained generator sees the public texts.
        epochs: Likewise of private ones; as in the settings if None.
    """

    train: int = 20_000
    test: int = 4_000
    places: int = 3_000
    splits: tuple[int, ...] = (1,)
    epsilons: tuple[float, ...] = (8.0, 2.0)
    public_epochs: float = 4
    epochs: float | None = None


QUICK = LikelihoodSizes(
    train=2_000, test=500, places=500, epsilons=(8.0,), public_epochs=1, epochs=1
)


def held_out_losses(
    sizes: LikelihoodSizes, shapes: Mapping[str, GeneratorShape]
) -> Iterator[HeldOutLoss]:
    """Return losses of generators by name; of each, the vocabulary's size is set here."""
    starts: dict[str, TextGenerator] = {}  # public texts are the same in all splits
    for split in sizes.splits:
        data = corpora(split, sizes.train, sizes.test)
        vocabulary = most_frequent_pieces(data.public.pieces, sizes.places, is_public=True)
        chosen_shapes = {
            name: replace(shape, vocabulary=vocabulary.size) for name, shape in shapes.items()
        }
        for name, shape in chosen_shapes.items():
            if name not in starts:
                starts[name] = public_start(data, vocabulary, shape, sizes.public_epochs)
        for epsilon in sizes.epsilons:
            with new_run():
                unigram = unigram_losses(data, vocabulary, epsilon, UnigramSettings())
            where = f"epsilon {epsilon:g}, split {split}"
            for name, shape in chosen_shapes.items():
                loss = mean_loss(starts[name], data.test)
                yield HeldOutLoss(f"{name}, public alone, {where}", loss, unigram, False)
                for begun, usual in SETTINGS.items():
                    epochs = usual.epochs if sizes.epochs is None else sizes.epochs
                    settings = replace(usual, epochs=epochs)
                    start = starts[name] if begun == "pretrained" else None
                    loss = private_loss(data, vocabulary, shape, epsilon, settings, start)
                    yield HeldOutLoss(f"{name}, {begun}, {where}", loss, unigram)
