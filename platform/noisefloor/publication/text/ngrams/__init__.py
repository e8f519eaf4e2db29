"""Made-up texts from noisy counts of pieces and pairs, the baseline that networks have to beat.

    plan = NgramPlan.of(cost, classes=2, longest=60, vocabulary=30_522)
    counts = count_ngrams(documents, plan, public, source)      # every table once, with noise
    writer = NgramWriter(fit_pairs(counts, tokeniser.continuations), plan.bin_width, plan.longest)
    writer.write(100_000, source.child("texts"))

``ngram_plan`` says what is counted with how much noise; ``noisy_counts`` bounds what a document
changes; ``count_tables`` says which cells there are, ``counting`` counts; ``shrinkage``,
``piece_estimates`` and ``pair_model`` use noisy tables alone; ``public_corpus`` is what is known
without them, ``public_texts`` where it comes from; ``document_shapes`` draws labels and lengths,
``writing`` writes.
"""

from noisefloor.publication.text.ngrams.counting import (
    NgramCounts,
    PieceCounts,
    count_ngrams,
    count_pieces,
)
from noisefloor.publication.text.ngrams.document_shapes import draw_lengths, spread_labels
from noisefloor.publication.text.ngrams.ngram_plan import MOST_CLASSES, NgramPlan, noise_of
from noisefloor.publication.text.ngrams.noisy_counts import (
    CellCounts,
    CountingBound,
    NoisyCounting,
    counting_loss,
)
from noisefloor.publication.text.ngrams.pair_model import PairModel, fit_pairs
from noisefloor.publication.text.ngrams.public_corpus import PublicCorpus
from noisefloor.publication.text.ngrams.public_texts import DEFAULT as DEFAULT_PUBLIC_TEXTS
from noisefloor.publication.text.ngrams.public_texts import (
    OWN_TEXTS_VARIABLE,
    counting_tokeniser,
    public_corpus,
)
from noisefloor.publication.text.ngrams.writing import ChainSampler, NgramWriter

__all__ = [
    "DEFAULT_PUBLIC_TEXTS",
    "MOST_CLASSES",
    "OWN_TEXTS_VARIABLE",
    "CellCounts",
    "ChainSampler",
    "CountingBound",
    "NgramCounts",
    "NgramPlan",
    "NgramWriter",
    "NoisyCounting",
    "PairModel",
    "PieceCounts",
    "PublicCorpus",
    "count_ngrams",
    "count_pieces",
    "counting_loss",
    "counting_tokeniser",
    "draw_lengths",
    "fit_pairs",
    "noise_of",
    "public_corpus",
    "spread_labels",
]
