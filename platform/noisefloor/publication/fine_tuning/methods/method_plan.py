"""A fine-tuning that is planned in public: what is trained, what is proved, what is published.

shapes = EncoderShapes.of(backbone, 2, (4, 5, 6), classes=2)
plan = FineTuningPlan.of("lora", shapes, cost, 6_824, MethodSettings(rank=8, steps=60))
plan.proved, plan.claimed, plan.loss          # for a card and a ledger
plan.parameters, plan.updated, plan.release_size
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from noisefloor.accounting import ReleaseLoss
from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, TrustModel
from noisefloor.publication.fine_tuning import published_text_model as form
from noisefloor.publication.fine_tuning.methods.encoder_shapes import HEAD, EncoderShapes, Shape
from noisefloor.publication.fine_tuning.methods.method_kinds import (
    FineTuningMethod,
    Masked,
    Trained,
    find_method,
)
from noisefloor.publication.fine_tuning.methods.method_settings import (
    MethodSettings,
    rank_of,
    sparsity_of,
)
from noisefloor.publication.private_sgd import (
    Clipping,
    EachAtFullBound,
    Flat,
    PerGroup,
    SgdPlan,
    SplitBound,
    find_group,
)

LEFT, RIGHT = ".left", ".right"
WEIGHT = ".weight"

_TRAINED: Mapping[Trained, str] = {
    "weights": "all weights",
    "carried": "matrices, by factors of rank {rank} made of released moves,",
    "factors": "adapters of rank {rank} on matrices",
    "left-factors": "left factors of adapters of rank {rank}, with random right ones, on matrices",
    "biases": "biases",
    "head": "nothing",
}
_MASKED: Mapping[Masked, str] = {
    "nothing": "",
    "entries": ", without the share {share:g} of each matrix's entries, the smallest public ones",
    "units": ", without the share {share:g} of rows of left and of columns of right factors, "
    "chosen before each step by released weights",
}


@dataclass(frozen=True, slots=True)
class FineTuningPlan:
    """What a fine-tuning will do; it follows from public settings alone.

    Guarantee:  (epsilon, delta) DP of all that is released of all steps together, by the plan of
                private SGD; none for ``plain``. Masks and carriers are functions of public and
                released weights, so that adaptive composition covers them. It does not cover a
                choice of settings by records that are protected.
    Neighbours: as the cost says, of records.
    Domain:     any texts; gradients are clipped.
    Reference:  see ``method_kinds``.

    Attributes:
        method: What is trained.
        shapes: Of the encoder.
        settings: How it is trained.
        cost: What was requested; what is claimed where clipping is as printed.
        examples: How many records there are, a public number.
        rank: Of factors; 0 without.
        sparsity: The share that masks leave out; 0 without.
        sgd: The training; None without privacy.
    """

    method: FineTuningMethod
    shapes: EncoderShapes
    settings: MethodSettings
    cost: Guarantee
    examples: int
    rank: int
    sparsity: float
    sgd: SgdPlan | None

    @classmethod
    def of(
        cls,
        name: str,
        shapes: EncoderShapes,
        cost: Guarantee,
        examples: int,
        settings: MethodSettings,
        *,
        noise_multiplier: float | None = None,
    ) -> "FineTuningPlan":
        """Plan a fine-tuning with the least noise that keeps to a cost.

        Args:
            name: Of the method.
            shapes: Of the encoder.
            cost: With a positive delta.
            examples: How many records there are, a public number.
            settings: How it is trained.
            noise_multiplier: As it was found before, instead of a search for it; ``proved`` says
                what it is worth.

        Raises:
            BadParameter: A setting breaks its rule, or the release would be too large.
        """
        method = find_method(name)
        check_count(examples, "examples")
        rank, share = rank_of(method, settings, shapes), sparsity_of(method, settings, shapes)
        if not method.is_private and settings.clipping != "joint":
            raise BadParameter("clipping", settings.clipping, "left out: nothing is clipped")
        plan = cls(method, shapes, settings, cost, examples, rank, share, None)
        form.check_release_bytes(plan.published_shapes)
        return plan._with_training(noise_multiplier) if method.is_private else plan

    def _with_training(self, noise_multiplier: float | None) -> "FineTuningPlan":
        fields = {
            "examples": self.examples,
            "expected_batch": self.batch,
            "clipping": self._clipping,
            "carriers": self._carriers,
            **self.settings.training(),
        }
        if noise_multiplier is None:
            is_printed = self.settings.clipping == "printed"
            make = SgdPlan.for_claim if is_printed else SgdPlan.for_budget
            return replace(self, sgd=make(self.cost, steps=self.steps, **fields))
        sgd = SgdPlan(
            noise_multiplier=noise_multiplier,
            steps=self.steps,
            neighbours=self.cost.neighbours,
            **fields,
        )
        return replace(self, sgd=sgd)

    def with_noise(self, noise_multiplier: float) -> "FineTuningPlan":
        """Return the plan with other noise; what it proves follows from it."""
        return replace(self, sgd=self.private.with_noise(noise_multiplier))

    def without_privacy(self) -> "FineTuningPlan":
        """Return the same training without clipping and noise, of which nothing is proved.

        Raises:
            BadParameter: The method has carriers or masks, which serve private training alone.
        """
        if self.method.masked != "nothing" or self.method.trained == "carried":
            raise BadParameter("method", self.method.name, "one without carriers and masks")
        method = replace(self.method, name=f"plain {self.method.name}", is_private=False)
        return replace(self, method=method, sgd=None)

    @property
    def batch(self) -> float:
        """Records in a step, on average."""
        return self.examples if self.settings.batch is None else self.settings.batch

    @property
    def steps(self) -> int:
        """How many steps are taken."""
        if self.settings.steps is not None:
            return self.settings.steps
        return max(1, round((self.settings.epochs or 0.0) * self.examples / self.batch))

    @property
    def private(self) -> SgdPlan:
        """The training, which only a private method has."""
        if self.sgd is None:
            raise IncompatibleGuarantees(f"{self.method.name}: there is no noise and no account.")
        return self.sgd

    @property
    def _carriers(self) -> tuple[tuple[str, int], ...]:
        if self.method.trained != "carried":
            return ()
        return tuple((name, self.rank) for name, _ in self.shapes.matrices)

    @property
    def _clipping(self) -> Clipping:
        settings, groups = self.settings, self.clip_groups
        if settings.clipping == "joint":
            return Flat(settings.clip)
        if settings.clipping == "equal":
            return SplitBound(settings.clip, groups)
        if settings.clipping == "printed":
            return EachAtFullBound(settings.clip, groups)
        return PerGroup(tuple((name, self._bound_of(name)) for name in groups))

    def _bound_of(self, group: str) -> float:
        names = [name for name, _ in self.settings.group_clips]
        place = find_group(group, names)
        return self.settings.clip if place is None else self.settings.group_clips[place][1]

    @property
    def clip_groups(self) -> tuple[str, ...]:
        """What is clipped apart unless clipping is joint: factors, or layers; and the head."""
        if self.method.trained == "head":
            return (HEAD,)
        return (*(tuple(self._factors) if self.method.has_rank else self.shapes.layers), HEAD)

    @property
    def _factors(self) -> dict[str, Shape]:
        """Trained factors, by the names that private SGD has for them."""
        found: dict[str, Shape] = {}
        for name, (rows, columns) in self.shapes.matrices:
            left, right = factor_names(name, is_carried=not self.method.has_adapters)
            found[left] = (rows, self.rank)
            if self.method.trained != "left-factors":
                found[right] = (self.rank, columns)
        return found

    @property
    def trained(self) -> dict[str, Shape]:
        """Names and shapes of the trained parameters, as the module has them."""
        kind, shapes = self.method.trained, self.shapes
        found: dict[str, Shape] = {}
        if kind in ("weights", "carried"):
            found |= dict(shapes.matrices)
        if kind == "weights":
            found |= dict(shapes.vectors)
        if kind == "biases":
            found |= {name: shape for name, shape in shapes.vectors if name.endswith(".bias")}
        if self.method.has_adapters:
            found |= self._factors
        return found | shapes.head_parameters

    @property
    def parameters(self) -> int:
        """How many parameters are trained."""
        return sum(map(_size, self.trained.values()))

    @property
    def updated(self) -> int:
        """How many numbers are clipped and noised in a step: k (m + n)(1 - p) of a matrix."""
        if not self.method.has_rank:
            return self.parameters - sum(
                int(self.sparsity * _size(shape)) for _, shape in self.shapes.matrices
            )
        kept = sum(_size(shape) for shape in self.shapes.head_parameters.values())
        for name, (rows, columns) in self.shapes.matrices:
            left, right = factor_names(name, is_carried=not self.method.has_adapters)
            kept += self.rank * (rows - int(self.sparsity * rows)) * (left in self._factors)
            kept += self.rank * (columns - int(self.sparsity * columns)) * (right in self._factors)
        return kept

    @property
    def published_shapes(self) -> dict[str, Shape]:
        """What is published, by the names of the file."""
        if not self.method.has_adapters:
            return {form_name(name, self.shapes.first): one for name, one in self.trained.items()}
        found: dict[str, Shape] = dict(self.shapes.head_parameters)
        for name, (rows, columns) in self.shapes.matrices:
            place = adapter_name(name, self.shapes.first)
            found |= {place + LEFT: (rows, self.rank), place + RIGHT: (self.rank, columns)}
        return found

    @property
    def release_size(self) -> int:
        """The most bytes that the published file takes."""
        return form.release_bytes(self.published_shapes)

    @property
    def proved(self) -> Guarantee:
        """What is proved of all that is released together; this is what has to be paid for."""
        if self.sgd is None:
            reason = "there is no noise in the model"
            return Guarantee.none(reason, self.cost.neighbours, TrustModel.CENTRAL)
        return self.sgd.guarantee(self.cost.delta)

    @property
    def claimed(self) -> Guarantee:
        """What would be proved if one clipping bound were the sensitivity; else what is proved."""
        return self.proved if self.sgd is None else self.sgd.claimed(self.cost.delta)

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of every step, for a ledger.

        Raises:
            IncompatibleGuarantees: There is no noise: no budget pays for it.
        """
        return ReleaseLoss(tuple(self.private.events))

    @property
    def is_experiment(self) -> bool:
        """Whether it is published as an experiment alone: it does not prove what it claims."""
        return self.sgd is None or self.settings.clipping == "printed"

    @property
    def in_words(self) -> str:
        """What is trained beside the head, and what is left out of it, for a card."""
        what = _TRAINED[self.method.trained].format(rank=self.rank)
        left_out = _MASKED[self.method.masked].format(share=self.sparsity)
        count = len(self.shapes.layers)
        return f"{what} of the top {count} layers of a pretrained encoder{left_out}"

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Write the plan for a card; defaults are filled in."""
        return {
            "method": self.method.name,
            "clipping_rule": self.settings.clipping if self.sgd is not None else None,
            "rank": self.rank or None,
            "sparsity": self.sparsity or None,
            "trained_layers": len(self.shapes.layers),
            "parameters": self.parameters,
            "updated": self.updated,
            "training": _training_fields(self),
        }

    @property
    def sha256(self) -> str:
        """Of all that decides the training, shapes included."""
        said = {"plan": self.as_json(), "shapes": asdict(self.shapes)}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _training_fields(plan: FineTuningPlan) -> Mapping[str, Any]:  # Any: JSON
    if plan.sgd is not None:
        return plan.sgd.as_json()
    fields = {name: value for name, value in plan.settings.training().items() if name != "groups"}
    return fields | {"batch": plan.batch, "steps": plan.steps}


def _size(shape: Shape) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def factor_names(matrix: str, *, is_carried: bool) -> tuple[str, str]:
    """Return the names of a matrix's factors: of carriers, or of an adapter's two layers."""
    if is_carried:
        return matrix + LEFT, matrix + RIGHT
    layer = matrix.removesuffix(WEIGHT)
    return layer + LEFT + WEIGHT, layer + RIGHT + WEIGHT


def form_name(name: str, first: int) -> str:
    """Return the name of a trained parameter in a published file: layers count from 1 there."""
    kind, _, rest = name.partition(".")
    if kind == HEAD:
        return name
    place, _, inner = rest.partition(".")
    return f"{form.LAYERS}{first + int(place)}.{inner}"


def adapter_name(matrix: str, first: int) -> str:
    """Return the name of an adapter in a published file, without its side."""
    inside = form_name(matrix, first).removeprefix(form.LAYERS)
    return form.ADAPTERS + inside.removesuffix(WEIGHT)
