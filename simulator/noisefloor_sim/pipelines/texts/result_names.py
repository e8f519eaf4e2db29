"""The names of the metrics and claims of published texts, for gates.

``*`` stands for the number of a release, for a classifier, or for a false positive rate.
"""

_GAMES = ("canary", "stayer")
_CURVES = (*_GAMES, "nearest", "runs", "rare_word")
_DIVERSITY = ("distinct_1", "distinct_2", "self_bleu", "pieces", "rare_share")

METRIC_NAMES = (
    *(f"releases.{name}" for name in ("made", "refused", "empty")),
    *("releases.day.release_*", "releases.records.release_*"),
    *(f"spent.{name}" for name in ("claimed", "debited", "budget", "proved", "together")),
    *("spent.claimed.release_*", "spent.author"),
    *(f"model.{name}" for name in ("claimed", "delta", "proved")),
    *(f"data.{name}" for name in ("users", "posts", "collected", "most_posts", "cut", "made_up")),
    *(f"residuals.{name}" for name in ("draws", "tests", "p_value", "planted_found")),
    *("counting.longest.*", "counting.filled", "counting.rederived"),
    *("utility.published.*", "utility.originals.*", "utility.majority"),
    *("likeness.pairs", "likeness.pairs_texts", "likeness.meaning", "likeness.meaning_texts"),
    *(f"diversity.{name}" for name in _DIVERSITY),
    *(f"diversity.originals.{name}" for name in _DIVERSITY),
    *("verbatim.public", "verbatim.private", "verbatim.longest"),
    *(
        f"attack.{game}.{name}"
        for game in _GAMES
        for name in ("success", "prior", "bound", "claimed_bound", "audited")
    ),
    "attack.canary.closed_form",
    *(
        f"attack.{name}.{figure}"
        for name in _CURVES
        for figure in ("auc", "auc_bound", "claimed_auc", "advantage", "tpr.at_*")
    ),
    *(f"attack.{name}.tpr_bound.at_*" for name in _GAMES),
    *(f"attack.{name}.auc.release_*" for name in ("nearest", "runs")),
    *(f"attack.null.{name}" for name in ("success", "prior", "audited", "auc")),
    *(f"attack.planted.{name}" for name in ("success", "prior", "bound", "audited", "auc")),
    *("attack.planted.draws", "attack.planted.excess"),
    *("attack.rare_word.audited", "attack.rare_word.null", "attack.copied.auc"),
    *(
        f"attack.{game}.{name}"
        for game in ("seed", "search", "length", "exposure", "author", "boundary")
        for name in ("success", "prior", "bound", "closed_form", "claimed_bound")
    ),
    *(
        f"attack.{game}.{name}"
        for game in ("exposure", "author")
        for name in ("advantage", "candidates")
    ),
    *("attack.bare.auc", "attack.search.texts"),
    *(
        f"attack.{game}_bare.{name}"
        for game in ("exposure", "author")
        for name in ("success", "prior")
    ),
    *("attack.exposure.bits", "attack.exposure.bits_by_chance", "attack.boundary.audited"),
)

CLAIM_NAMES = (
    *("release", "all_releases", "author", "corpus"),
    *("lengths", "pieces", "pairs"),
    *("generalisation", "vocabulary", "seeds", "copied_lengths", "counts"),
)
