"""A scenario into points: every combination of the swept values, every replicate.

Points come in one order, whatever the order of keys in the file: the keys sorted, the last one
changing fastest, replicates fastest of all. Each point is a whole scenario of its own, checked
like one from a file, with no sweep in it.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from noisefloor_sim.scenario.blocks import Blocks
from noisefloor_sim.scenario.document import (
    Document,
    Flaw,
    Path,
    dotted,
    get,
    has,
    put,
    unknown_key,
)
from noisefloor_sim.scenario.error_text import show
from noisefloor_sim.scenario.hashing import resolved, scenario_hash
from noisefloor_sim.scenario.model import LARGEST_SEED, MOST_POINTS, Scenario
from noisefloor_sim.scenario.validation import check, needs_ads

_FIXED = ("name", "question", "expectation", "gates", "findings", "sweep")
_ENOUGH_FLAWS = 50
_LONGEST_SLUG = 48

_Choices = tuple[tuple[str, int, object], ...]  # key, place in its list, value


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One combination of swept values, with one seed.

    Attributes:
        id: Such as ``p003-epsilon-0.5-seed-8-1f2e3d4c``: safe as a file name, unique in the
            sweep, the same whenever the scenario is the same.
        index: Its place in the sweep, from 0.
        settings: Swept keys with the value each has here; ``seed`` too if there are replicates.
        scenario: The scenario of this point, without a sweep.
    """

    id: str
    index: int
    settings: tuple[tuple[str, object], ...]
    scenario: Scenario

    @property
    def values(self) -> dict[str, object]:
        """Swept keys with what the scenario holds there: 1 is 1.0 where fractions may stand."""
        data = resolved(self.scenario)
        return {key: get(data, tuple(key.split("."))) for key, _ in self.settings}


def expand(
    scenario: Scenario, blocks: Blocks, document: Document | None = None
) -> tuple[SweepPoint, ...]:
    """Return the points of a scenario; one, if nothing is swept.

    Args:
        scenario: With or without a sweep.
        blocks: The pipelines' models, as they were given to ``load``.
        document: Where the scenario came from, for the lines in errors.

    Raises:
        BadScenario: A key does not exist, a value is bad where it belongs, two points are the
            same, or there are too many.
    """
    document = document or Document(f"scenario {scenario.name}", {}, {})
    base = {key: value for key, value in resolved(scenario).items() if key != "sweep"}
    flaws = list(_axis_flaws(scenario, base))
    points = {} if flaws else _tried(scenario, base, blocks, flaws)
    if flaws:
        raise document.error(flaws)
    width = max(3, len(str(len(points) - 1)))
    return tuple(
        SweepPoint(
            f"p{index:0{width}}-{_slug(choices)}{digest[:8]}",
            index,
            tuple((key, value) for key, _, value in choices),
            found,
        )
        for index, (digest, (choices, found)) in enumerate(points.items())
    )


def _tried(
    scenario: Scenario, base: Mapping[str, object], blocks: Blocks, flaws: list[Flaw]
) -> dict[str, tuple[_Choices, Scenario]]:
    """Return the points by their hash; what is wrong with them is added to the flaws."""
    points: dict[str, tuple[_Choices, Scenario]] = {}
    for choices in _combinations(scenario):
        found, wrong = _at(choices, base, blocks)
        flaws += wrong
        if found is not None:
            digest = scenario_hash(found)
            if digest in points:
                flaws.append(_repeated(choices, points[digest][0]))
            points[digest] = (choices, found)
        if len(flaws) > _ENOUGH_FLAWS:
            break
    return points


def _axis_flaws(scenario: Scenario, base: Mapping[str, object]) -> Iterator[Flaw]:
    """Find what is wrong with the sweep before any value is tried."""
    keys = [key for key, _ in scenario.sweep.axes]
    sweepable = {key: value for key, value in base.items() if key not in _FIXED}
    known = [key for key in keys if has(sweepable, tuple(key.split(".")))]
    for key in sorted(set(keys) - set(known))[:_ENOUGH_FLAWS]:
        yield Flaw(("sweep", key), unknown_key(key, sweepable))
    for inner, outer in itertools.permutations(known, 2):
        if inner.startswith(f"{outer}."):
            yield Flaw(("sweep", inner), f"Expected keys apart, but {outer} is swept as well.")
    yield from _number_flaws(scenario)


def _number_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Find what is wrong with the number of points and their seeds."""
    axes, seeds = scenario.sweep.axes, scenario.sweep.seeds
    if seeds > 1 and any(key == "seed" for key, _ in axes):
        yield Flaw(("sweep", "seed"), "Expected either seed or seeds, found both.")
    if scenario.seed + seeds - 1 > LARGEST_SEED:
        yield Flaw(("sweep", "seeds"), f"Expected seeds up to {LARGEST_SEED}, got more.")
    number = seeds * math.prod(len(values) for _, values in axes)
    if number > MOST_POINTS:
        yield Flaw(("sweep",), f"Expected at most {MOST_POINTS} points, got {number}.")


def _combinations(scenario: Scenario) -> Iterator[_Choices]:
    axes = list(scenario.sweep.axes)
    if scenario.sweep.seeds > 1:
        replicates = tuple(scenario.seed + index for index in range(scenario.sweep.seeds))
        axes.append(("seed", replicates))
    choices = ([(key, place, it) for place, it in enumerate(values)] for key, values in axes)
    yield from itertools.product(*choices)


def _at(
    choices: _Choices, base: Mapping[str, object], blocks: Blocks
) -> tuple[Scenario | None, list[Flaw]]:
    """Return the scenario at a point, or None and what is wrong, by the sweep's keys."""
    data: object = base
    for key, _, value in choices:
        data = put(data, tuple(key.split(".")), value)
    is_swept = any(key == "pipelines" for key, _, _ in choices)
    if is_swept and isinstance(data, Mapping) and not needs_ads(data, blocks):
        data = {**data, "behaviour": None}  # it is meant for the points that have ads
    scenario, flaws = check(data, blocks)
    return scenario, [_in_sweep(flaw, choices) for flaw in flaws]


def _in_sweep(flaw: Flaw, choices: _Choices) -> Flaw:
    for key, place, _ in choices:
        axis: Path = tuple(key.split("."))
        if flaw.path[: len(axis)] == axis:
            return Flaw(("sweep", key, place, *flaw.path[len(axis) :]), flaw.rule)
    return Flaw(("sweep",), f"At {_choices_text(choices)}: {dotted(flaw.path)}: {flaw.rule}")


def _repeated(choices: _Choices, before: _Choices) -> Flaw:
    """Name the values by which two equal points differ."""
    pairs = zip(choices, before, strict=True)
    axis, place, value = next(new for new, old in pairs if new[1] != old[1])
    return Flaw(("sweep", axis, place), f"Expected values that differ, got {show(value)} again.")


def _choices_text(choices: _Choices) -> str:
    return ", ".join(f"{key}={show(value)}" for key, _, value in choices)


def _slug(choices: _Choices) -> str:
    """Write the choices with letters that every file system takes; empty if there are none."""
    words = "-".join(f"{key.rpartition('.')[2]}-{_word(value)}" for key, _, value in choices)
    slug = re.sub(r"[^a-z0-9.]+", "-", words.lower())[:_LONGEST_SLUG].strip("-.")
    return f"{slug}-" if slug else ""


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else show(value)
