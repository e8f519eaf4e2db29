"""The names of the metrics and claims of the ad pipeline, for gates.

``*`` stands for a round, for a choice of delivery, or for what spent a budget.
"""

_GAMES = (
    *("membership", "rated", "rating", "linking", "favourite", "favourite_all_days"),
    *("favourite_trained", "favourite_trained_all_days"),
    *("favourite_reused", "topic", "topic_all_days", "null", "planted", "activity"),
)
_FLOWS = ("training", "request", "shown-ad", "panel-click", "clicks")
_REGIMES = ("tracking", "protected", "symbol", "contextual", "random")
_MODELS = ("", ".global_mean", ".item_means", ".open", ".untrained")
_ROUND = ("reported", "late", "clipped", "norm", "drift")

_FIGURES = ("success", "prior", "advantage", "candidates", "bound", "closed_form")

METRIC_NAMES = (
    *(f"{name}{model}" for name in ("rmse", "hits") for model in _MODELS),
    *("rmse_lead", "hits_lead", "rmse_lead_untrained", "hits_lead_untrained"),
    *(f"training.{name}.round_*" for name in _ROUND),
    *("training.reports", "training.reports_late", "training.reports_refused"),
    *("training.reports_counted", "training.reports_counted_late"),
    *("training.absent", "training.fakes"),
    *("training.noise_over_signal", "training.fallback", "training.factors_used"),
    *("training.noise.measured", "training.noise.formula", "training.noise.users_needed"),
    *(f"fraud.{name}" for name in ("bias", "bias_formula", "auc", "found", "false_alarms")),
    *("relevance", "relevance.popular", "relevance.open", "top_one", "pushed_share"),
    *("personal_share", "requests", "requests_per_day", "requests_refused"),
    *("requests_per_user", "requests_busiest_day", "requests_busiest_user"),
    *("impressions_error", "impressions_error.formula"),
    *("utility.epsilon", "utility.top_one.*", "utility.score.*"),
    *("utility.proved.*", "utility.favourite.*"),
    *("spent.*", "budget_overspent", "budget_unaccounted"),
    *(
        f"day.{flow}.{name}"
        for flow in _FLOWS
        for name in ("releases", "claimed_each", "proved_each", "claimed", "proved")
    ),
    *("day.busiest_user.releases", "day.busiest_user.proved"),
    *(
        f"auction.{regime}.{name}"
        for regime in _REGIMES
        for name in ("revenue", "value", "surplus", "fill", "relevance")
    ),
    *(f"auction.gain.{regime}" for regime in _REGIMES),
    *(f"auction.share.{regime}" for regime in _REGIMES[1:]),
    *("auction.lead", "auction.random_sigmas", "auction.coverage", "auction.budget_overspent"),
    *("auction.context_r2", "auction.symbol_r2", "auction.panel.reports"),
    *(f"auction.request.{name}" for name in ("bytes", "day", "symbol", "topic")),
    *(f"attack.{game}.{name}" for game in _GAMES for name in _FIGURES),
)

CLAIM_NAMES = ("training", "request", "requests-a-day", "shown-ad", "panel-click", "whole-day")
