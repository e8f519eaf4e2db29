"""Diagnostics of low rank and sparsity, on private examples of a run: for experiments alone.

Only a scenario that says ``experiment: true`` gets here. A training of its own repeats the first
steps of the release on the same texts, with a log of its masks; clip factors, weights and
gradients are those after it. No guarantee covers any of these numbers.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication import fine_tuning
from noisefloor.publication.fine_tuning.methods import FineTuningPlan
from noisefloor.publication.methods import TextLayersPlan, TextPlan
from noisefloor.randomness import SeededSource
from noisefloor.tables import TextRecords
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.finetuning.text_assignment import FrozenTexts

EXAMPLES, STEPS = 21, 6
"""As many examples as the paper prints clip factors of; a few steps show how masks move."""

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def diagnose(
    plan: TextPlan, records: TextRecords, frozen: FrozenTexts, source: SeededSource
) -> list[Metric]:
    """Return clip factors, mask overlaps, importances and maps, after a few steps.

    Args:
        plan: Of the release.
        records: Its texts.
        frozen: What the frozen encoder made of them.
        source: Of the training.
    """
    import torch

    from noisefloor.publication.fine_tuning import methods

    if not isinstance(plan, TextLayersPlan) or not isinstance(plan.training, FineTuningPlan):
        raise TypeError(f"{plan.NAME} has no diagnostics.")
    training = _short(plan.training)
    tokens = fine_tuning.tokenise(plan.backbone, records.schema, records.texts, "records")
    with frozen.used():
        states = fine_tuning.run_frozen(
            plan.backbone, tokens, plan.pooled, train_layers=plan.train_layers
        )
    module = plan.module()
    inputs, labels = module.inputs(states), torch.from_numpy(records.labels.copy())
    methods.prepare_module(training, module, source.child("adapters"))
    rule = methods.mask_rule(training, module)
    log = methods.MaskLog(rule) if rule is not None else None
    steps = source.child("steps")
    with methods.FineTuningRun(training, module, inputs, labels, steps, masks=log) as run:
        run.run()
    some = tuple(one[:EXAMPLES] for one in inputs), labels[:EXAMPLES]
    factors = methods.compare_clip_factors(
        training, module, *some, source.child("factors"), is_experiment=True
    )
    # The rule is asked once before the first step, for the dry run: at the same weights.
    overlaps = log.overlaps(is_experiment=True)[1:] if log is not None else []
    return [
        *_factor_metrics({"unmasked": factors.unmasked, "masked": factors.masked}),
        *_overlap_metrics(overlaps),
        *_importance_metrics(methods.unit_importances(training, module, is_experiment=True)),
        *_map_metrics("weight", methods.weight_maps(training, module, is_experiment=True)),
        *_map_metrics("gradient", methods.gradient_maps(module, *some, is_experiment=True)),
    ]


def _short(training: FineTuningPlan) -> FineTuningPlan:
    """Return the training with a few steps, and the noise of all."""
    sgd = replace(training.private, steps=min(STEPS, training.private.steps))
    return replace(training, sgd=sgd)


def _factor_metrics(found: Mapping[str, NDArray[np.float64]]) -> list[Metric]:
    """Return how many examples are clipped, the smallest factor of each, and their mean."""
    metrics = []
    for name, factors in found.items():
        least = factors.min(axis=1)
        metrics.append(Metric(f"diagnostics.clipped.{name}", float((least < 1).sum())))
        mean = float(least.mean())
        metrics.append(Metric(f"diagnostics.mean_clip_factor.{name}", mean, n=len(least)))
        metrics += [
            Metric(f"diagnostics.clip_factor.{name}.example_{number}", float(one))
            for number, one in enumerate(least)
        ]
    return [*metrics, Metric("diagnostics.clipped.examples", float(len(least)))]


def _overlap_metrics(overlaps: list[dict[str, float]]) -> list[Metric]:
    each = [float(np.mean(list(one.values()))) for one in overlaps if one]
    if not each:
        return []
    return [
        Metric("diagnostics.mask_overlap", float(np.mean(each)), n=len(each)),
        *(Metric(f"diagnostics.mask_overlap.step_{at}", one) for at, one in enumerate(each)),
    ]


def _importance_metrics(found: Mapping[str, object]) -> list[Metric]:
    """Return quantiles of importances over their median, of all matrices together."""
    from noisefloor.publication.fine_tuning.methods import UnitImportances

    metrics = []
    for side in ("rows", "columns"):
        shares = []
        for one in found.values():
            if isinstance(one, UnitImportances):
                values = one.rows if side == "rows" else one.columns
                shares.append(values / np.median(values))
        for at, value in zip(
            QUANTILES, np.quantile(np.concatenate(shares), QUANTILES), strict=True
        ):
            metrics.append(Metric(f"diagnostics.importance.{side}.at_{at:g}", float(value)))
    return metrics


def _map_metrics(name: str, maps: Mapping[str, NDArray[np.float64]]) -> list[Metric]:
    """Return the root of the mean square of each map, in the order of their names."""
    return [
        Metric(f"diagnostics.{name}.group_{number}", float(np.sqrt(np.mean(one**2))))
        for number, (_, one) in enumerate(sorted(maps.items()))
    ]
