"""Every import contract holds, and fails on a breach planted into the graph of imports.

The breaches follow from the contracts' own settings, so a new contract is tested as well: for each
layer an import from below, for each pair side by side an import across, for each forbidden module
an import of it, and for an exhaustive container a module that no layer names.
"""

import itertools
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import grimp
import pytest
from importlinter.application.use_cases import read_user_options
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import Contract

from house import ROOT

Settings = dict[str, Any]  # Any: values as the configuration file has them
Breach = tuple[str, str | None]

TYPES: dict[str, Callable[..., Contract]] = {
    "layers": LayersContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
}
configure()  # Contracts cannot be checked before.
LINTER = read_user_options(str(ROOT / "pyproject.toml"))
CONTRACTS: list[Settings] = LINTER.contracts_options
by_name = pytest.mark.parametrize("settings", CONTRACTS, ids=[one["name"] for one in CONTRACTS])


def breaches_of_layers(settings: Settings) -> Iterator[Breach]:
    """Yield an import upwards for each two layers that meet, and one for each two neighbours."""
    for container in settings.get("containers", [None]):
        prefix = "" if container is None else f"{container}."
        layers = [
            [prefix + name.strip() for name in layer.split("|")] for layer in settings["layers"]
        ]
        for upper, lower in itertools.pairwise(layers):
            yield from itertools.product(lower, upper)
        for layer in layers:
            yield from itertools.permutations(layer, 2)
        if settings.get("exhaustive") == "True":
            yield f"{container}.planted", None


def breaches_of(settings: Settings) -> list[Breach]:
    """Return pairs (importer, imported) that a contract must refuse; None for a lone module."""
    if settings["type"] == "layers":
        return list(breaches_of_layers(settings))
    if settings["type"] == "independence":
        return list(itertools.permutations(settings["modules"], 2))
    return list(itertools.product(settings["source_modules"], settings["forbidden_modules"]))


def is_kept(settings: Settings, graph: grimp.ImportGraph) -> bool:
    """Return whether a contract accepts a graph of imports."""
    options = {name: value for name, value in settings.items() if name not in {"name", "type"}}
    contract = TYPES[settings["type"]](settings["name"], LINTER.session_options, options)
    return bool(contract.check(deepcopy(graph), verbose=False).kept)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the imports of the source roots."""
    return grimp.build_graph(*LINTER.session_options["root_packages"], cache_dir=None)


@by_name
def test_the_tree_keeps_the_contract(settings: Settings, graph: grimp.ImportGraph) -> None:
    assert is_kept(settings, graph)


@by_name
def test_the_contract_fails_on_every_planted_breach(
    settings: Settings, graph: grimp.ImportGraph
) -> None:
    planted = breaches_of(settings)
    assert planted
    for importer, imported in planted:
        changed = deepcopy(graph)
        if imported is None:
            changed.add_module(importer)
        else:
            changed.add_import(importer=importer, imported=imported)
        assert not is_kept(settings, changed), f"{importer} may import {imported}"
