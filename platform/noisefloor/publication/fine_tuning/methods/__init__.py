"""Methods of fine-tuning: each is a plan that follows from public settings, and one training.

    shapes = EncoderShapes.of(backbone, 2, (4, 5, 6), classes=2)
    plan = FineTuningPlan.of("combined-lora", shapes, cost, 6_824, MethodSettings(epochs=20, ...))
    plan.proved, plan.claimed, plan.loss, plan.updated
    module = TopLayers(backbone, 2, (4, 5, 6), scaling, classes=2)
    fine_tune(plan, module, module.inputs(states), labels, source)
    published_tensors(plan, module)

``method_kinds`` names the methods, ``method_settings`` what can be set, ``method_plan`` says what
follows; ``head_then_adapters`` composes two trainings, ``charged_selection`` chooses settings by
private records. With torch: ``adapters``, ``method_masks``, ``method_training``,
``plain_training`` without privacy, ``planned_training`` for any of the plans, ``diagnostics`` for
experiments.
"""

from typing import TYPE_CHECKING, Any

from noisefloor.publication.fine_tuning.methods.charged_selection import (
    ChargedSelection,
    SelectedModel,
)
from noisefloor.publication.fine_tuning.methods.encoder_shapes import EncoderShapes
from noisefloor.publication.fine_tuning.methods.head_then_adapters import HeadThenAdaptersPlan
from noisefloor.publication.fine_tuning.methods.method_kinds import (
    METHODS,
    FineTuningMethod,
    find_method,
)
from noisefloor.publication.fine_tuning.methods.method_plan import FineTuningPlan
from noisefloor.publication.fine_tuning.methods.method_settings import (
    CLIPPING_RULES,
    MethodSettings,
)

if TYPE_CHECKING:
    from noisefloor.publication.fine_tuning.methods.diagnostics import (
        ClipFactorPair,
        MaskLog,
        UnitImportances,
        compare_clip_factors,
        gradient_maps,
        unit_importances,
        weight_maps,
    )
    from noisefloor.publication.fine_tuning.methods.method_masks import mask_rule
    from noisefloor.publication.fine_tuning.methods.method_training import (
        FineTuningRun,
        fine_tune,
        head_features,
        prepare_module,
        published_tensors,
    )
    from noisefloor.publication.fine_tuning.methods.plain_training import train_plain
    from noisefloor.publication.fine_tuning.methods.planned_training import train_planned

__all__ = [
    "CLIPPING_RULES",
    "METHODS",
    "ChargedSelection",
    "ClipFactorPair",
    "EncoderShapes",
    "FineTuningMethod",
    "FineTuningPlan",
    "FineTuningRun",
    "HeadThenAdaptersPlan",
    "MaskLog",
    "MethodSettings",
    "SelectedModel",
    "UnitImportances",
    "compare_clip_factors",
    "find_method",
    "fine_tune",
    "gradient_maps",
    "head_features",
    "mask_rule",
    "prepare_module",
    "published_tensors",
    "train_plain",
    "train_planned",
    "unit_importances",
    "weight_maps",
]

_WITH_TORCH = {
    "ClipFactorPair": "diagnostics",
    "FineTuningRun": "method_training",
    "MaskLog": "diagnostics",
    "UnitImportances": "diagnostics",
    "compare_clip_factors": "diagnostics",
    "fine_tune": "method_training",
    "gradient_maps": "diagnostics",
    "head_features": "method_training",
    "mask_rule": "method_masks",
    "prepare_module": "method_training",
    "published_tensors": "method_training",
    "train_plain": "plain_training",
    "train_planned": "planned_training",
    "unit_importances": "diagnostics",
    "weight_maps": "diagnostics",
}


def __getattr__(name: str) -> Any:  # Any: whatever the module has by that name
    """Import what needs torch on first use."""
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
