"""Groups of parameters, by their names; torch-free, part of a plan.

A group's name is the start of parameter names, in whole parts: ``encoder`` takes
``encoder.0.weight``, and not ``encoders.weight``. With ``*.`` before it, it is their end:
``*.bias`` takes every bias. The empty name takes what is left. Where several groups fit, the
longest name does. The factors of a carried matrix are ``NAME.left`` and ``NAME.right``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter

_SMALLEST, _LARGEST = 1e-4, 1e4
"""Of scales and rates. Squared norms are divided by squared scales, in single floats."""


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """How the gradients of some parameters are weighed against those of others.

    Norms of gradients differ between heads, biases and factors, so that one bound for all of them
    clips away the small ones. Gradients are divided by the scale before their joint norm is taken
    and before they are clipped; the noisy sum is multiplied by it. So the sensitivity stays what
    the clipping says, and the noise in this group is ``scale`` times that of a group of scale 1.

    Attributes:
        name: Of the group, as the module says.
        scale: What its gradients are divided by; public, and never measured on private examples.
        rate: Its learning rate, as a multiple of the plan's: post-processing.
    """

    name: str
    scale: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "rate"):
            value = check_finite(getattr(self, name), name)
            if not _SMALLEST <= value <= _LARGEST:
                raise BadParameter(name, value, f"in [{_SMALLEST:g}, {_LARGEST:g}]")


def find_group(parameter: str, names: Sequence[str]) -> int | None:
    """Return the place of the group that a parameter belongs to; None if there is none."""
    fitting = [name for name in names if _is_in(parameter, name)]
    return names.index(max(fitting, key=len)) if fitting else None


def check_names(field: str, names: Sequence[str]) -> None:
    """Refuse a name that stands twice: only the first would be used."""
    if len(set(names)) < len(names):
        raise BadParameter(field, tuple(names), "to name each group once")


def _is_in(parameter: str, group: str) -> bool:
    if group.startswith("*."):
        return parameter == group[2:] or parameter.endswith(group[1:])
    return group in ("", parameter) or parameter.startswith(f"{group}.")
