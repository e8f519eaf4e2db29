"""Made-up texts from noisy counts of pieces and pairs, the baseline that networks have to beat.

    plan = NgramPlan.of(cost, classes=2, longest=60, vocabulary=30_522)
    tables = release_ngrams(documents, plan, public, source)    # every table once, with noise
    counts = read_ngrams(plan, public, tables)                  # from here on without documents
    writer = NgramWriter(fit_pairs(counts, tokeniser.continuations), plan.bin_width, plan.longest)
    writer.write(100_000, source.child("texts"))

``ngram_plan`` says what is counted with how much noise; ``noisy_counts`` bounds what a document
changes; ``table_cells`` says which cells there are; ``count_tables`` and ``counting`` read
documents, and release noisy tables. Everything after that takes no document: ``released_tables``
reads the tables, by ``shrinkage`` and ``piece_estimates``; ``pair_model`` fits chains;
``document_shapes`` draws labels and lengths; ``writing`` writes. ``public_corpus`` is what is
known without any table, ``public_texts`` where it comes from.
"""

from noisefloor.publication.text.ngrams.count_tables import count_cells
from noisefloor.publication.text.ngrams.counting import (
    count_ngrams,
    release_ngrams,
    release_pieces,
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
from noisefloor.publication.text.ngrams.released_tables import (
    NgramCounts,
    PieceCounts,
    ReleasedTables,
    ngram_tables,
    read_ngrams,
    read_pieces,
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
    "ReleasedTables",
    "count_cells",
    "count_ngrams",
    "counting_loss",
    "counting_tokeniser",
    "draw_lengths",
    "fit_pairs",
    "ngram_tables",
    "noise_of",
    "public_corpus",
    "read_ngrams",
    "read_pieces",
    "release_ngrams",
    "release_pieces",
    "spread_labels",
]
