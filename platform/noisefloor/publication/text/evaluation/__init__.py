"""Judging published texts against real ones that were kept out: for the holder of the data.

    evaluate_utility(published, held_out, size, classes=2)   # F1 of classifiers trained on them
    discriminate_pairs(held_out, published, size, source)    # AUC against real texts, and n
    model = TrigramModel.train(public, size)                 # of public texts
    fluency_of(model.nats(published), published.lengths)     # nats a piece

``utility``, ``discriminators``, ``fluency`` and ``diversity`` measure quality; ``residual_idf``,
``printed_privacy_loss`` and ``verbatim_runs`` what texts have in common. Nothing here is private,
and nothing of it is published with the texts. scikit-learn, scipy and torch are imported on first
use.
"""

from noisefloor.publication.text.evaluation.area import area_interval, rank_area
from noisefloor.publication.text.evaluation.class_scores import ClassScores, class_f1
from noisefloor.publication.text.evaluation.discriminators import (
    Discrimination,
    discriminate_meaning,
    discriminate_pairs,
    token_table,
)
from noisefloor.publication.text.evaluation.diversity import (
    Diversity,
    measure_diversity,
    self_bleu,
)
from noisefloor.publication.text.evaluation.features import (
    pair_presence,
    piece_counts,
    piece_presence,
)
from noisefloor.publication.text.evaluation.fluency import (
    Fluency,
    FluencyGap,
    fluency_of,
    pretrained_nats,
)
from noisefloor.publication.text.evaluation.printed_privacy_loss import (
    PrintedPrivacyLoss,
    largest_next,
    printed_privacy_loss,
)
from noisefloor.publication.text.evaluation.residual_idf import (
    CosineSummary,
    compare_cosines,
    cosines,
    residual_idf,
    ridf_vectors,
)
from noisefloor.publication.text.evaluation.trigram_model import TrigramModel
from noisefloor.publication.text.evaluation.utility import (
    BENCHMARK,
    PAPER,
    classifier_names,
    evaluate_utility,
    mean_scores,
)
from noisefloor.publication.text.evaluation.verbatim_runs import VerbatimRuns, verbatim_runs
from noisefloor.publication.text.evaluation.windows import Windows, number_windows

__all__ = [
    "BENCHMARK",
    "PAPER",
    "ClassScores",
    "CosineSummary",
    "Discrimination",
    "Diversity",
    "Fluency",
    "FluencyGap",
    "PrintedPrivacyLoss",
    "TrigramModel",
    "VerbatimRuns",
    "Windows",
    "area_interval",
    "class_f1",
    "classifier_names",
    "compare_cosines",
    "cosines",
    "discriminate_meaning",
    "discriminate_pairs",
    "evaluate_utility",
    "fluency_of",
    "largest_next",
    "mean_scores",
    "measure_diversity",
    "number_windows",
    "pair_presence",
    "piece_counts",
    "piece_presence",
    "pretrained_nats",
    "printed_privacy_loss",
    "rank_area",
    "residual_idf",
    "ridf_vectors",
    "self_bleu",
    "token_table",
    "verbatim_runs",
]
