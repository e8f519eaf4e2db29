"""The names of the metrics and claims of fine-tuning, for gates.

``*`` stands for the number of a release, of a group, of an example or of a step, or for a false
positive rate.
"""

_SCORED = ("canary", "stayer", "loss", "lira")
"""Attacks that order members and others by a score."""

METRIC_NAMES = (
    *(f"accuracy.{model}" for model in ("last", "open", "majority", "release_*")),
    *(f"releases.{name}" for name in ("made", "refused", "empty")),
    *("releases.day.release_*", "releases.records.release_*"),
    *(f"spent.{name}" for name in ("claimed", "debited", "budget", "proved", "together")),
    "spent.claimed.release_*",
    *(f"model.{name}" for name in ("parameters", "claimed", "delta", "proved")),
    *(f"training.{name}" for name in ("updated", "noise_multiplier", "groups", "steps")),
    *("data.users", "data.cut", "data.made_up"),
    *(f"residuals.{name}" for name in ("draws", "tests", "p_value", "planted_found")),
    *(f"clipping.{name}" for name in ("groups", "filled", "longest", "sensitivity", "noised")),
    *("clipping.coordinates", "clipping.planted_found"),
    *("shadows.accuracy_members", "shadows.accuracy_others", "shadows.records"),
    *(
        f"attack.{game}.{name}"
        for game in ("canary", "stayer")
        for name in ("success", "prior", "bound", "claimed_bound", "audited")
    ),
    "attack.canary.closed_form",
    *(
        f"attack.{name}.{figure}"
        for name in _SCORED
        for figure in ("auc", "auc_bound", "claimed_auc", "advantage", "tpr.at_*")
    ),
    *(f"attack.{name}.tpr_bound.at_*" for name in _SCORED),
    *(f"attack.null.{name}" for name in ("success", "prior", "audited", "auc")),
    *(f"attack.planted.{name}" for name in ("success", "prior", "bound", "audited", "auc")),
    *(f"attack.planted.{name}" for name in ("accuracy_members", "draws", "excess")),
    *(f"diagnostics.clipped.{name}" for name in ("unmasked", "masked", "examples")),
    *(f"diagnostics.mean_clip_factor.{name}" for name in ("unmasked", "masked")),
    *(f"diagnostics.clip_factor.{name}.example_*" for name in ("unmasked", "masked")),
    *("diagnostics.mask_overlap", "diagnostics.mask_overlap.step_*"),
    *(f"diagnostics.importance.{name}.at_*" for name in ("rows", "columns")),
    *(f"diagnostics.{name}.group_*" for name in ("weight", "gradient")),
)

CLAIM_NAMES = ("release", "all_releases", "members")
