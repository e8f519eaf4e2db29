"""The names of the metrics and claims of click statistics, for gates; ``*`` is a day or an ad."""

from noisefloor.ads.clicks import ClickEncoding

METRIC_NAMES = (
    *("estimates", "error_rms", "error_relative", "coverage", "clicks_mean", "reported_share"),
    *(
        "error_relative.formula",
        "error_relative.gap",
        "needed.user_days",
        "needed.users",
        "needed.days",
    ),
    *("estimate.day_*.ad_*", "ctr_error", "ctr_coverage", "ctr.ad_*"),
    *(f"{name}.day_*" for name in ("spent", "spent_proved", "fresh", "repeated", "refused")),
    *("reports_fresh", "reports_repeated", "reports_refused", "users_out_of_contact"),
    "exhausted.devices_*",
    *(f"fraud.{name}" for name in ("share", "bias", "bias_formula", "p_value")),
    *(f"fraud.{name}" for name in ("auc", "found", "false_alarms")),
    *(
        f"attack.{game}.{name}"
        for game in ("single_bit", "profiles", "all_days")
        for name in ("success", "bound", "closed_form")
    ),
    *("attack.row_order.success", "attack.vector.success", "attack.vector.closed_form"),
    *(f"attack.delivered.{name}" for name in ("success", "prior", "closed_form")),
)

CLAIM_NAMES = (
    *(f"clicks-{form.value}" for form in ClickEncoding),
    *("clicks-delivered", "clicks-memoised-steady", "clicks-memoised-changing"),
)
