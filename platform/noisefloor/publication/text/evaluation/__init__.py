"""Judging published texts against real ones that were kept out: for the holder of the data.

    evaluate_utility(published, held_out, size, classes=2)   # F1 of classifiers trained on them
    discriminate_pairs(held_out, published, size, source)    # how well fakes are told, and n

Nothing here is private, and nothing of it is published with the texts. scikit-learn, scipy and
torch are imported on first use.
"""

from noisefloor.publication.text.evaluation.area import area_interval, rank_area
from noisefloor.publication.text.evaluation.class_scores import ClassScores, class_f1
from noisefloor.publication.text.evaluation.discriminators import (
    Discrimination,
    discriminate_meaning,
    discriminate_pairs,
    token_table,
)
from noisefloor.publication.text.evaluation.features import (
    pair_presence,
    piece_counts,
    piece_presence,
)
from noisefloor.publication.text.evaluation.utility import (
    BENCHMARK,
    PAPER,
    classifier_names,
    evaluate_utility,
    mean_scores,
)

__all__ = [
    "BENCHMARK",
    "PAPER",
    "ClassScores",
    "Discrimination",
    "area_interval",
    "class_f1",
    "classifier_names",
    "discriminate_meaning",
    "discriminate_pairs",
    "evaluate_utility",
    "mean_scores",
    "pair_presence",
    "piece_counts",
    "piece_presence",
    "rank_area",
    "token_table",
]
