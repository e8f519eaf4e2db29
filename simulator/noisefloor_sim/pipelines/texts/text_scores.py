"""Utility and likeness: what classifiers learn of published texts, and AUC against real texts.

All is measured on texts that were never posted. Nothing here is private or published.
"""

import numpy as np

from noisefloor.publication.text.evaluation import (
    BENCHMARK,
    class_f1,
    discriminate_meaning,
    discriminate_pairs,
    evaluate_utility,
    measure_diversity,
    verbatim_runs,
)
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.texts.block import TextsBlock
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora

VERBATIM = 8
"""Pieces in a row that count as copied."""


def score_texts(
    corpora: PublishedCorpora, block: TextsBlock, source: SeededSource
) -> list[Metric]:
    """Return all measures of the last corpus, and of every one how useful it is."""
    return [
        *_utility(corpora),
        *_likeness(corpora, block, source),
        *_diversity(corpora, source),
        *_copies(corpora),
    ]


def _utility(corpora: PublishedCorpora) -> list[Metric]:
    """Return macro F1 of classifiers trained on made-up texts, and on the posts themselves."""
    classes = corpora.posts.records.schema.classes.size
    real, size = corpora.held_out, corpora.size
    named = {"published": corpora.last, "originals": corpora.collected()}
    metrics = []
    for name, corpus in named.items():
        found = evaluate_utility(corpus, real, size, classes, BENCHMARK)
        metrics += [
            Metric(f"utility.{name}.{one.replace('-', '_')}", scores.macro_f1, n=real.count)
            for one, scores in found.items()
        ]
    common = np.bincount(corpora.collected().labels).argmax()
    f1 = class_f1(np.full(real.count, common), real.labels, classes)
    metrics.append(Metric("utility.majority", float(np.mean(f1)), n=real.count))
    for number, corpus in enumerate(corpora.published):
        (scores,) = evaluate_utility(corpus, real, size, classes, BENCHMARK[:1]).values()
        metrics.append(Metric(f"utility.published.release_{number}", scores.macro_f1))
    return metrics


def _likeness(corpora: PublishedCorpora, block: TextsBlock, source: SeededSource) -> list[Metric]:
    """Return AUCs of made-up against real texts, by pairs and by meaning."""
    made = [
        discriminate_pairs(
            corpora.held_out, corpora.last, corpora.size, source.child("pairs"), block.judged
        )
    ]
    if not block.is_made_up:  # there is no encoder of a made-up language
        from noisefloor.publication.fine_tuning import shared_backbone

        made.append(
            discriminate_meaning(
                corpora.held_out,
                corpora.last,
                shared_backbone(),
                source.child("meaning"),
                block.judged,
            )
        )
    return [
        metric
        for one in made
        for metric in (
            Metric(f"likeness.{one.name}", one.auc, *one.interval, one.tested),
            Metric(f"likeness.{one.name}_texts", float(one.n)),
        )
    ]


def _diversity(corpora: PublishedCorpora, source: SeededSource) -> list[Metric]:
    metrics = []
    for name, corpus in (("", corpora.last), ("originals.", corpora.collected())):
        found = measure_diversity(
            corpus, corpora.public, corpora.size, source.child(f"diversity {name}"), 100
        )
        values = {
            "distinct_1": found.distinct_1,
            "distinct_2": found.distinct_2,
            "self_bleu": found.self_bleu,
            "pieces": float(found.vocabulary),
            "rare_share": found.rare_share,
        }
        metrics += [Metric(f"diversity.{name}{one}", value) for one, value in values.items()]
    return metrics


def _copies(corpora: PublishedCorpora) -> list[Metric]:
    """Return the share of texts with a long run of public text, and of posted texts."""
    public = verbatim_runs(corpora.last, corpora.public)
    private = verbatim_runs(corpora.last, corpora.collected())
    longest = int(private.longest.max(initial=0))
    return [
        Metric("verbatim.public", public.share(VERBATIM), n=corpora.last.count),
        Metric("verbatim.private", private.share(VERBATIM), n=corpora.last.count),
        Metric("verbatim.longest", float(longest), n=corpora.last.count),
    ]
