"""Generators of texts by private SGD: what a step, a text and a piece cost.

Three parts, each by name with ``--only``:

``steps``: a private step over a plain one, in CPU time. Texts of 60 pieces over 3,000 places, 64
in each step; the plain step is torch's: forward, backward, Adam. Target: at most 2.5.

``writing``: texts written in one batch against the same texts one at a time. Target: at least 20
times faster.

``likelihood``: losses of held-out reviews a piece, see ``text_likelihoods``. Target: below those
of a unigram at the same epsilon.
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
from bench.text_likelihoods import (
    LABELS,
    LONGEST,
    QUICK,
    SEED,
    LikelihoodSizes,
    held_out_losses,
)

from noisefloor.publication.private_sgd import PrivateTraining, SgdPlan
from noisefloor.publication.text import Documents
from noisefloor.publication.text.generators import (
    GeneratorShape,
    PieceVocabulary,
    TextGenerator,
    generate,
    most_frequent_pieces,
)
from noisefloor.publication.text.generators.model_weights import fresh_module, weights_of
from noisefloor.publication.text.generators.sampling import TEXTS_AT_ONCE
from noisefloor.publication.text.generators.teacher_forcing import forced, text_loss
from noisefloor.publication.text.generators.training_texts import lay_out
from noisefloor.randomness import SeededSource, new_run

OUT = Path(__file__).resolve().parent / "results/text_generators.json"
BATCH = 64
MOST_RATIO, LEAST_SPEED_UP = 2.5, 20.0

Step: TypeAlias = Callable[[], object]


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


def measure_likelihood(sizes: LikelihoodSizes, only: str = "") -> Iterator[Figure]:
    """Compare held-out losses of generators with those of the unigram at the same epsilon."""
    chosen_shapes = {name: shape for name, shape in shapes(2).items() if only in name}
    for one in held_out_losses(sizes, chosen_shapes):
        target, is_met = (
            (f"< {one.unigram:.3f}", one.loss < one.unigram) if one.is_private else ("-", None)
        )
        yield Figure("likelihood", one.name, one.loss, one.unigram, target, is_met)


def measure(*, quick: bool, only: str, splits: tuple[int, ...] = (1,)) -> list[Figure]:
    """Measure all parts, or those that are named."""
    torch.set_num_threads(1)
    part, _, rest = only.partition(":")
    sizes = QUICK if quick else LikelihoodSizes(splits=splits)
    sides: dict[str, Callable[[], Iterable[Figure]]] = {
        "steps": lambda: measure_steps(quick=quick),
        "writing": lambda: measure_writing(quick=quick),
        "likelihood": lambda: measure_likelihood(sizes, rest),
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
    parser.add_argument("--only", default="", help="a part; or likelihood:NAME of a generator")
    parser.add_argument("--splits", type=int, default=1, help="of likelihood; 1 takes an hour")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    splits = tuple(range(1, arguments.splits + 1))
    found = measure(quick=arguments.quick, only=arguments.only, splits=splits)
    print(printed(found))
    print("Baselines: plain ms a step; batched ms a text; the unigram's loss in nats a piece")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
