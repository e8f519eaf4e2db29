"""Privacy on the page: each part of the pipeline, and recomputed figures of scripts."""

from collections.abc import Mapping

from noisefloor.privacy import Claim, Guarantee
from noisefloor.publication.text.entities import EntityKind, RecallCount
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.budgets import seed_delta
from noisefloor_sim.papers.text.computed import (
    PARTS_ORDER,
    claimed,
    parts_of,
    script_epsilon,
    script_sigma,
)
from noisefloor_sim.papers.text.plans import (
    VARIANT_WORDS,
    VARIANTS,
    TextRunPlan,
    cell_at,
)
from noisefloor_sim.papers.text.results import TextsFound
from noisefloor_sim.report import Cell, ClaimRow, Figures, Reading, Section, Table, number, upper

RELATIONS = {
    "generalisation": "compare forms with and without the k-th document",
    "weights, names left": "a canary's gradient, membership",
    "weights after generalisation": "a canary that stands at count k",
    "seeds": "a word of one document shows up",
    "lengths": "a length that is there once",
    "vocabulary": "the pieces of the last layer",
    "labels may change": "membership",
    "whole": "exposure of secrets",
    "whole, for an author": "who wrote it",
}
"""What an attack on each part looks at."""


def claim_rows(found: TextsFound, plan: TextRunPlan) -> list[ClaimRow]:
    """Return what is claimed and proved of DPvG E-D as a whole."""
    rows = []
    for variant in VARIANTS:
        whole = next(one for one in parts_of(found, plan, variant) if one.name == "whole")
        rows.append(
            ClaimRow.of(
                Claim(claimed(plan), whole.guarantee),
                "DPvG E-D",
                pipeline="generator and texts",
                variant=VARIANT_WORDS[variant],
            )
        )
    return rows


def privacy_section(
    found: TextsFound, plan: TextRunPlan, recall: Mapping[EntityKind, RecallCount]
) -> Section:
    """Return the section on what is proved."""
    return Section(
        "Privacy",
        "One document added or removed, central model, unless a line says otherwise. Claimed is "
        f"epsilon {plan.epsilon:g} at delta {number(printed.DELTA)} for each part; the paper "
        "prints no epsilon, sigma or delta. Where nothing is proved the reason stands beside it.",
        [
            _parts_table(found, plan),
            _reasons_table(found, plan),
            _noise_table(),
            _seed_table(found, plan),
            _recall_table(recall),
        ],
    )


def _parts_table(found: TextsFound, plan: TextRunPlan) -> Table:
    columns = [{one.name: one for one in parts_of(found, plan, variant)} for variant in VARIANTS]
    rows: list[tuple[Cell, ...]] = []
    for name in PARTS_ORDER:
        parts = [column[name] for column in columns]
        relation = parts[0].guarantee.neighbours.value
        said = [_said(one.guarantee) for one in parts]
        rows.append((name, _claimed(name, plan), *said, relation, RELATIONS[name]))
    return Table(
        "Epsilon of each part of DPvG E-D",
        "As proved; the last column is what an attack looks at.",
        ("part", "claimed", *(VARIANT_WORDS[one] for one in VARIANTS), "neighbours", "attack"),
        rows,
        readings=((_adds_up(found, plan),),),
    )


def _claimed(name: str, plan: TextRunPlan) -> str:
    if name == "generalisation":
        return "k-anonymity"
    return "-" if name in ("lengths", "vocabulary") else upper(plan.epsilon, printed.DELTA)


def _said(guarantee: Guarantee) -> str:
    if guarantee.is_finite and guarantee.delta >= 1:
        return f"{upper(guarantee.epsilon)} at delta 1: nothing"
    return upper(guarantee.epsilon, guarantee.delta)


def _adds_up(found: TextsFound, plan: TextRunPlan) -> Reading[Table]:
    parts = {one.name: one.guarantee.epsilon for one in parts_of(found, plan, "corrected")}
    names = ("generalisation", "weights after generalisation", "seeds", "lengths", "vocabulary")
    figures = {
        "parts": " + ".join(number(parts[name]) for name in names),
        "whole": upper(parts["whole"]),
        "claimed": f"{plan.epsilon:g}",
    }
    sentence = "Corrected, the parts add up: {parts} is {whole}, of {claimed} that is claimed."
    return Reading(sentence, lambda table: figures)


def _reasons_table(found: TextsFound, plan: TextRunPlan) -> Table:
    rows = [
        (VARIANT_WORDS[variant], part.name, part.words, part.guarantee.reason)
        for variant in VARIANTS
        for part in parts_of(found, plan, variant)
        if not part.name.startswith("whole")
    ]
    return Table(
        "What each figure follows from",
        "",
        ("variant", "part", "follows from", "why nothing is proved"),
        rows,
    )


def _noise_table() -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            f"epsilon at sigma {printed.SCRIPT_SIGMA:g}, noise {place} of 1/L",
            printed.EPOCHS,
            script,
            script_epsilon(place),
            script_epsilon(place, "pld"),
        )
        for place, script in zip(("inside", "outside"), printed.SCRIPT_EPSILONS, strict=True)
    ]
    rows += [
        (f"sigma for epsilon {epsilon:g}", epochs, sigma, script_sigma(epochs, epsilon), None)
        for epochs, table in printed.SCRIPT_SIGMAS.items()
        for epsilon, sigma in table.items()
    ]
    return Table(
        "Noise and epsilon, recomputed",
        f"{printed.SCRIPT_DOCUMENTS:,} documents, batches of {printed.SCRIPT_BATCH}, delta "
        f"{number(printed.DELTA)}. Noise of sigma C on a mean whose sensitivity is C / L is L "
        "times what sigma says.",
        ("figure", "epochs", "independent script", "Renyi accounting", "PLD"),
        rows,
        readings=(
            (Reading("{near} of {n} figures are those of the script, within 1 %.", _near),),
        ),
    )


def _near(table: Table) -> Figures | None:
    pairs = [(float(str(row[2])), float(str(row[3]))) for row in table.rows]
    return {"near": sum(abs(one / other - 1) < 0.01 for one, other in pairs), "n": len(pairs)}


def _seed_table(found: TextsFound, plan: TextRunPlan) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (f"independent script, c = {count}", printed.SCRIPT_PIECES, printed.SCRIPT_TEXTS,
         seed_delta(printed.SCRIPT_PIECES, printed.SCRIPT_TEXTS, count))
        for count in printed.SCRIPT_SEED_DELTAS
    ]  # fmt: skip
    facts = found[cell_at("dp-ed", plan.epsilon, "inside")]["seeds"]["labels"]
    rows += [
        (f"here, {label}, c = 1", one["pieces"], one["texts"], one["delta"])
        for label, one in zip(printed.LABELS, facts, strict=True)
    ]
    return Table(
        "Seeds that are drawn from private pieces",
        "The chance that a piece of one document alone, c times among n pieces, is the first of "
        "one of d texts: 1 - (1 - c/n)^d. Without the document it is 0, so below that delta "
        "epsilon is infinite.",
        ("corpus", "pieces n", "texts d", "delta"),
        rows,
        readings=((Reading("At least {times} times the delta of {delta}.", _times),),),
    )


def _recall_table(recall: Mapping[EntityKind, RecallCount]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (kind.name.lower(), one.known, one.covered, one.recall, one.named_recall)
        for kind, one in recall.items()
    ]
    return Table(
        "Names that the tagger finds",
        "In made-up texts whose names are known; real texts are harder. What it misses stays in "
        "the texts, whatever k is.",
        ("kind", "names", "found", "recall", "recall by kind"),
        rows,
        readings=((Reading("{missed} of {n} names are missed.", _missed),),),
    )


def _missed(table: Table) -> Figures | None:
    known, covered = (sum(int(str(row[at])) for row in table.rows) for at in (1, 2))
    return {"missed": known - covered, "n": known}


def _times(table: Table) -> Figures | None:
    least = min(float(str(row[3])) for row in table.rows) / printed.DELTA
    return {"times": f"{least:,.0f}", "delta": number(printed.DELTA)} if least >= 1 else None
