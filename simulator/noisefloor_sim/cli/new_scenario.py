"""What ``noisefloor new`` writes: a scenario with comments, from the schema or a shipped one."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from noisefloor.errors import BadParameter, BadScenario, Fault
from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.scenario import SCENARIO_FORMAT, loads, schema_text, shipped_scenario

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_WIDTH = 99

Json = Mapping[str, Any]  # what json reads

# What newcomers change, in the order of the file; small enough to run in seconds.
_VALUES: dict[str, Any] = {
    "format": SCENARIO_FORMAT,
    "name": "",
    "question": "What does the epsilon of click statistics protect?",
    "expectation": "The corrected variant keeps its claim; its error falls as epsilon grows.",
    "seed": 1,
    "days": 3,
    "variant": "corrected",
    "population": {"users": 2000, "churn_per_day": 0.0},
    "behaviour": {"ads": 20, "click_base_rate": 0.02},
    "network": {"loss": 0.0},
    "threat": {"linked": True},
    "budget": 1000.0,
    "pipelines": {"clicks": {"epsilon": 1.0, "form": "one-click", "canaries": 4000}},
    "sweep": {"seeds": 1, "pipelines.clicks.epsilon": [0.5, 1.0, 2.0]},
    "gates": ["claims.clicks.* holds where variant == corrected"],
    "findings": [
        {
            "sentence": "What is proved, {claims.clicks.*.proved}, is within what is claimed.",
            "when": "claims.clicks.*.proved <= claimed",
        }
    ],
}


def new(name: str, *, source: str | None) -> int:
    """Write ``NAME.yaml`` here, and return the exit code.

    Args:
        name: Of the scenario and its file.
        source: The shipped scenario to copy; the most common keys with their meaning without it.
    """
    if not _NAME.fullmatch(name):
        rule = "up to 64 small letters, digits and hyphens; the file is NAME.yaml"
        raise BadParameter("name", name, rule)
    file = Path(f"{name}.yaml")
    text = commented(name) if source is None else copied(name, source)
    loads(text, BLOCKS, str(file))  # what is written is valid, or it is not written
    _write(file, text)
    print(f"{file}: written. Check it: noisefloor validate {file}. Run it: noisefloor run {file}.")
    return 0


def commented(name: str) -> str:
    """Return a scenario with the most common keys, each below its meaning and default."""
    head = (
        "# A noisefloor scenario: one question, the world it is asked of, and what answers it.\n"
        f"# Check it: noisefloor validate {name}.yaml. Run it: noisefloor run {name}.yaml.\n"
        "# These are the keys that are changed most often; `noisefloor schema` has all of them.\n"
    )
    schema: Json = json.loads(schema_text(BLOCKS))
    return head + "\n".join(_lines(_VALUES | {"name": name}, schema, schema, "")) + "\n"


def copied(name: str, source: str) -> str:
    """Return a shipped scenario under another name, with another seed, and all its comments."""
    text = shipped_scenario(source).read_text(encoding="utf-8")
    seed = int(re.findall(r"^seed: ([0-9]+)$", text, re.MULTILINE)[0]) + 1
    changes = {
        r"^# yaml-language-server: .*$": f"# Copied from the shipped scenario {source}.",
        r"^name: .*$": f"name: {json.dumps(name)}",
        r"^(question: .*)$": rf"\1 (From {source}.)",
        r"^seed: .*$": f"seed: {seed}",
        r"^# Seed: .*$": f"# Seed: {seed}",
    }
    for pattern, line in changes.items():
        text = re.sub(pattern, line, text, count=1, flags=re.MULTILINE)
    return text


def _lines(values: Json, section: Json, schema: Json, indent: str) -> Iterator[str]:
    """Write each key of a section below a comment on it."""
    properties = section.get("properties", {})
    for key, value in values.items():
        found = properties.get(key, {})
        if not indent:
            yield ""
        yield from _comment(_meaning(found), indent)
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(value, _section(found, schema), schema, indent + "  ")
        elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            yield f"{indent}{key}:"
            yield from _items(value, indent)
        else:
            yield f"{indent}{key}: {json.dumps(value)}"


def _items(values: list[Json], indent: str) -> Iterator[str]:
    """Write a list of sections, a line for each of their keys."""
    for value in values:
        for place, (key, one) in enumerate(value.items()):
            yield f"{indent}  {'  ' if place else '- '}{key}: {json.dumps(one)}"


def _section(found: Json, schema: Json) -> Json:
    """Follow a key to the model of its section, which may also be left out."""
    options = [found, *found.get("anyOf", ())]
    named = [one["$ref"].rpartition("/")[2] for one in options if "$ref" in one]
    section: Json = schema["$defs"][named[0]] if named else found
    return section


def _meaning(found: Json) -> str:
    """Return a key's description, what it may be, and its default."""
    parts = [found.get("description", "")]
    if "enum" in found:
        parts.append(f"One of {', '.join(map(str, found['enum']))}.")
    if isinstance(found.get("default"), str | int | float):
        parts.append(f"Default: {json.dumps(found['default'])}.")
    return " ".join(part for part in parts if part)


def _comment(text: str, indent: str) -> list[str]:
    lead = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=lead, subsequent_indent=lead)


def _write(file: Path, text: str) -> None:
    """Write a file that is not there yet."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        rule = "Exists already and is left as it is. Choose another name, or remove it."
        raise BadScenario(str(file), [Fault("", rule)]) from None
    except OSError as error:
        raise BadScenario(
            str(file), [Fault("", f"Cannot be written: {error.strerror}.")]
        ) from None
