"""Figures of published texts along the swept key: how useful, how alike, what attacks reach."""

from collections.abc import Iterator

from noisefloor_sim.pipelines import plotting
from noisefloor_sim.pipelines.releases import shared_curves
from noisefloor_sim.report import Plot, Role, Table, readings

_BASELINES: dict[str, tuple[str, Role]] = {
    "utility.originals.logistic_presence": ("trained on the posts themselves", "baseline"),
    "utility.majority": ("majority class", "baseline"),
}

_LINES: dict[str, tuple[str, Role]] = {
    "attack.runs.claimed_auc": ("bound of what is claimed", "bound"),
    "attack.bare.auc": ("texts with next to no noise", "baseline"),
}


def along_axis(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Plot]:
    """Draw what runs along the axis."""
    curves = plotting.measured_curves(groups, "utility.published.logistic_presence")
    if curves:
        yield Plot(
            "What a classifier learns of made-up texts",
            "Macro F1 on real texts that were never posted, of a logistic regression on presence "
            "of pieces that was trained on the last corpus; beside one trained on the posts.",
            axis.label,
            "macro F1",
            [*curves, *shared_curves(groups, _BASELINES)],
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.TREND, readings.against("majority class")),
        )
    curves = plotting.measured_curves(groups, "likeness.pairs")
    if curves:
        yield Plot(
            "AUC of classifiers of made-up against real texts",
            "Area of a discriminator that sees pieces and pairs; 0.5 is guessing. It rises with "
            "the number of texts, which the table below has.",
            axis.label,
            "area under the curve",
            curves,
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.TREND,),
        )
    curves = plotting.measured_curves(groups, "attack.runs.auc")
    if curves:
        yield Plot(
            "Whose text is in the corpus, by shared runs of pieces",
            "0.5 is guessing. The bound is of the mean area for one text that becomes another; "
            "other texts of the same author help the analyst, and it does not speak of them.",
            axis.label,
            "area under the curve",
            [*curves, *shared_curves(groups, _LINES)],
            log_x=plotting.is_logarithmic(groups),
            readings=(readings.BOUND,),
        )


def tables(groups: plotting.Groups, axis: plotting.Axis) -> Iterator[Table]:
    """List likeness, diversity and copies, and what attacks on membership reached."""
    yield _table(
        groups,
        axis,
        "How good the last corpus is",
        "F1 on texts that were never posted. Pairs and meaning: areas of discriminators, and of "
        "how many texts of each kind; meaning needs an encoder of the language. Distinct pairs: "
        "different pairs over all. Public runs: texts that share eight pieces in a row with "
        "public text; private runs: with a post.",
        {
            "F1, naive Bayes": "utility.published.naive_bayes",
            "of posts": "utility.originals.naive_bayes",
            "F1, logistic": "utility.published.logistic_presence",
            "of the posts": "utility.originals.logistic_presence",
            "pairs": "likeness.pairs",
            "meaning": "likeness.meaning",
            "texts": "likeness.pairs_texts",
            "distinct pairs": "diversity.distinct_2",
            "self-BLEU": "diversity.self_bleu",
            "rare pieces": "diversity.rare_share",
            "public runs": "verbatim.public",
            "private runs": "verbatim.private",
        },
        readings.column_range("F1, logistic", "Logistic regressions reach {span}."),
    )
    yield _table(
        groups,
        axis,
        "What attacks and audits reached",
        "Areas of membership: by the nearest text, by shared runs, by runs in a corpus with next "
        "to no noise, and in a corpus that copies. Rare words: area of guesses who posted one, "
        "and the epsilon that they prove; the null has other draws. Bits: of secrets, of which a "
        "corpus that gives nothing away has those by chance. With next to no noise: right guesses "
        "of secrets and authors where nothing protects a text. Counted: what texts of the largest "
        "norm add to a table, over what is declared; 1 at most.",
        {
            "nearest": "attack.nearest.auc",
            "runs": "attack.runs.auc",
            "runs, no noise": "attack.bare.auc",
            "copied": "attack.copied.auc",
            "rare words": "attack.rare_word.auc",
            "proves": "attack.rare_word.audited",
            "null": "attack.rare_word.null",
            "bits": "attack.exposure.bits",
            "bits by chance": "attack.exposure.bits_by_chance",
            "secrets, no noise": "attack.exposure_bare.success",
            "authors, no noise": "attack.author_bare.success",
            "boundary proves": "attack.boundary.audited",
            "counted, pieces": "counting.longest.pieces",
            "counted, pairs": "counting.longest.pairs",
        },
        readings.column_count(
            "null",
            lambda audited: audited > 0,
            some="{k} of {n} null games raise a false alarm.",
            none="None of {n} null games raises a false alarm.",
        ),
    )


def _table(
    groups: plotting.Groups,
    axis: plotting.Axis,
    title: str,
    describes: str,
    columns: dict[str, str],
    said: readings.TableReadings,
) -> Table:
    """Return a table of metrics; without those that were measured at no point."""
    rows = plotting.mean_rows(groups, tuple(columns.values()))
    header = ("curve", axis.word, *columns)
    kept = [
        0,
        1,
        *(at for at in range(2, len(header)) if any(row[at] is not None for row in rows)),
    ]
    shown = [tuple(row[at] for at in kept) for row in rows]
    return Table(title, describes, tuple(header[at] for at in kept), shown, (said,))
