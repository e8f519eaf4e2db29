"""Numbers of a service, read from the text form of Prometheus."""

import re

_LINE = re.compile(r"noisefloor_([a-z_]+)(?:\{[^}]*\})? ([0-9.eE+-]+)")


def read(text: str) -> dict[str, float]:
    """Return every number by its name without the prefix, summed over its labels."""
    found: dict[str, float] = {}
    for name, value in _LINE.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found
