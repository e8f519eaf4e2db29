"""The resolved scenario as canonical text, and its hash.

The text names every key, defaults included, in the order of the model; mappings with free keys
(pipelines, sweep) are sorted. So it depends on what the scenario says and on nothing else: not on
the order of keys, on comments, or on a library's way of writing YAML. Reading it gives the same
scenario back; the hash is the SHA-256 of its UTF-8 bytes, so ``sha256sum`` can check it.
"""

import hashlib
from collections.abc import Mapping

from pydantic import BaseModel

from noisefloor_sim.scenario.model import Scenario
from noisefloor_sim.scenario.scalars import scalar_text


def plain(value: object) -> object:
    """Return a section, or any value in one, as dictionaries, tuples and scalars.

    Raises:
        TypeError: A block holds something that no scenario file can hold.
    """
    if isinstance(value, BaseModel):
        fields = {name: plain(getattr(value, name)) for name in type(value).model_fields}
        return fields | {name: plain(it) for name, it in sorted((value.model_extra or {}).items())}
    if isinstance(value, Mapping):
        return {str(name): plain(it) for name, it in sorted(value.items())}
    if isinstance(value, list | tuple):
        return tuple(plain(it) for it in value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"Expected plain data, found {type(value).__name__}.")


def resolved(scenario: Scenario) -> dict[str, object]:
    """Return the scenario as plain data, defaults included.

    The format is left out: how a scenario is written is no part of what it says, and runs and
    their points are named by the hash of the rest. So are an empty list of findings and a load
    that is not there: a scenario without any keeps the hash that it had before they existed.
    """
    data = plain(scenario)
    assert isinstance(data, dict)  # noqa: S101  narrows a type
    left_out = {"format"} | {name for name in ("findings", "load") if not data[name]}
    return {name: value for name, value in data.items() if name not in left_out}


def scenario_text(scenario: Scenario) -> str:
    """Write the scenario as YAML that reads back to the same scenario."""
    return "".join(f"{line}\n" for line in _block(resolved(scenario), ""))


def scenario_hash(scenario: Scenario) -> str:
    """Return the SHA-256 of the scenario's text, in hexadecimal."""
    return hashlib.sha256(scenario_text(scenario).encode()).hexdigest()


def _block(data: Mapping[str, object], indent: str) -> list[str]:
    """Write mappings a line a key and lists a line an item; what lists hold goes on that line."""
    lines: list[str] = []
    for name, value in data.items():
        head = f"{indent}{scalar_text(name)}:"
        if isinstance(value, dict) and value:
            lines += [head, *_block(value, indent + "  ")]
        elif isinstance(value, tuple) and any(isinstance(it, dict | tuple) for it in value):
            lines += [head, *(f"{indent}  - {_flow(it)}" for it in value)]
        else:
            lines.append(f"{head} {_flow(value)}")
    return lines


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{scalar_text(key)}: {_flow(it)}" for key, it in value.items()) + "}"
        )
    if isinstance(value, tuple):
        return "[" + ", ".join(_flow(it) for it in value) + "]"
    assert value is None or isinstance(value, str | int | float)  # noqa: S101  narrows a type
    return scalar_text(value)
