"""Generators of texts by private SGD: what a step, a text and a piece cost.

Three parts, each by name with ``--only``:

``steps``: a private step over a plain one, in CPU time. Texts of 60 pieces over 3,000 places, 64
in each step; the plain step is torch's: forward, backward, Adam. Target: at most 2.5.

``writing``: texts written in one batch against the same texts one at a time. Target: at least 20
times faster.

``likelihood``: the negative log-likelihood a piece of held-out reviews, in nats, given label and
first piece, of generators and of a unigram of each label at the same epsilon (clipped counts of
documents with Gaussian noise, smoothed by public shares). The vocabulary is that of Rotten
Tomatoes, which counts as public; ``pretrained`` generators start from one that was learnt there.
Target: below the unigram. The private reviews are IMDB's of at least 60 pieces, cut to 60, without
duplicates. Settings of both sides were chosen on the split with number 0, which is not reported.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

# `python bench/text_generators.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from bench.table import aligned, figure
from numpy.typing import NDArray

from noisefloor.accounting import noise_multiplier_for
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.private_sgd import Flat, PrivateTraining, SgdPlan
from noisefloor.publication.text import Documents, load_tokeniser, read_documents
from noisefloor.publication.text.generators import (
    GeneratorPlan,
    GeneratorShape,
    PieceVocabulary,
    TextGenerator,
    document_losses,
    generate,
    learn_generator,
    learn_without_privacy,
    most_frequent_pieces,
)
from noisefloor.publication.text.generators.model_weights import fresh_module, weights_of
from noisefloor.publication.text.generators.sampling import TEXTS_AT_ONCE
from noisefloor.publication.text.generators.teacher_forcing import forced, text_loss
from noisefloor.publication.text.generators.training_texts import lay_out
from noisefloor.randomness import SeededSource, new_run
from noisefloor.tables import load_texts

OUT = Path(__file__).resolve().parent / "results/text_generators.json"
SEED, LONGEST, BATCH, DELTA = 11, 60, 64, 1e-5
LABELS = (0, 1)
MOST_RATIO, LEAST_SPEED_UP = 2.5, 20.0

Step: TypeAlias = Callable[[], object]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        part: ``steps``, ``writing`` or ``likelihood``.
        name: What was measured.
        value: The number.
        baseline: What it is compared with.
        target: What the number has to satisfy, in words; a dash for none.
        is_met: Whether it does.
    """

    part: str
    name: str
    value: float
    baseline: float
    target: str = "-"
    is_met: bool | None = None


def shapes(vocabulary: int, classes: int = 2) -> dict[str, GeneratorShape]:
    """Return the generators that are measured, by name."""
    small: dict[str, Any] = {"vocabulary": vocabulary, "longest": LONGEST, "classes": classes}
    return {
        "encoder-decoder": GeneratorShape(kind="encoder-decoder", **small),
        "encoder-decoder from the seed": GeneratorShape(
            kind="encoder-decoder", reads="seed", **small
        ),
        "language model": GeneratorShape(kind="language-model", **small),
        "transformer": GeneratorShape(
            kind="transformer", embedding=96, hidden=192, layers=2, heads=4, **small
        ),
    }


def made_up(count: int, size: int) -> tuple[Documents, PieceVocabulary]:
    """Return texts of the longest length over all pieces, and a vocabulary of them."""
    drawn = SeededSource(SEED, "made up").generator()
    pieces = np.concatenate([np.arange(size), drawn.integers(0, size, count * LONGEST - size)])
    offsets = np.arange(count + 1, dtype=np.int64) * LONGEST
    documents = Documents(pieces.astype(np.int32), offsets, np.arange(count) % 2)
    return documents, most_frequent_pieces(pieces, size, is_public=True)


def measure_steps(*, quick: bool) -> Iterator[Figure]:
    """Compare private steps with plain ones, taken in turns."""
    rounds = 3 if quick else 9
    for name in shapes(2):
        with new_run():
            documents, vocabulary = made_up(BATCH, 3000)
            shape = shapes(vocabulary.size)[name]
            private = private_step(shape, documents, vocabulary, rounds + 1)
            plain = plain_step(shape, documents, vocabulary)
            ratios, times = [], []
            for number in range(rounds + 1):
                one, other = cpu_s(private), cpu_s(plain)
                if number:  # the first of each does not count
                    ratios.append(one / other)
                    times.append(1e3 * other)
        ratio = statistics.median(ratios)
        target = f"<= {MOST_RATIO:g}"
        plain_ms = statistics.median(times)
        yield Figure("steps", name, ratio, plain_ms, target, ratio <= MOST_RATIO)


def private_step(
    shape: GeneratorShape, documents: Documents, vocabulary: PieceVocabulary, steps: int
) -> Step:
    """Return a step of the engine that takes all texts."""
    module = fresh_module(shape, vocabulary, SeededSource(SEED, "private", shape.kind))
    texts = lay_out(documents, vocabulary, shape)
    examples, padding = forced(texts, torch.ones(texts.count, 0))
    plan = SgdPlan(examples=BATCH, expected_batch=BATCH, steps=steps, noise_multiplier=1.0)
    training = PrivateTraining(
        module,
        *examples,
        plan,
        SeededSource(SEED, "steps", shape.kind),
        loss=text_loss,
        micro_batch=BATCH,
        padding=padding,
    )
    training.__enter__()
    return lambda: training.run(training.step + 1)


def plain_step(shape: GeneratorShape, documents: Documents, vocabulary: PieceVocabulary) -> Step:
    """Return a step of torch's Adam without clipping and noise, on the same texts."""
    module = fresh_module(shape, vocabulary, SeededSource(SEED, "plain", shape.kind))
    texts = lay_out(documents, vocabulary, shape)
    examples, padding = forced(texts, torch.ones(texts.count, 0))
    taken = padding.cut(examples, slice(None))
    optimiser = torch.optim.Adam(module.parameters())

    def step() -> None:
        optimiser.zero_grad()
        text_loss(module(*taken.inputs), taken.targets).mean().backward()  # type: ignore[no-untyped-call] # torch's own
        optimiser.step()

    return step


def measure_writing(*, quick: bool) -> Iterator[Figure]:
    """Compare texts written in one batch with the same texts one at a time."""
    count, alone = (512, 8) if quick else (2048, 32)
    for name in shapes(2):
        with new_run():
            _, vocabulary = made_up(100, 3000)
            shape = shapes(vocabulary.size)[name]
            module = fresh_module(shape, vocabulary, SeededSource(SEED, "writing"))
        generator = TextGenerator(shape, vocabulary, LABELS, "", (weights_of(module),))
        batched = writing_s(generator, count, TEXTS_AT_ONCE) / count
        one = writing_s(generator, alone, 1) / alone
        target = f">= {LEAST_SPEED_UP:g}"
        speed_up = one / batched
        yield Figure("writing", name, speed_up, 1e3 * batched, target, speed_up >= LEAST_SPEED_UP)


def writing_s(generator: TextGenerator, count: int, at_once: int) -> float:
    """Return the CPU time of writing texts of 60 pieces."""
    places = np.arange(count)
    lengths = np.full(count, LONGEST)

    def write() -> None:
        with new_run():
            source = SeededSource(SEED, "texts")
            generate(generator, places % 2, places % 3000, lengths, source, at_once=at_once)

    return cpu_s(write)


def cpu_s(step: Step) -> float:
    """Return the CPU time of a step."""
    start = time.process_time()
    step()
    return time.process_time() - start


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
        held = data.test[np.flatnonzero(data.test.labels == label)]
        places = vocabulary.places(held.pieces).reshape(held.count, LONGEST)[:, 1:]
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

    expected_batch: float = 512
    epochs: float = 6
    learning_rate: float = 2e-3
    clip: float = 1.0
    averaging: float = 0.3


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
    data: Corpora, vocabulary: PieceVocabulary, shape: GeneratorShape
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
            epochs=6,
            dropout=0.2,
        )


def measure_likelihood(*, quick: bool, only: str = "") -> Iterator[Figure]:
    """Compare held-out losses of generators with those of the unigram at the same epsilon."""
    train, test, places = (2_000, 500, 1_000) if quick else (20_000, 4_000, 3_000)
    settings = GeneratorSettings(epochs=1, expected_batch=128) if quick else GeneratorSettings()
    for split in (1,) if quick else (1, 2, 3, 4):
        data = corpora(split, train, test)
        vocabulary = most_frequent_pieces(data.public.pieces, places, is_public=True)
        for epsilon in (8.0,) if quick else (8.0, 2.0):
            with new_run():
                unigram = unigram_losses(data, vocabulary, epsilon, UnigramSettings())
            where = f"epsilon {epsilon:g}, split {split}"
            for name, shape in shapes(vocabulary.size).items():
                for begun in ("fresh", "pretrained"):
                    title = f"{name}, {begun}, {where}"
                    if only not in title:
                        continue
                    start = (
                        public_start(data, vocabulary, shape) if begun == "pretrained" else None
                    )
                    loss = private_loss(data, vocabulary, shape, epsilon, settings, start)
                    target = f"< {unigram:.3f}"
                    yield Figure("likelihood", title, loss, unigram, target, loss < unigram)


def measure(*, quick: bool, only: str) -> list[Figure]:
    """Measure all parts, or those that are named."""
    torch.set_num_threads(1)
    part, _, rest = only.partition(":")
    sides: dict[str, Callable[[], Iterable[Figure]]] = {
        "steps": lambda: measure_steps(quick=quick),
        "writing": lambda: measure_writing(quick=quick),
        "likelihood": lambda: measure_likelihood(quick=quick, only=rest),
    }
    found = []
    for name, side in sides.items():
        if part in ("", name):
            for one in side():
                print(f"{one.part}: {one.name}: {figure(one.value)}", file=sys.stderr, flush=True)
                found.append(one)
    return found


def printed(found: list[Figure]) -> str:
    """Return the table."""
    header = ["part", "what", "value", "baseline", "target", "verdict"]
    verdicts = {None: "", True: "met", False: "missed"}
    rows = []
    for one in found:
        figures = figure(one.value, 4), figure(one.baseline, 4)
        rows.append([one.part, one.name, *figures, one.target, verdicts[one.is_met]])
    return aligned(header, rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer texts, rounds and splits")
    parser.add_argument("--only", default="", help="a part; of likelihood, `likelihood:WORDS`")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    found = measure(quick=arguments.quick, only=arguments.only)
    print(printed(found))
    print("Baselines: plain ms a step; batched ms a text; the unigram's loss in nats a piece")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
