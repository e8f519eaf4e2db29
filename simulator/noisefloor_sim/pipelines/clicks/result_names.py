"""The names of the metrics and claims of click statistics, for gates; ``*`` is a day or an ad."""

from noisefloor.ads.clicks import ClickEncoding

METRIC_NAMES = (
    *("estimates", "error_rms", "error_relative", "coverage", "clicks_mean", "reported_share"),
    *("kept_share", "estimate.day_*.ad_*", "kept.day_*.ad_*"),
    *("ctr_error", "ctr_coverage", "ctr.ad_*", "kept_rate_coverage", "kept_rate.ad_*"),
    *("dropped_per_kept", "dropped_per_kept_coverage", "reports_counted"),
    *(
        "error_relative.kept",
        "error_relative.formula",
        "error_relative.gap",
        "needed.user_days",
        "needed.users",
        "needed.days",
    ),
    *(f"{name}.day_*" for name in ("spent", "spent_proved", "fresh", "repeated", "refused")),
    *("reports_fresh", "reports_repeated", "reports_refused", "users_out_of_contact"),
    "exhausted.devices_*",
    *(f"fraud.{name}" for name in ("share", "bias", "bias_formula", "p_value")),
    *(f"fraud.{name}" for name in ("auc", "found", "false_alarms")),
    *(
        f"attack.{game}.{name}"
        for game in ("single_bit", "profiles", "all_days", "row_order", "vector", "delivered")
        for name in ("success", "prior", "advantage", "candidates", "bound", "closed_form")
    ),
)

CLAIM_NAMES = (
    *(f"clicks-{form.value}" for form in ClickEncoding),
    *("clicks-delivered", "clicks-dropped", "clicks-memoised-steady", "clicks-memoised-changing"),
)
