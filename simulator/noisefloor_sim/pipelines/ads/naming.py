"""Errors in the words of a scenario: which of its keys does not fit the others."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from noisefloor.errors import BadParameter

SHARED = {"ads": "behaviour.ads", "size": "behaviour.ads"}
"""What the platform calls a key that lies outside the pipeline's settings."""


@contextmanager
def named(section: str, keys: Mapping[str, str]) -> Iterator[None]:
    """Let errors of the platform name keys of the scenario.

    Args:
        section: The section that the parameters stand in, such as ``pipelines.ads.training``.
        keys: Parameters whose key has another name there.
    """
    try:
        yield
    except BadParameter as error:
        name = SHARED.get(error.name) or f"{section}.{keys.get(error.name, error.name)}"
        raise BadParameter(name, error.value, f"{error.rule} (in {section})") from None
