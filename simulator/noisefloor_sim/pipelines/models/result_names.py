"""The names of the metrics and claims of published models, for gates.

``*`` stands for the number of a release, or for a false positive rate.
"""

_SCORED = ("canary", "stayer", "loss", "lira")
"""Attacks that order members and others by a score."""

METRIC_NAMES = (
    *(
        f"{name}.{model}"
        for name in ("accuracy", "f1")
        for model in ("last", "open", "majority", "release_*")
    ),
    *(f"releases.{name}" for name in ("made", "refused", "empty")),
    *("releases.day.release_*", "releases.records.release_*"),
    *(f"spent.{name}" for name in ("claimed", "debited", "budget", "proved", "together")),
    "spent.claimed.release_*",
    *(f"model.{name}" for name in ("parameters", "claimed", "delta", "proved")),
    *("data.users", "data.reused"),
    *(f"residuals.{name}" for name in ("draws", "tests", "p_value", "planted_found")),
    *("shadows.accuracy_members", "shadows.accuracy_others", "shadows.records"),
    *(
        f"attack.{game}.{name}"
        for game in ("canary", "stayer", "missing_record", "difference")
        for name in ("success", "prior", "bound", "claimed_bound")
    ),
    *("attack.canary.closed_form", "attack.canary.audited", "attack.stayer.audited"),
    *(
        f"attack.{name}.{figure}"
        for name in _SCORED
        for figure in ("auc", "auc_bound", "claimed_auc", "advantage", "tpr.at_*")
    ),
    *(f"attack.{name}.tpr_bound.at_*" for name in _SCORED),
    *(f"attack.null.{name}" for name in ("success", "prior", "audited", "auc")),
    *(f"attack.planted.{name}" for name in ("success", "prior", "bound", "audited", "auc")),
    *(f"attack.planted.{name}" for name in ("accuracy_members", "draws", "excess")),
    "attack.planted.nearest_auc",
    *(f"attack.newcomer.{name}" for name in ("auc", "auc_bound", "claimed_auc", "records")),
    "attack.newcomer_alone.auc",
    *(f"attack.missing_value.{name}" for name in ("advantage", "advantage_bound")),
    *("attack.missing_value.members", "attack.missing_value.others"),
    *(f"attack.nearest.{name}" for name in ("auc", "auc_bound")),
    *("attack.nearest.distance_members", "attack.nearest.distance_others"),
)

CLAIM_NAMES = ("release", "parameter", "all_releases", "members")
