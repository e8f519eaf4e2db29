"""How much one example may move a sum of gradients; torch-free, part of a plan.

Each kind knows its sensitivity: the most by which the sum of clipped gradients moves, in L2, when
one example is ADDED OR REMOVED. Substituting one example for another moves it by twice as much.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter


class SingleBound:
    """What kinds of clipping share that have one bound for the whole gradient."""

    __slots__ = ()
    bound: float

    @property
    def sensitivity(self) -> float:
        """The bound: no gradient is longer once it is scaled."""
        return float(self.bound)

    @property
    def bounds(self) -> tuple[float, ...]:
        """One group, of everything."""
        return (float(self.bound),)

    def group_of(self, layer: str) -> int:
        """Return the place of a layer's group: there is but one."""
        return 0


@dataclass(frozen=True, slots=True)
class Flat(SingleBound):
    """Scale each example's whole gradient g by min(1, bound / ||g||).

    Attributes:
        bound: Of the L2 norm over all trainable parameters together.
    """

    bound: float = 1.0

    def __post_init__(self) -> None:
        _check_bound(self.bound, "bound")


@dataclass(frozen=True, slots=True)
class Automatic(SingleBound):
    """Scale each example's gradient g by bound / (||g|| + stability), whatever its size.

    What comes out is shorter than the bound, since ||g|| / (||g|| + stability) is below one.

    Small gradients are scaled up, so that no bound has to be searched for (Bu, Wang, Zha,
    Karypis 2022, arXiv 2206.07136).

    Attributes:
        bound: What a large gradient is scaled to; with Adam it cancels out.
        stability: Keeps gradients that vanish from being blown up.
    """

    bound: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        _check_bound(self.bound, "bound")
        _check_bound(self.stability, "stability")


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Clip groups of layers apart, each to a bound of its own.

    A layer belongs to the group with the longest name that its own starts with, in whole parts:
    ``encoder.0`` is in ``encoder``, ``encoders`` is not. The empty name takes what is left.

    Attributes:
        groups: Names and bounds.
    """

    groups: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        if not self.groups:
            raise BadParameter("groups", self.groups, "to hold at least one group")
        for name, bound in self.groups:
            _check_bound(bound, f"groups[{name!r}]")
        if len({name for name, _ in self.groups}) < len(self.groups):
            raise BadParameter("groups", self.groups, "to name each group once")

    @classmethod
    def of(cls, groups: Mapping[str, float]) -> "PerGroup":
        """Make it from a mapping of names to bounds."""
        return cls(tuple(groups.items()))

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the squared bounds: one example may reach all of them at once."""
        return math.hypot(*self.bounds)

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bound of each group."""
        return tuple(float(bound) for _, bound in self.groups)

    def group_of(self, layer: str) -> int:
        """Return the place of a layer's group."""
        fitting = [name for name, _ in self.groups if _is_within(layer, name)]
        if not fitting:
            raise BadParameter("groups", self.bounds, f"to have one for the layer {layer!r}")
        return [name for name, _ in self.groups].index(max(fitting, key=len))


Clipping: TypeAlias = Flat | Automatic | PerGroup


def clipping_as_json(clipping: Clipping) -> dict[str, Any]:  # Any: JSON
    """Write a kind of clipping for a checkpoint or a card."""
    if isinstance(clipping, PerGroup):
        return {"kind": "per-group", "groups": [list(group) for group in clipping.groups]}
    if isinstance(clipping, Automatic):
        return {
            "kind": "automatic",
            "bound": float(clipping.bound),
            "stability": float(clipping.stability),
        }
    return {"kind": "flat", "bound": float(clipping.bound)}


def clipping_from_json(said: Mapping[str, Any]) -> Clipping:  # Any: JSON
    """Read what ``clipping_as_json`` wrote."""
    if said["kind"] == "per-group":
        return PerGroup(tuple((name, bound) for name, bound in said["groups"]))
    if said["kind"] == "automatic":
        return Automatic(said["bound"], said["stability"])
    return Flat(said["bound"])


def _is_within(layer: str, group: str) -> bool:
    return group in ("", layer) or layer.startswith(f"{group}.")


def _check_bound(value: float, name: str) -> None:
    # Squares of bounds and of norms near them have to be float32 numbers.
    if not 1e-12 <= check_finite(value, name) <= 1e12:
        raise BadParameter(name, value, "in [1e-12, 1e+12]")
