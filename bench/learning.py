"""Does version 3 learn more than version 2 at the same epsilon? Paired worlds, with intervals.

Each world is seeded: people with tastes, ads with factors and appeal, ratings that are partly
missing and partly held out. On the same people both versions train at the same user-level epsilon;
version 2 is given the best of several numbers of rounds and lengths of step, chosen in hindsight.
A form of it that goes beyond the paper, in which each user reports in one round only, is shown
beside it. Then, at epsilon 8, what the clip of version 2 decides. Error and hits are those of
held-out ratings and of the truly best ad. Prints tables and writes every number. It reports; it
does not fail on a missed target.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# `python bench/learning.py` puts bench/ on the path, not its parent.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import aligned
from bench.worker import ROOT

from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.evaluation import hit_rate, item_means, mean_model, rmse
from noisefloor.ads.training.factorisation import AdModel, Ratings, fit_tastes, random_model
from noisefloor.ads.training.rounds import AdTraining
from noisefloor.ads.training.spectral_training import SpectralTraining
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.plotting import student_interval

OUT = ROOT / "bench/results/learning.json"
RIDGE, CLIP, BLOCK, SCORED = 0.1, 0.03, 65_536, 65_536
SEEDS, QUICK_SEEDS = 6, 2

Single = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class World:
    """What people like and what they rate; the first was looked at while tuning, no other."""

    name: str
    users: int
    epsilon: float
    ads: int = 20
    dimension: int = 3
    skew: float = 0.0
    for_liking: float = 0.0
    tuned: bool = False


WORLDS = (
    World("m=20 d=3", 100_000, 2.0, tuned=True),
    World("m=20 d=3", 1_000_000, 1.0, tuned=True),
    World("m=30 d=5", 100_000, 2.0, 30, 5),
    World("m=12 d=2", 100_000, 2.0, 12, 2),
    World("m=20 d=3, rated by rank", 100_000, 2.0, skew=0.7),
    World("m=20 d=3, liked ads rated more", 100_000, 2.0, for_liking=3.0),
    World("m=30 d=5", 1_000_000, 1.0, 30, 5),
    World("m=20 d=3, rated by rank", 1_000_000, 1.0, skew=0.7),
    World("m=20 d=3, liked ads rated more", 1_000_000, 1.0, for_liking=3.0),
)

QUICK_WORLDS = tuple(world for world in WORLDS if world.users == 100_000)


@dataclass(frozen=True, slots=True)
class People:
    """The users of a world: what they kept, what was held out, and what is true."""

    kept: Ratings
    held_out: Ratings
    truth: Ratings


def people_of(world: World, seed: int) -> People:
    """Make the people of a world."""
    draw = SeededSource(seed, "learning", world.name, world.users).generator()
    appeal = draw.normal(0, 0.1, world.ads).astype(np.float32)
    factors = draw.standard_normal((world.ads, world.dimension), dtype=np.float32)
    factors *= np.float32(0.2 / math.sqrt(world.dimension))
    chance = (np.arange(world.ads, dtype=np.float32) + 1) ** -world.skew
    chance *= np.float32(0.3) / chance.mean()
    shape = (world.users, world.ads)
    rated, left_out = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
    rating = np.empty(shape, np.float32)
    truth = np.empty((min(world.users, SCORED), world.ads), np.float32)
    for rows in _blocks(world.users):
        count = rows.stop - rows.start
        taste = draw.standard_normal((count, world.dimension), dtype=np.float32)
        mean = np.float32(0.5) + appeal + taste @ factors.T
        noise = np.float32(0.1) * draw.standard_normal((count, world.ads), dtype=np.float32)
        rating[rows] = np.clip(mean + noise, 0, 1)
        raised = np.exp(world.for_liking * (np.clip(mean, 0, 1) - 0.5))
        rated[rows] = draw.random((count, world.ads), dtype=np.float32) < chance * raised
        left_out[rows] = draw.random((count, world.ads), dtype=np.float32) < 0.2
        seen = slice(rows.start, min(rows.stop, len(truth)))
        truth[seen] = np.clip(mean[: max(0, seen.stop - seen.start)], 0, 1)
    scored = slice(0, len(truth))
    return People(
        Ratings(rated & ~left_out, rating),
        Ratings((rated & left_out)[scored], rating[scored]),
        Ratings(np.ones(truth.shape, np.bool_), truth),
    )


def train(training: AdTraining, kept: Ratings, seed: int) -> AdModel:
    """Train with everybody present and nothing lost."""
    sent = training.start()
    lots = SeededSource(seed, "lots").generator().integers(0, 1 << 32, len(kept), dtype=np.uint32)
    source = SeededSource(seed, "coins")
    for number in range(training.rounds):
        total, n = np.zeros(training.kind(number).cells, dtype=np.int64), 0
        for rows in _blocks(len(kept)):
            chosen = np.flatnonzero(training.reporters(number, lots[rows]))
            some = kept[rows][chosen]
            tastes = np.zeros((len(some), sent.model.dimension), np.float32)
            randomness = source.child(number, rows.start)
            reports = training.report(number, sent, tastes, some, randomness).reports
            kind = training.kind(number)
            total += kind.tally(kind.encode(reports))
            n += len(some)
        sent = training.update(number, sent, total, n)
    return sent.model


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def score(model: AdModel, people: People) -> tuple[float, float]:
    """Return error and hits."""
    tastes = fit_tastes(model, people.kept[: len(people.truth)], RIDGE)
    return rmse(model, tastes, people.held_out), hit_rate(model, tastes, people.truth)


ROUNDS, STEPS = (5, 10, 20), (0.1, 0.3, 1.0)


def second_versions(world: World, *, once: bool) -> dict[str, BitTraining]:
    """Return version 2 with several numbers of rounds and lengths of the server's step."""
    made = {}
    for rounds in ROUNDS:
        rule = BitTraining(
            world.ads, world.dimension, world.epsilon, rounds, clip=CLIP, once=once, ridge=RIDGE
        )
        usual = rule.rate_for(world.users // rounds if once else world.users)
        for scale in STEPS:
            name = f"k={rounds} step x{scale:g}{' once' if once else ''}"
            made[name] = replace(rule, rate=scale * usual)
    return made


@dataclass(frozen=True, slots=True)
class Trial:
    """What one seed of one world gave: error and hits, by way."""

    seed: int
    scores: dict[str, tuple[float, float]]


def trial(world: World, seed: int) -> Trial:
    """Train every way on the same people."""
    people = people_of(world, seed)
    means = mean_model(item_means(people.kept[:SCORED]), world.ads, world.dimension)
    scores = {
        "item means": score(means, people),
        "untrained": score(random_model(world.ads, world.dimension, 0), people),
    }
    ways: dict[str, AdTraining] = {
        "spectral": SpectralTraining(world.ads, world.dimension, world.epsilon, ridge=RIDGE),
        **second_versions(world, once=False),
        **second_versions(world, once=True),
    }
    for name, training in ways.items():
        with new_run():
            scores[name] = score(train(training, people.kept, seed), people)
    return Trial(seed, scores)


@dataclass(frozen=True, slots=True)
class Gap:
    """Version 3 minus one form of version 2, over seeds: mean, low and high end of 95 %."""

    rival: str
    scores: tuple[float, float]
    error: tuple[float, float, float]
    hits: tuple[float, float, float]

    @property
    def is_won(self) -> bool:
        """Whether both intervals exclude 0 on the side of version 3."""
        return self.error[2] < 0 < self.hits[1]


@dataclass(frozen=True, slots=True)
class Row:
    """One world over all seeds."""

    world: World
    spectral: tuple[float, float]
    means: tuple[float, float]
    every_round: Gap
    once: Gap
    trials: tuple[Trial, ...]


def row_of(world: World, seeds: Sequence[int]) -> Row:
    """Compare the ways over seeds; version 2's setting is the best of all seeds together."""
    trials = tuple(trial(world, seed) for seed in seeds)
    return Row(
        world,
        _mean(trials, "spectral"),
        _mean(trials, "item means"),
        _gap(trials, list(second_versions(world, once=False))),
        _gap(trials, list(second_versions(world, once=True))),
        trials,
    )


def _mean(trials: Sequence[Trial], name: str) -> tuple[float, float]:
    error, hits = np.array([one.scores[name] for one in trials]).mean(axis=0)
    return float(error), float(hits)


def _gap(trials: Sequence[Trial], names: Sequence[str]) -> Gap:
    best = min(names, key=lambda name: _mean(trials, name)[0])
    gaps = np.array([np.subtract(one.scores["spectral"], one.scores[best]) for one in trials])
    return Gap(best, _mean(trials, best), interval(gaps[:, 0]), interval(gaps[:, 1]))


def interval(gaps: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean gap and its 95 % interval by Student's law."""
    mean = float(gaps.mean())
    return mean, *student_interval(gaps.tolist())


def printed(rows: Sequence[Row]) -> str:
    """Return the table: two lines a world."""
    header = (
        "world",
        "users",
        "eps",
        "tuned on",
        "version 3",
        "item means",
        "version 2",
        "",
        "error gap (95 %)",
        "hit gap (95 %)",
        "verdict",
    )
    lines = []
    for row in rows:
        for gap in (row.every_round, row.once):
            lines.append(
                (
                    row.world.name,
                    f"{row.world.users:,}",
                    f"{row.world.epsilon:g}",
                    "yes" if row.world.tuned else "no",
                    _pair(row.spectral),
                    _pair(row.means),
                    _pair(gap.scores),
                    gap.rival,
                    "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gap.error),
                    "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gap.hits),
                    "wins" if gap.is_won else "open",
                )
            )
    return aligned(header, lines)


@dataclass(frozen=True, slots=True)
class Clip:
    """Version 2 at one clip, over seeds, against what needs no training."""

    clip: float
    scores: tuple[float, float]
    over_means: tuple[tuple[float, float, float], tuple[float, float, float]]
    over_untrained: tuple[tuple[float, float, float], tuple[float, float, float]]


CLIP_WORLD, CLIPS, CLIP_ROUNDS = World("m=20 d=3", 1_000_000, 8.0), (0.03, 1.0), 20


def clips_of(users: int, seeds: Sequence[int]) -> list[Clip]:
    """Train version 2 at a small clip and at the printed one, on the same people."""
    world = replace(CLIP_WORLD, users=users)
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in seeds:
        people = people_of(world, seed)
        means = mean_model(item_means(people.kept[:SCORED]), world.ads, world.dimension)
        models = {"means": means, "untrained": random_model(world.ads, world.dimension, 0)}
        for clip in CLIPS:
            training = BitTraining(
                world.ads, world.dimension, world.epsilon, CLIP_ROUNDS, clip=clip, ridge=RIDGE
            )
            with new_run():
                models[f"{clip:g}"] = train(training, people.kept, seed)
        for name, model in models.items():
            found.setdefault(name, []).append(score(model, people))

    def over(clip: float, name: str) -> tuple[tuple[float, float, float], ...]:
        gaps = np.subtract(found[f"{clip:g}"], found[name])
        return interval(gaps[:, 0]), interval(gaps[:, 1])

    rows = []
    for clip in CLIPS:
        error, hits = np.mean(found[f"{clip:g}"], axis=0)
        means_gap, untrained_gap = over(clip, "means"), over(clip, "untrained")
        rows.append(Clip(clip, (error, hits), means_gap, untrained_gap))  # type: ignore[arg-type]
    return rows


def printed_clips(rows: Sequence[Clip]) -> str:
    """Return the table: gaps of error and of hits to item means, and to untrained factors."""
    header = ("clip", "error / hits", "to item means", "", "to untrained", "")
    lines = [
        (
            f"{row.clip:g}",
            _pair(row.scores),
            *("{:+.3f} [{:+.3f}, {:+.3f}]".format(*gap) for gap in row.over_means),
            *("{:+.3f} [{:+.3f}, {:+.3f}]".format(*gap) for gap in row.over_untrained),
        )
        for row in rows
    ]
    return aligned(header, lines)


def _pair(scores: tuple[float, float]) -> str:
    return f"{scores[0]:.3f} / {scores[1]:.3f}"


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small worlds and few seeds")
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    seeds = range(900, 900 + (arguments.seeds or (QUICK_SEEDS if arguments.quick else SEEDS)))
    rows = []
    for world in QUICK_WORLDS if arguments.quick else WORLDS:
        if arguments.only in f"{world.name} {world.users}":
            start = time.process_time()
            rows.append(row_of(world, seeds))
            took = time.process_time() - start
            print(f"{world.name}, {world.users:,} users: {took:.0f} CPU-s", file=sys.stderr)
    print("Error / hits on held-out ratings, mean over seeds; gaps are version 3 minus version 2")
    print(printed(rows))
    clips = clips_of(100_000 if arguments.quick else CLIP_WORLD.users, seeds)
    print(f"\nVersion 2 at epsilon {CLIP_WORLD.epsilon:g}, {CLIP_ROUNDS} rounds, by its clip")
    print(printed_clips(clips))
    results = {"versions": [asdict(row) for row in rows], "clips": [asdict(row) for row in clips]}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
