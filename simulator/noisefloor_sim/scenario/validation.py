"""Plain data into a scenario: every rule is tried, and every rule that is broken is listed."""

import itertools
from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from noisefloor_sim.scenario.blocks import AttackBlock, Blocks, PipelineBlock, attack_models
from noisefloor_sim.scenario.document import Document, Flaw
from noisefloor_sim.scenario.faults import flaws_of, unknown
from noisefloor_sim.scenario.gates import ClaimGate, parse_gate
from noisefloor_sim.scenario.hashing import resolved
from noisefloor_sim.scenario.keys import Path, has, split, unknown_key
from noisefloor_sim.scenario.model import MOST_ATTACKS, Scenario
from noisefloor_sim.scenario.showing import show

MOST_CELLS = 1 << 27
"""Users of a cohort times ads: what a cohort may hold at once."""

_ENOUGH = 100
"""Pipelines that are looked at; there are not that many."""

_Model = TypeVar("_Model", bound=BaseModel)
_Result = tuple[Scenario | None, list[Flaw]]


def validated(document: Document, blocks: Blocks) -> Scenario:
    """Return the scenario that a document holds, its sweep not yet expanded.

    Raises:
        BadScenario: It breaks rules; all of them are listed.
    """
    scenario, flaws = check(document.data, blocks)
    if scenario is None:
        raise document.error(flaws)
    return scenario


def check(data: object, blocks: Blocks) -> _Result:
    """Return the scenario, or None and what is wrong with the data."""
    if not isinstance(data, Mapping):
        return None, [Flaw((), f"Expected a mapping of keys, got {show(data)}.")]
    flaws: list[Flaw] = []
    given = dict(data)
    if isinstance(data.get("pipelines"), Mapping):
        given["pipelines"] = _pipelines(data["pipelines"], blocks, flaws)
    if isinstance(data.get("attacks"), tuple):
        given["attacks"] = _attacks(data["attacks"], given.get("pipelines"), blocks, flaws)
    scenario = _built(Scenario, given, (), flaws)
    if scenario is None or flaws:
        return None, flaws
    flaws += [*_cell_flaws(scenario), *_gate_flaws(scenario)]
    return (None if flaws else scenario), flaws


def _pipelines(
    given: Mapping[str, object], blocks: Blocks, flaws: list[Flaw]
) -> dict[str, PipelineBlock]:
    """Build each pipeline's block; an empty one stands in for what is wrong."""
    built: dict[str, PipelineBlock] = {}
    for name, value in itertools.islice(given.items(), _ENOUGH):
        path: Path = ("pipelines", name)
        if name in blocks:
            built[name] = _built(blocks[name], value, path, flaws) or PipelineBlock()
        else:
            built[name] = PipelineBlock()
            flaws.append(Flaw(path, unknown("pipeline", name, sorted(blocks))))
    return built


def _attacks(
    given: tuple[object, ...], pipelines: object, blocks: Blocks, flaws: list[Flaw]
) -> tuple[AttackBlock, ...]:
    """Build each attack's block; a name alone stands for a block of defaults."""
    if len(given) > MOST_ATTACKS:
        rule = f"Expected at most {MOST_ATTACKS} values, got {show(given)}."
        flaws.append(Flaw(("attacks",), rule))
        return ()
    models = attack_models(pipelines if isinstance(pipelines, dict) else (), blocks)
    built: dict[str, AttackBlock] = {}
    for index, value in enumerate(given):
        path: Path = ("attacks", index)
        block = value if isinstance(value, Mapping) else {"name": value}
        name = block.get("name")
        if not isinstance(name, str):
            rule = f"Expected an attack's name, or a mapping with one, got {show(value)}."
            flaws.append(Flaw(path, rule))
        elif name not in models:
            flaws.append(Flaw(path, unknown("attack", name, list(models))))
        elif name in built:
            flaws.append(Flaw(path, f"Expected each attack once, got {show(name)} again."))
        else:
            built[name] = _built(models[name], block, path, flaws) or AttackBlock(name=name)
    return tuple(built.values())


def _built(model: type[_Model], data: object, base: Path, flaws: list[Flaw]) -> _Model | None:
    """Return the model, or None after adding what is wrong to the flaws."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        flaws += flaws_of(error, model, data, base=base)
        return None


def _cell_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Keep a cohort's table of users and ads within memory."""
    cohort, ads = scenario.population.cohort, scenario.behaviour.ads
    if cohort * ads > MOST_CELLS:
        rule = f"Expected at most {MOST_CELLS} cells in a cohort, got {cohort} users x {ads} ads."
        yield Flaw(("population", "cohort"), f"{rule} Make the cohort smaller.")


def _gate_flaws(scenario: Scenario) -> Iterator[Flaw]:
    """Find gates on keys or pipelines that the scenario does not have."""
    if not scenario.gates:
        return
    data = resolved(scenario)
    for index, text in enumerate(scenario.gates):
        gate = parse_gate(text)
        for condition in gate.filters:
            if not has(data, split(condition.key)):
                yield Flaw(("gates", index), unknown_key(condition.key, data))
        if isinstance(gate, ClaimGate) and gate.selector[0] not in ("*", *scenario.pipelines):
            names = sorted(scenario.pipelines)
            yield Flaw(("gates", index), unknown("pipeline", gate.selector[0], names))
