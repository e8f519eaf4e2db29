"""How much one example may move a sum of gradients; torch-free, part of a plan.

Each kind knows its sensitivity: the most by which the sum of clipped gradients moves, in L2, when
one example is ADDED OR REMOVED. Substituting one example for another moves it by twice as much.
It also states what the noise multiplier is over (``noised_bound``): the sensitivity, but for
``EachAtFullBound``, which adds less noise than its sensitivity needs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.publication.private_sgd.parameter_groups import check_names, find_group


class SingleBound:
    """What kinds of clipping share that have one bound for the whole gradient."""

    __slots__ = ()
    bound: float

    @property
    def sensitivity(self) -> float:
        """The bound: no gradient is longer once it is scaled."""
        return float(self.bound)

    @property
    def noised_bound(self) -> float:
        """What the noise multiplier is over: the sensitivity."""
        return self.sensitivity

    @property
    def bounds(self) -> tuple[float, ...]:
        """One group, of everything."""
        return (float(self.bound),)

    def group_of(self, parameter: str) -> int:
        """Return the place of a parameter's group: there is but one."""
        return 0


class NamedGroups(ABC):
    """What kinds of clipping share that clip groups of parameters apart."""

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, ...]:
        """The bound of each group."""

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the squared bounds: one example may reach all of them at once."""
        return math.hypot(*self.bounds)

    @property
    def noised_bound(self) -> float:
        """What the noise multiplier is over: the sensitivity."""
        return self.sensitivity

    def group_of(self, parameter: str) -> int:
        """Return the place of a parameter's group."""
        place = find_group(parameter, self.names)
        if place is None:
            raise BadParameter("groups", self.bounds, f"to have one for {parameter!r}")
        return place


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
class PerGroup(NamedGroups):
    """Clip groups of parameters apart, each to a bound of its own.

    Attributes:
        groups: Names, as ``parameter_groups`` reads them, and bounds.
    """

    groups: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        if not self.groups:
            raise BadParameter("groups", self.groups, "to hold at least one group")
        for name, bound in self.groups:
            _check_bound(bound, f"groups[{name!r}]")
        check_names("groups", self.names)

    @classmethod
    def of(cls, groups: Mapping[str, float]) -> "PerGroup":
        """Make it from a mapping of names to bounds."""
        return cls(tuple(groups.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(name for name, _ in self.groups)

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bound of each group."""
        return tuple(float(bound) for _, bound in self.groups)


class _OneBoundEach(NamedGroups):
    """What kinds share that have one bound and a list of groups."""

    __slots__ = ()
    bound: float
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_bound(self.bound, "bound")
        if not self.groups:
            raise BadParameter("groups", self.groups, "to hold at least one group")
        check_names("groups", self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self.groups


@dataclass(frozen=True, slots=True)
class SplitBound(_OneBoundEach):
    """Clip each of G groups apart at bound / sqrt(G): together they are within the bound.

    Attributes:
        bound: Of the L2 norm over all groups together.
        groups: Names, as ``parameter_groups`` reads them; of each parameter for each matrix apart.
    """

    bound: float
    groups: tuple[str, ...]

    @property
    def bounds(self) -> tuple[float, ...]:
        """The same for each group."""
        return (float(self.bound) / math.sqrt(len(self.groups)),) * len(self.groups)

    @property
    def sensitivity(self) -> float:
        """The bound, exactly."""
        return float(self.bound)


@dataclass(frozen=True, slots=True)
class EachAtFullBound(_OneBoundEach):
    """Clip each of G groups apart at the bound, and add the noise of ONE bound, as in print.

    One example reaches bound * sqrt(G), so that a noise multiplier of sigma proves what sigma /
    sqrt(G) proves, which may be nothing that is worth its name: 72 factor matrices divide sigma by
    8.5. It is here to be measured; use ``Flat``, ``SplitBound`` or ``PerGroup`` instead.

    Attributes:
        bound: Of the L2 norm of each group.
        groups: Names, as ``parameter_groups`` reads them; of each parameter for each matrix apart.
    """

    bound: float
    groups: tuple[str, ...]

    @property
    def bounds(self) -> tuple[float, ...]:
        """The same for each group."""
        return (float(self.bound),) * len(self.groups)

    @property
    def noised_bound(self) -> float:
        """One bound, less than the sensitivity."""
        return float(self.bound)


Clipping: TypeAlias = Flat | Automatic | PerGroup | SplitBound | EachAtFullBound

_ONE_BOUND: dict[str, type[SplitBound] | type[EachAtFullBound]] = {
    "split-bound": SplitBound,
    "each-at-full-bound": EachAtFullBound,
}


def clipping_as_json(clipping: Clipping) -> dict[str, Any]:  # Any: JSON
    """Write a kind of clipping for a checkpoint or a card."""
    if isinstance(clipping, PerGroup):
        return {"kind": "per-group", "groups": [list(group) for group in clipping.groups]}
    for kind, known in _ONE_BOUND.items():
        if isinstance(clipping, known):
            groups = list(clipping.groups)
            return {"kind": kind, "bound": float(clipping.bound), "groups": groups}
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
    if said["kind"] in _ONE_BOUND:
        return _ONE_BOUND[said["kind"]](said["bound"], tuple(said["groups"]))
    if said["kind"] == "automatic":
        return Automatic(said["bound"], said["stability"])
    return Flat(said["bound"])


def _check_bound(value: float, name: str) -> None:
    # Squares of bounds and of norms near them have to be float32 numbers.
    if not 1e-12 <= check_finite(value, name) <= 1e12:
        raise BadParameter(name, value, "in [1e-12, 1e+12]")
