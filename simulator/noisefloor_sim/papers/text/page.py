"""The page of generated texts: scores, likeness, variety, privacy, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from noisefloor.publication.text.entities import EntityKind, RecallCount
from noisefloor_sim.papers import intervals, verdicts
from noisefloor_sim.papers.output import claims_table, tests_table
from noisefloor_sim.papers.text import claims, printed
from noisefloor_sim.papers.text.claims import variant_title
from noisefloor_sim.papers.text.computed import PRIVACY_VARIANT
from noisefloor_sim.papers.text.likeness_tables import (
    cosine_table,
    diversity_table,
    heat_maps,
    loss_plot,
    sample_table,
)
from noisefloor_sim.papers.text.plans import FULL, VARIANTS, TextRunPlan, cell_at
from noisefloor_sim.papers.text.privacy_tables import claim_rows, privacy_section
from noisefloor_sim.papers.text.results import TextsFound, runs_of
from noisefloor_sim.papers.text.score_tables import score_plot, score_table
from noisefloor_sim.report import Page, RunCard, Section

DIGITS = 3
EXPECTATION = (
    "Every printed claim comes out, and the epsilon that is claimed is proved of all that is "
    "released."
)
READINGS = (
    "The paper's subset of IMDB, epsilon, noise, batch, k, vocabulary and sizes are not printed; "
    "so printed scores stand beside ours and are not judged, orders are.",
    "Three epochs of small networks, where the paper has 500; reviews of at least 60 pieces, cut "
    "to 60; a fifth of the real texts judges in each split.",
    "Settings were fixed on a split that is not reported; nothing was chosen on these texts.",
    "How many texts of each label there are counts as public, to two digits.",
    "'Original' is read both as the texts themselves and as E-D without privacy.",
    "The encoder reads the text that the decoder writes, as printed; corrected, it reads the word "
    "that it is given when texts are written.",
    "Levels of people's names, k = 5 and the two corpora of the privacy loss are our reading.",
    "Scores and shares have intervals over splits; cosines over real texts and losses over input "
    "pieces have intervals for the generators that were trained, and others may differ by more.",
)


@dataclass(frozen=True, eq=False)
class TextOutcome:
    """All that a page shows.

    Attributes:
        plan: What was run.
        found: Every cell.
        judged: Every claim.
        title: Of the texts.
        count: How many there are.
        recall: Of the tagger, on made-up texts.
    """

    plan: TextRunPlan
    found: TextsFound
    judged: verdicts.Judged
    title: str
    count: int
    recall: Mapping[EntityKind, RecallCount]

    @cached_property
    def runs(self) -> intervals.Runs:
        """All figures, run by run."""
        return runs_of(self.found, self.plan)

    @property
    def titles(self) -> dict[str, str]:
        """What claims are about."""
        return {
            claims.SPLITS: f"{self.title}, splits",
            claims.TEXTS: f"{self.title}, texts",
            claims.INPUTS: f"{self.title}, inputs",
            claims.NUMBERS: "paper",
        }


def page_of(outcome: TextOutcome, card: Sequence[tuple[str, str]]) -> Page:
    """Return the whole page."""
    first = variant_title(VARIANTS[0])
    return Page(
        name="reproduce text",
        question="Do generalised names make privately generated texts better, and are they "
        "private as printed?",
        expectation=EXPECTATION,
        verdict_sentence=f"{verdicts.sentence(outcome.judged)} {privacy_sentence(outcome)}",
        verdict_ok=verdicts.all_hold(outcome.judged[first]),
        claims=claim_rows(outcome.found, outcome.plan),
        sections=[
            _score_section(outcome),
            _likeness_section(outcome),
            _variety_section(outcome),
            _loss_section(outcome),
            privacy_section(outcome.found, outcome.plan, outcome.recall),
            _verdict_section(outcome),
        ],
        run_card=RunCard(card),
        warnings=warnings_of(outcome.plan),
    )


def warnings_of(plan: TextRunPlan) -> list[str]:
    """Say what a quick run leaves out."""
    if plan.name == FULL.name:
        return []
    return [
        f"Quick run: at most {plan.records:,} texts, {plan.splits} splits, small networks and few "
        "epsilons. It shows that everything runs; its scores say little."
    ]


def privacy_sentence(outcome: TextOutcome) -> str:
    """Say what is proved of the whole."""
    judged = {one.claim.key: one for one in outcome.judged[PRIVACY_VARIANT]}
    whole = judged["whole-corrected"].deciding
    facts = outcome.found[cell_at("dp-ed", outcome.plan.epsilon, "printed")]["seeds"]
    return (
        "As printed nothing is proved of the texts as a whole: seeds alone have infinite epsilon "
        f"below delta {facts['delta']:.3g}, {facts['delta'] / printed.DELTA:,.0f} times the delta "
        f"that is claimed. Corrected, epsilon {whole.value:.3f} is proved."
    )


def _score_section(outcome: TextOutcome) -> Section:
    runs, plan = outcome.runs, outcome.plan
    tables = [score_table(runs, plan, variant) for variant in VARIANTS]
    intro = (
        f"Classifiers learn from {outcome.title} texts or from what was written instead, about as "
        "many, and are tested on real texts that no system has seen."
    )
    return Section("Scores", intro, [*tables, score_plot(runs, outcome.found, plan)])


def _likeness_section(outcome: TextOutcome) -> Section:
    table = cosine_table(outcome.runs, outcome.found, outcome.plan)
    intro = (
        "A piece that comes in bursts weighs more than one that is spread evenly. The paper "
        "compares heat maps by eye."
    )
    return Section("Likeness", intro, [table, *heat_maps(outcome.found, outcome.plan)])


def _variety_section(outcome: TextOutcome) -> Section:
    items = [
        diversity_table(outcome.runs, outcome.found, outcome.plan),
        sample_table(outcome.found, outcome.plan),
    ]
    return Section("Variety and rare words", "What systems write.", items)


def _loss_section(outcome: TextOutcome) -> Section:
    plots = [loss_plot(outcome.runs, outcome.plan, variant) for variant in VARIANTS]
    return Section(
        "The paper's privacy loss: no audit",
        "Equation (2) of the paper, for the likeliest output of each generator. There is no pair "
        "of neighbouring corpora and no supremum over outputs, so that nothing follows for "
        "epsilon; it is shown because the paper's third claim is about it.",
        plots,
    )


def _verdict_section(outcome: TextOutcome) -> Section:
    tables = [
        claims_table(some, outcome.titles, name, DIGITS) for name, some in outcome.judged.items()
    ]
    every = [one for some in outcome.judged.values() for one in some]
    tests = tests_table(every, outcome.titles, "Every test", "With its own interval.", DIGITS)
    return Section("Printed and run again", " ".join(READINGS), [*tables, tests])
