"""The layout of each step, from released weights and public draws: masks and carriers renewed.

Nothing here is given an example, a gradient or a loss, so that what a step leaves out, and by what
it carries a matrix, is a function of what was released before it: adaptive composition covers it.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from noisefloor.publication.private_sgd.carriers import Carriers, power_iteration
from noisefloor.publication.private_sgd.coordinates import GradientLayout
from noisefloor.publication.private_sgd.masks import Kept, copied_kept, is_same_kept
from noisefloor.publication.private_sgd.module_checks import quasi_random
from noisefloor.publication.private_sgd.parameters import FlatParameters
from noisefloor.publication.private_sgd.plan import SgdPlan
from noisefloor.randomness import Source

MaskRule: TypeAlias = Callable[[Mapping[str, Tensor]], Mapping[str, Kept]]
"""Takes copies of released weights by name, gives what is trained of some of them in a step."""


class StepLayouts:
    """Makes a layout before each step, where it is another one than before.

    Args:
        flat: The trained parameters.
        plan: Its clipping, groups and carriers are taken.
        masks: Says what is trained; everything if None.
        is_renewed: Whether masks follow the weights, or are those of the first ones.
    """

    def __init__(
        self, flat: FlatParameters, plan: SgdPlan, masks: MaskRule | None, *, is_renewed: bool
    ) -> None:
        self._flat, self._plan, self._masks = flat, plan, masks
        self._is_renewed = is_renewed
        self._is_due = True
        self._last: Mapping[str, Kept] = {}

    def first(self, weights: Tensor) -> GradientLayout:
        """Return the layout of the dry run: its carriers are made up, and come from no source."""
        self._last = self._kept(weights)
        carriers = self._carriers(
            torch.zeros_like(weights), lambda count: quasi_random(count).sub_(0.5)
        )
        return self._laid_out(carriers)

    def next(self, weights: Tensor, start: Tensor, source: Source) -> GradientLayout | None:
        """Return the layout of the next step; None if it is the last one's.

        Args:
            weights: As they were released by the last step.
            start: As they were before the first one.
            source: Of the step; carriers draw from it.
        """
        if not self._is_due:
            return None
        kept = self._kept(weights if self._is_renewed else start)
        carriers: dict[str, Carriers] = {}
        if self._plan.carriers:
            draws = source.stage("carriers")
            carriers = self._carriers(
                weights - start, lambda count: torch.from_numpy(draws.normals(count))
            )
        self._is_due = self._is_renewed or bool(carriers)
        if not carriers and is_same_kept(kept, self._last):
            return None
        self._last = kept
        return self._laid_out(carriers)

    def forget(self) -> None:
        """Make the next layout anew: weights or start are others now."""
        self._is_due = True

    def _kept(self, weights: Tensor) -> Mapping[str, Kept]:
        if self._masks is None:
            return {}
        # Copies: a rule that writes to them changes nothing.
        views = self._flat.views(weights.clone())
        return copied_kept(self._masks(dict(zip(self._flat.names, views, strict=True))))

    def _laid_out(self, carriers: Mapping[str, Carriers]) -> GradientLayout:
        return GradientLayout(
            self._flat.named,
            self._plan.clipping,
            scale_of=lambda name: self._plan.group_of(name).scale,
            kept=self._last,
            carriers=carriers,
        )

    def _carriers(self, moved: Tensor, normals: Callable[[int], Tensor]) -> dict[str, Carriers]:
        """Return the carriers of all matrices that the plan has a rank for."""
        found: dict[str, Carriers] = {}
        for name, one in zip(self._flat.names, self._flat.views(moved), strict=True):
            rank = self._plan.rank_of(name) if one.dim() > 1 else None
            if rank is not None:
                found[name] = power_iteration(one.flatten(1), rank, normals, name=name)
        return found
