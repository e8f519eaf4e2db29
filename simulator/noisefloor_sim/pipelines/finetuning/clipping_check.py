"""Whether the training clips every group as its plan says, by a record that fills all of them.

Residuals speak of noise alone: a group that is not clipped leaves them as they are, unless a text
of the run happens to show it. So a canary is played through the code of the training itself: one
record whose gradient is far longer than its bound in every group, at weights that are drawn at
random, in one step of the plan. What it adds to the sum is seen before the noise, which only a
simulation hands out, and is compared with bounds that are written down here from the plan's
groups: each group's part has exactly the length of its bound, all parts together no more than what
is declared to be hidden, and there are as many coordinates as units and entries are left.

The same step without clipping gives the length of each part as it is. Where it passes the bound, a
group that was left out of clipping would have been found: this is the planted fault of the check.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication import NoisedVector
from noisefloor.publication.fine_tuning.methods import FineTuningPlan, HeadThenAdaptersPlan
from noisefloor.publication.methods import TextHeadPlan, TextLayersPlan, TextPlan
from noisefloor.publication.private_sgd import (
    EachAtFullBound,
    Flat,
    PerGroup,
    SgdPlan,
    SplitBound,
)
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.releases import longest_of

if TYPE_CHECKING:
    from torch import Tensor

    from noisefloor.publication.fine_tuning import TopLayers

Floats = NDArray[np.float64]

_POSITIONS = 6
_SIZE = 30.0
"""Of the head's weights, over which the canary's gradients reach the layers."""

_TOLERANCE = 1e-3
"""How far a norm may lie from its bound, relatively: bounds are kept to with room for rounding."""

_PLANTED = 1.01
"""A part that is this much longer than its bound, unclipped, would be found."""

_NO_BOUND = 1e9


class GroupPart(NamedTuple):
    """Coordinates of one parameter or factor in the vector of sums.

    Attributes:
        size: How many there are.
        group: The place of their group of clipping.
    """

    size: int
    group: int


@dataclass(frozen=True, slots=True)
class ClippedCanary:
    """What one record with large gradients adds to the sum of a step.

    Attributes:
        name: Of the training.
        sgd: Its plan.
        bounds: Of each group, as they are written down.
        lengths: Of each group's part.
        unclipped: The same without clipping.
        coordinates: How many numbers the sum has, and how many there should be.
    """

    name: str
    sgd: SgdPlan
    bounds: Floats
    lengths: Floats
    unclipped: Floats
    coordinates: tuple[int, int]

    @property
    def longest(self) -> float:
        """The length of all that the record adds."""
        return float(np.linalg.norm(self.lengths))

    @property
    def filled(self) -> int:
        """How many groups are filled: their part has the length of the bound."""
        return int(np.count_nonzero(self.lengths >= self.bounds * (1 - _TOLERANCE)))

    @property
    def would_be_found(self) -> bool:
        """Whether any one group that is not clipped would be found."""
        return bool((self.unclipped >= _PLANTED * self.bounds).all())

    def causes(self) -> Iterator[str]:
        """Say where the sum is not what the plan says."""
        found, declared = self.coordinates
        if found != declared:
            yield f"{self.name}: a sum has {found} coordinates, and {declared} are declared"
        over = np.flatnonzero(~(self.lengths <= self.bounds * (1 + _TOLERANCE)))
        for place in over[:1].tolist():
            yield (
                f"{self.name}: a canary adds {self.lengths[place]:.4g} in group {place + 1} of "
                f"{len(self.bounds)}, where {self.bounds[place]:.4g} is the bound"
                + (f"; so in {len(over)} groups" if len(over) > 1 else "")
            )
        short = (self.unclipped >= self.bounds) & (self.lengths < self.bounds * (1 - _TOLERANCE))
        for place in np.flatnonzero(short)[:1].tolist():
            yield (
                f"{self.name}: a canary adds {self.lengths[place]:.4g} in group {place + 1} of "
                f"{len(self.bounds)}, where it fills the bound of {self.bounds[place]:.4g}"
            )
        most = longest_of(self.sgd)
        if not self.longest <= most * (1 + _TOLERANCE):
            yield (
                f"{self.name}: a canary adds {self.longest:.4g} in all, where {most:.4g} is "
                "declared"
            )


@dataclass(frozen=True, slots=True)
class ClippingCheck:
    """What the canaries of all trainings of a plan gave."""

    canaries: tuple[ClippedCanary, ...]

    @property
    def causes(self) -> tuple[str, ...]:
        """What is wrong, in words; nothing if all is as declared."""
        return tuple(cause for one in self.canaries for cause in one.causes())

    def metrics(self) -> list[Metric]:
        """Return groups, lengths, and what the check would have found; of the last training."""
        if not self.canaries:
            return []
        last = self.canaries[-1]
        return [
            Metric("clipping.groups", float(len(last.bounds))),
            Metric("clipping.filled", float(last.filled), n=len(last.bounds)),
            Metric("clipping.longest", last.longest),
            Metric("clipping.sensitivity", longest_of(last.sgd)),
            Metric("clipping.noised", last.sgd.noise_scale / last.sgd.noise_multiplier),
            Metric("clipping.coordinates", float(last.coordinates[0])),
            Metric(
                "clipping.planted_found", float(all(one.would_be_found for one in self.canaries))
            ),
        ]


def check_clipping(plan: TextPlan, source: SeededSource) -> ClippingCheck:
    """Play a canary through every private training of a plan, by the code that trains."""
    if isinstance(plan, TextHeadPlan):
        return ClippingCheck((_of_head(plan, plan.sgd, source),))
    if not isinstance(plan, TextLayersPlan):
        raise TypeError(f"{plan.NAME} has no canary of its clipping.")
    training = plan.training
    found: list[ClippedCanary] = []
    if isinstance(training, HeadThenAdaptersPlan):
        found.append(_of_head(plan, training.head.private, source.child("head")))
        training = training.adapters
    if training.sgd is not None:
        found.append(_of_layers(plan, training, source.child("layers")))
    return ClippingCheck(tuple(found))


def _of_head(
    plan: TextHeadPlan | TextLayersPlan, sgd: SgdPlan, source: SeededSource
) -> ClippedCanary:
    import torch
    from torch import nn

    from noisefloor.publication.private_sgd import PrivateTraining

    width = plan.backbone.width * len(plan.pooled)
    classes = plan.spec.schema.classes.size
    features = torch.from_numpy(source.stage("features").normals(width)).view(1, -1) * _SIZE

    def step(one: SgdPlan) -> Floats:
        module = nn.Linear(width, classes)
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
        seen: list[NoisedVector] = []
        target, own = torch.zeros(1, dtype=torch.long), source.child("step")
        with PrivateTraining(module, features, target, one, own, residuals=seen.append) as run:
            run.run()
        return _clean(seen)

    clipped, unclipped = _both(sgd, step)
    parts = [GroupPart(classes * width + classes, 0)]
    return _canary("head", sgd, clipped, unclipped, parts)


def _of_layers(
    plan: TextLayersPlan, training: FineTuningPlan, source: SeededSource
) -> ClippedCanary:
    import torch

    from noisefloor.publication.fine_tuning.methods import FineTuningRun

    inputs = _inputs(plan, source)

    def step(sgd: SgdPlan) -> Floats:
        module = _module(plan, training, source.child("weights"))
        with torch.no_grad():
            target = module(*inputs).argmin(dim=1)  # far from what the module says
        seen: list[NoisedVector] = []
        own = replace(training, sgd=sgd)
        steps = source.child("step")
        with FineTuningRun(own, module, inputs, target, steps, residuals=seen.append) as run:
            run.run()
        return _clean(seen)

    clipped, unclipped = _both(training.private, step)
    module = _module(plan, training, source.child("names"))
    names = [name for name, one in module.named_parameters() if one.requires_grad]
    return _canary("layers", training.private, clipped, unclipped, group_parts(training, names))


def _module(plan: TextLayersPlan, training: FineTuningPlan, source: SeededSource) -> "TopLayers":
    """Return the layers of a plan with weights at which every group has a gradient."""
    import torch

    from noisefloor.publication.fine_tuning.methods import prepare_module

    module = plan.module()
    with new_run():  # the clipped and the unclipped step begin at the same weights
        prepare_module(training, module, source.child("adapters"))
        with torch.no_grad():
            for name, one in module.named_parameters():
                if one.requires_grad:
                    drawn = torch.from_numpy(source.stage(name).normals(one.numel()))
                    size = _SIZE if name.startswith("head") else float(one.std(correction=0)) + 0.1
                    one.add_(drawn.view(one.shape), alpha=size)
    return module


def _inputs(plan: TextLayersPlan, source: SeededSource) -> "tuple[Tensor, ...]":
    import torch

    width = plan.backbone.width
    first = plan.backbone.depth - plan.train_layers + 1
    frozen = sum(layer < first for layer in plan.pooled)
    hidden = torch.from_numpy(source.stage("hidden").normals(_POSITIONS * width))
    pooled = torch.from_numpy(source.stage("pooled").normals(max(1, frozen * width)))
    return (
        hidden.view(1, _POSITIONS, width),
        torch.ones(1, _POSITIONS),
        pooled[: frozen * width].view(1, -1),
    )


def _both(sgd: SgdPlan, step: Callable[[SgdPlan], Floats]) -> tuple[Floats, Floats]:
    """Take one step with the plan's clipping, and the same one without any."""
    found = []
    for clipping in (sgd.clipping, _unbounded(sgd)):
        one = replace(sgd, examples=1, expected_batch=1.0, steps=1, clipping=clipping)
        with new_run():
            found.append(step(one))
    return found[0], found[1]


def _unbounded(sgd: SgdPlan) -> PerGroup | Flat:
    clipping = sgd.clipping
    if isinstance(clipping, SplitBound | EachAtFullBound):
        return PerGroup(tuple((name, _NO_BOUND) for name in clipping.groups))
    if isinstance(clipping, PerGroup):
        return PerGroup(tuple((name, _NO_BOUND) for name, _ in clipping.groups))
    return Flat(_NO_BOUND)


def _clean(seen: Sequence[NoisedVector]) -> Floats:
    (vector,) = seen
    if vector.clean is None:
        raise TypeError("A step of private SGD hands out its sum.")
    return vector.clean


def _canary(
    name: str, sgd: SgdPlan, clipped: Floats, unclipped: Floats, parts: Sequence[GroupPart]
) -> ClippedCanary:
    bounds = written_bounds(sgd)
    declared = sum(part.size for part in parts)
    return ClippedCanary(
        name,
        sgd,
        bounds,
        _lengths(clipped, parts, len(bounds)),
        _lengths(unclipped, parts, len(bounds)),
        (len(clipped), declared),
    )


def _lengths(vector: Floats, parts: Sequence[GroupPart], groups: int) -> Floats:
    """Return the length of each group's part; of all in one group where the sizes do not fit."""
    squares = np.zeros(groups)
    if len(vector) != sum(part.size for part in parts):
        squares[0] = float(vector @ vector)
        return np.sqrt(squares)
    start = 0
    for size, group in parts:
        own = vector[start : start + size]
        squares[group if groups > 1 else 0] += float(own @ own)
        start += size
    return np.sqrt(squares)


def written_bounds(sgd: SgdPlan) -> Floats:
    """Return the bound of each group, written down from what kind of clipping it is."""
    clipping = sgd.clipping
    if isinstance(clipping, PerGroup):
        return np.array([bound for _, bound in clipping.groups])
    if isinstance(clipping, SplitBound):
        count = len(clipping.groups)
        return np.full(count, clipping.bound / math.sqrt(count))
    if isinstance(clipping, EachAtFullBound):
        return np.full(len(clipping.groups), clipping.bound)
    return np.array([clipping.bound])


def group_parts(plan: FineTuningPlan, names: Sequence[str]) -> list[GroupPart]:
    """Return the parts of a sum in their order: from shapes, rank and the share left out."""
    matrices = dict(plan.shapes.matrices)
    shapes, groups = plan.trained, plan.clip_groups
    found: list[GroupPart] = []
    for name in names:
        if plan.method.trained == "carried" and name in matrices:
            rows, columns = matrices[name]
            for side, units in ((".left", rows), (".right", columns)):
                size = plan.rank * (units - int(plan.sparsity * units))
                found.append(GroupPart(size, _group_of(name + side, groups)))
            continue
        size = math.prod(shapes[name])
        if plan.method.has_adapters and name.endswith((".left.weight", ".right.weight")):
            units = size // plan.rank
            size = plan.rank * (units - int(plan.sparsity * units))
        elif plan.method.masked == "entries" and name in matrices:
            size -= int(plan.sparsity * size)
        found.append(GroupPart(size, _group_of(name, groups)))
    return found


def _group_of(name: str, groups: Sequence[str]) -> int:
    fitting = [one for one in groups if name == one or name.startswith(f"{one}.")]
    return groups.index(max(fitting, key=len)) if fitting else 0
