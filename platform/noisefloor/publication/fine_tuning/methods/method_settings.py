"""Settings of a fine-tuning, all public: none may come from the records that are protected."""

from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.publication.fine_tuning.methods.encoder_shapes import EncoderShapes, sides_of
from noisefloor.publication.fine_tuning.methods.method_kinds import FineTuningMethod
from noisefloor.publication.private_sgd import ParameterGroup

ClippingRule: TypeAlias = Literal["joint", "equal", "groups", "printed"]
CLIPPING_RULES: tuple[ClippingRule, ...] = ("joint", "equal", "groups", "printed")

RANK, SPARSITY = 8, 0.3
"""Where a method has a rank or masks, and settings name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """How a method trains.

    Attributes:
        rank: Of factors; 8 if left out. Only for methods with factors.
        sparsity: The share p that masks leave out, in (0, 1); 0.3 if left out. Only for methods
            with masks.
        clipping: ``joint``: one norm over all that is trained. ``equal``: each of G groups at
            clip / sqrt(G). ``groups``: each group at a bound of its own, with the root of the sum
            of squares as sensitivity. ``printed``: each group at clip and noise for clip alone,
            which proves less than it claims; for experiments.
        clip: The bound.
        group_clips: Bounds of groups by name, for ``groups``; ``clip`` for all others.
        batch: Records in a step, on average; all of them if left out.
        steps: How many; or
        epochs: how often each record is seen, on average.
        optimiser: ``"sgd"`` or ``"adam"``.
        learning_rate: Of a step.
        momentum: Of SGD; Adam's first decay.
        weight_decay: Of all that is trained.
        averaging: The share of last steps whose weights are averaged.
        groups: Scales and rates of parameters, by the names of ``parameter_groups``.
    """

    rank: int | None = None
    sparsity: float | None = None
    clipping: ClippingRule = "joint"
    clip: float = 1.0
    group_clips: tuple[tuple[str, float], ...] = ()
    batch: float | None = None
    steps: int | None = None
    epochs: float | None = None
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    averaging: float = 0.0
    groups: tuple[ParameterGroup, ...] = ()

    def __post_init__(self) -> None:
        if self.clipping not in CLIPPING_RULES:
            raise BadParameter("clipping", "<text>", f"one of {', '.join(CLIPPING_RULES)}")
        if self.group_clips and self.clipping != "groups":
            raise BadParameter("group_clips", self.group_clips, "only with clipping 'groups'")
        if (self.steps is None) == (self.epochs is None):
            raise BadParameter("steps", self.steps, "or epochs, one of the two")

    def training(self) -> dict[str, Any]:  # Any: attributes of a plan
        """Return what a plan of private SGD takes as it is."""
        names = ("optimiser", "learning_rate", "momentum", "weight_decay", "averaging", "groups")
        return {name: getattr(self, name) for name in names}


def rank_of(method: FineTuningMethod, settings: MethodSettings, shapes: EncoderShapes) -> int:
    """Return the rank of all factors, 0 for a method that has none.

    Raises:
        BadParameter: The rank is above a matrix's smaller side, or the method has none.
    """
    if not method.has_rank:
        if settings.rank is not None:
            raise BadParameter("rank", settings.rank, f"left out: {method.name} has no factors")
        return 0
    rank = check_count(RANK if settings.rank is None else settings.rank, "rank")
    for name, shape in shapes.matrices:
        least = min(sides_of(shape))
        if rank > least:
            raise BadParameter("rank", rank, f"<= {least}, the smaller side of {name}")
    return rank


def sparsity_of(
    method: FineTuningMethod, settings: MethodSettings, shapes: EncoderShapes
) -> float:
    """Return the share that masks leave out, 0 for a method without.

    Raises:
        BadParameter: The share is none, or leaves less than one unit of some matrix to train.
    """
    if method.masked == "nothing":
        if settings.sparsity is not None:
            raise BadParameter("sparsity", settings.sparsity, f"left out: {method.name} has none")
        return 0.0
    share = SPARSITY if settings.sparsity is None else settings.sparsity
    if not 0 < check_finite(share, "sparsity") < 1:
        raise BadParameter("sparsity", share, "in (0, 1); for 0 take the method without masks")
    for name, shape in shapes.matrices:
        # A side of one unit (a picture of one colour) is never left out.
        sides = [side for side in shape[:2] if side > 1] or [1]
        units = prod(shape) if method.masked == "entries" else min(sides)
        if (1 - share) * units < 1:
            raise BadParameter(
                "sparsity", share, f"<= {1 - 1 / units:.6g}: nothing is left of {name}"
            )
    return share
