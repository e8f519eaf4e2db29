"""The JSON Schema of scenarios, for editors that complete and check YAML as it is written.

It comes from the models, with titles and descriptions. A schema cannot say everything: rules
between keys, gates and swept values are checked by ``noisefloor validate`` only.
"""

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from noisefloor_sim.scenario.blocks import Blocks, PipelineBlock, attack_names
from noisefloor_sim.scenario.model import Scenario

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_Schema = dict[str, Any]  # JSON


def schema(blocks: Blocks) -> _Schema:
    """Return the JSON Schema of a scenario with these pipelines."""
    models: list[type[BaseModel]] = [Scenario, *(blocks[name] for name in sorted(blocks))]
    references, shared = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        title="noisefloor scenario",
    )
    definitions: _Schema = shared["$defs"]
    if PipelineBlock not in models:  # the blocks that it stands for are put in below
        definitions.pop(PipelineBlock.__name__, None)
    root = definitions.pop(references[Scenario, "validation"]["$ref"].rpartition("/")[2])
    properties = root["properties"]
    properties["pipelines"] |= {
        "additionalProperties": False,
        "properties": {name: references[blocks[name], "validation"] for name in sorted(blocks)},
    }
    names = attack_names(blocks, blocks)
    properties["attacks"] |= {"uniqueItems": True, "items": {"enum": names} if names else False}
    return {"$schema": _DIALECT, **root, "title": shared["title"], "$defs": definitions}


def schema_text(blocks: Blocks) -> str:
    """Write the JSON Schema: the same models, the same text."""
    return json.dumps(schema(blocks), indent=2, ensure_ascii=False) + "\n"
