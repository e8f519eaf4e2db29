"""The one way from a file to a scenario: read, override, validate, try every point."""

import os
from collections.abc import Iterable

from noisefloor_sim.scenario.blocks import Blocks
from noisefloor_sim.scenario.document import Document
from noisefloor_sim.scenario.model import Scenario
from noisefloor_sim.scenario.overrides import override
from noisefloor_sim.scenario.reading import read_file, read_text
from noisefloor_sim.scenario.sweep import expand
from noisefloor_sim.scenario.validation import validated


def load(path: str | os.PathLike[str], blocks: Blocks, settings: Iterable[str] = ()) -> Scenario:
    """Read a scenario file.

    Args:
        path: Of the file.
        blocks: From a pipeline's name to the model of its block.
        settings: Values from the command line, ``key=value``, which win over the file.

    Raises:
        BadScenario: With file, key, rule and line; everything that is wrong is listed.
    """
    return _checked(override(read_file(path), settings), blocks)


def loads(text: str, blocks: Blocks, file: str = "scenario") -> Scenario:
    """Read a scenario from a text; ``file`` is what errors call it."""
    return _checked(read_text(text, file), blocks)


def _checked(document: Document, blocks: Blocks) -> Scenario:
    """Validate, and expand once, so that no point of a sweep can fail later."""
    scenario = validated(document, blocks)
    expand(scenario, blocks, document)
    return scenario
