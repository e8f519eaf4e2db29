"""The page of the low-rank reproduction: heat maps, accuracy over epsilon, privacy, verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from noisefloor_sim.papers import intervals, verdicts
from noisefloor_sim.papers.lowrank import auditing, printed
from noisefloor_sim.papers.lowrank.claims import PRINTED_VARIANT
from noisefloor_sim.papers.lowrank.plans import (
    DP_SGD,
    FACTORS,
    FULL,
    HEAD,
    LOW_RANK,
    PLAIN,
    SPARSE,
    SPLIT_METHODS,
    CellClipping,
    LowRankCell,
    LowRankPlan,
    audits_of,
)
from noisefloor_sim.papers.lowrank.privacy_tables import (
    CLIPPING_WORDS,
    claim_row,
    privacy_section,
)
from noisefloor_sim.papers.lowrank.rank_maps import here_map, printed_map
from noisefloor_sim.papers.lowrank.results import Found, accuracy, by_split, text_scores
from noisefloor_sim.papers.output import claims_table
from noisefloor_sim.report import (
    Cell,
    Curve,
    Figures,
    Page,
    Plot,
    Reading,
    RunCard,
    Section,
    Table,
)

EXPECTATION = (
    "Every printed claim comes out, and the epsilon that is claimed is proved of all that is "
    "released."
)
READINGS = (
    "Other data and a smaller backbone than the paper's (SST-2, RoBERTa-base), so printed "
    "accuracies stand beside ours and are not judged; orders and gaps are.",
    "The last layer is trained, on kept outputs of those below; the paper trains all matrices, "
    "for 20 epochs in batches of 2,000 at C = 10.",
    "Rates were fixed on IMDB, ranks and sparsities are the paper's, C is 1: nothing was chosen "
    "on these texts.",
    "Each model is trained once in each split. An interval is over judged texts, for the trained "
    "models; another training may differ by more.",
    "'As printed' clips every factor matrix at C and adds noise for C alone, for RGP and LoRA as "
    "well, which are the algorithm without masks; 'corrected' clips one norm over all.",
)
PRINTED_AT_2 = {
    "RGP": printed.TABLE_2[printed.RGP_BASELINE, 0.0],
    "Ours(RGP)": printed.TABLE_2[printed.RGP_CHOICE],
    "LoRA": printed.TABLE_3[printed.LORA_BASELINE, 0.0],
    "Ours(LoRA)": printed.TABLE_3[printed.LORA_CHOICE],
}


@dataclass(frozen=True, slots=True)
class LowRankOutcome:
    """All that a page shows.

    Attributes:
        plan: What was run.
        found: Every cell.
        judged: Every claim.
        title: Of the texts.
        records: How many there are.
        groups: What is clipped apart where each matrix is.
    """

    plan: LowRankPlan
    found: Found
    judged: verdicts.Judged
    title: str
    records: int
    groups: int

    def proved(self, cell: LowRankCell) -> float:
        """Return the epsilon that is proved of a private training."""
        if cell.clipping == "joint":
            return cell.epsilon
        one = self.found[cell]
        examples = self.records - len(one["right"])
        return auditing.proved_as_printed(cell, self.plan, examples, one["noise"], self.groups)

    @property
    def titles(self) -> dict[str, str]:
        """What claims are about."""
        return {"texts": self.title, "backbone": "backbone", "printed": "paper"}


def page_of(outcome: LowRankOutcome, card: Sequence[tuple[str, str]]) -> Page:
    """Return the whole page."""
    audits = audits_of(outcome.plan)
    return Page(
        name="reproduce lowrank",
        question="Do low rank and masks of units make private fine-tuning better, and is it "
        "private as printed?",
        expectation=EXPECTATION,
        verdict_sentence=f"{verdicts.sentence(outcome.judged)} {epsilon_sentence(outcome)}",
        verdict_ok=verdicts.all_hold(outcome.judged[PRINTED_VARIANT]),
        claims=[claim_row(cell, outcome.found[cell]) for cell in audits],
        sections=[
            _rank_section(outcome),
            _epsilon_section(outcome),
            _clip_section(outcome),
            privacy_section(outcome.found, audits, outcome.plan.games),
            Section(
                "Printed and run again",
                " ".join(READINGS),
                [
                    claims_table(some, outcome.titles, name)
                    for name, some in outcome.judged.items()
                ],
            ),
        ],
        run_card=RunCard(card),
        warnings=warnings_of(outcome.plan),
    )


def warnings_of(plan: LowRankPlan) -> list[str]:
    """Say what a quick run leaves out."""
    if plan.name == FULL.name:
        return []
    return [
        f"Quick run: at most {plan.records:,} texts, {plan.steps} steps, few ranks, sparsities "
        "and epsilons. It shows that everything runs; its accuracies say little."
    ]


def epsilon_sentence(outcome: LowRankOutcome) -> str:
    """Say what audits of clipping as printed found."""
    audits = audits_of(outcome.plan)
    some = [one for one in audits if one.clipping == "printed" and one.method == "roberta"]
    above = [one for one in some if outcome.found[one]["audited"] > one.epsilon]
    reached = ", ".join(
        f"{outcome.found[one]['audited']:.1f} instead of {one.epsilon:g}" for one in above
    )
    groups = outcome.found[some[0]]["groups"]
    return (
        f"Clipping as printed in {groups} groups: an audit reaches more than the claimed epsilon "
        f"in {len(above)} of {len(some)} cases{f' ({reached})' if reached else ''}."
    )


def _rank_section(outcome: LowRankOutcome) -> Section:
    items: list[Plot | Table] = []
    for method, table in (("rgp", printed.TABLE_2), ("lora", printed.TABLE_3)):
        items.append(printed_map(method, table))
        items += [
            here_map(outcome.found, outcome.plan, method, one, table, CLIPPING_WORDS[one])
            for one in ("printed", "joint")
        ]
    intro = (
        "Rows are the share p that masks leave out, columns the rank k. Darker is better, from "
        "the worst to the best cell of each table."
    )
    return Section("Rank by sparsity at epsilon 2", intro, items)


def _methods(clipping: CellClipping) -> list[LowRankCell]:
    low = [replace(one, clipping=clipping) for one in LOW_RANK]
    return [DP_SGD, SPARSE, *low, HEAD]


def _epsilon_section(outcome: LowRankOutcome) -> Section:
    items: list[Plot | Table] = [_plot(outcome, one) for one in ("printed", "joint")]
    items += [_epsilon_table(outcome, one) for one in ("printed", "joint")]
    items.append(_split_table(outcome))
    intro = (
        f"One split of {outcome.title}. Bands are 95 % intervals over the judged texts. Grey: the "
        "private head alone, and fine-tuning without privacy (N.P.), which the paper quotes and "
        "this run trains."
    )
    return Section("Accuracy over epsilon", intro, items)


def _plot(outcome: LowRankOutcome, clipping: CellClipping) -> Plot:
    at = outcome.plan.epsilons
    curves = []
    for cell in _methods(clipping):
        found = [intervals.interval(_first_split(outcome, cell.at(e))) for e in at]
        is_head = cell == HEAD
        curves.append(
            Curve(
                cell.title,
                at,
                [mean for mean, _, _ in found],
                None if is_head else [low for _, low, _ in found],
                None if is_head else [high for _, _, high in found],
                role="baseline" if is_head else "measured",
            )
        )
    plain = accuracy(outcome.found, PLAIN)
    curves.append(Curve("N.P.", at, [plain] * len(at), role="baseline"))
    return Plot(
        f"Accuracy over epsilon, {CLIPPING_WORDS[clipping]}",
        "Accuracy in percent on the first split; epsilon is the claimed one.",
        "epsilon claimed",
        "accuracy, percent",
        curves,
        log_x=True,
        readings=((Reading("Best at the largest epsilon: {best}, {value}.", _best_curve),),),
    )


def _best_curve(plot: Plot) -> Figures | None:
    measured = [one for one in plot.curves if one.role == "measured"]
    best = max(measured, key=lambda one: one.y[-1])
    return {"best": best.name, "value": f"{best.y[-1]:.1f} %"}


def _first_split(outcome: LowRankOutcome, cell: LowRankCell) -> list[float]:
    count = len(outcome.found[cell]["right"])
    return text_scores(outcome.found, cell, outcome.plan)[:count]


def _epsilon_table(outcome: LowRankOutcome, clipping: CellClipping) -> Table:
    at, rows = outcome.plan.epsilons, []
    for cell in _methods(clipping):
        here = [f"{accuracy(outcome.found, cell.at(e)):.1f}" for e in at]
        facts = outcome.found[cell.at(2.0)]
        beside = PRINTED_AT_2.get(cell.title)
        sizes: tuple[Cell, ...] = (cell.rank or "", cell.sparsity or "", facts["updated"])
        proved = f"{outcome.proved(cell.at(2.0)):.4g}"
        rows.append((cell.title, *sizes, *here, f"{beside:.1f}" if beside else "", proved))
    columns = (f"eps {e:g}" for e in at)
    header = ("method", "k", "p", "updated", *columns, "printed, eps 2", "proved at eps 2")
    return Table(
        f"Every method, {CLIPPING_WORDS[clipping]}",
        "Accuracy in percent; updated: numbers that are clipped and noised in a step. Printed: "
        "the paper's accuracy on SST-2, where it prints a number. Proved: epsilon of the training "
        "here that claims 2.",
        header,
        rows,
        readings=(
            (Reading("{order} at epsilon 2, the best first.", _order_at(at.index(2.0) + 4)),),
        ),
    )


def _order_at(column: int) -> Callable[[Table], Figures | None]:
    def order(table: Table) -> Figures | None:
        ranked = sorted(table.rows, key=lambda row: -float(str(row[column])))
        return {"order": ", ".join(str(row[0]) for row in ranked)}

    return order


def _split_table(outcome: LowRankOutcome) -> Table:
    rows, head = list[tuple[Cell, ...]](), HEAD
    for epsilon in outcome.plan.epsilons:
        for cell in SPLIT_METHODS:
            values = by_split(outcome.found, cell.at(epsilon), outcome.plan)
            gaps = intervals.gaps("one", "head", {
                "one": text_scores(outcome.found, cell.at(epsilon), outcome.plan),
                "head": text_scores(outcome.found, head.at(epsilon), outcome.plan),
            })  # fmt: skip
            gap, low, high = intervals.interval(gaps)
            beside = "" if cell == head else f"{gap:+.1f} ({low:.1f} to {high:.1f})"
            mean = sum(values) / len(values)
            each = ", ".join(f"{one:.1f}" for one in values)
            rows.append((cell.title, epsilon, f"{mean:.1f}", beside, each))
    return Table(
        f"Private head, LoRA and the proposal on {1 + outcome.plan.more_splits} splits, one norm",
        "Mean accuracy in percent, the gap to the private head at the same epsilon, paired by "
        "text, with its 95 % interval, and each split.",
        ("method", "epsilon", "accuracy", "over the head", "splits"),
        rows,
        readings=(
            (
                Reading(
                    "{above} of {n} gaps to the head are above 0 by more than their interval, "
                    "{below} are below.",
                    _head_gaps,
                ),
            ),
        ),
    )


def _head_gaps(table: Table) -> Figures | None:
    ends = [str(row[3]).split("(")[1].rstrip(")").split(" to ") for row in table.rows if row[3]]
    low, high = ([float(one[at]) for one in ends] for at in (0, 1))
    return {
        "n": len(ends),
        "above": sum(one > 0 for one in low),
        "below": sum(one < 0 for one in high),
    }


def _clip_section(outcome: LowRankOutcome) -> Section:
    found = outcome.found[FACTORS]
    listed = min(found["listed"], len(found["masked"]))
    rows: list[tuple[Cell, ...]] = []
    for name, said in (("unmasked", printed.LISTED_FACTORS), ("masked", printed.LISTED_MASKED)):
        values = found[name]
        here = sum(one < 1 for one in values[:listed])
        share = 100 * sum(one < 1 for one in values) / len(values)
        least = f"{min(values):.3f}"
        rows.append((name, f"{len(said)} of 21", f"{here} of {listed}", f"{share:.1f} %", least))
    overlap = found["overlap"]
    seen = "Masks of successive steps are not compared: there is one step."
    if overlap:
        seen = (
            "Masks of successive steps share "
            f"{100 * sum(overlap) / len(overlap):.1f} % of what they leave out, on average."
        )
    return Section(
        "Clip factors and masks",
        "RGP of rank 8 with masks of 0.3, after training at epsilon 2. These figures are of "
        f"single training texts, without noise: an experiment, and no release. {seen}",
        [
            Table(
                "Examples that are clipped (Listing 1)",
                f"Of the first {listed} training texts, and of {len(found['masked'])}.",
                ("norm", "printed", "here", "share", "least factor"),
                rows,
                readings=((_freed(found["unmasked"], found["masked"]),),),
            )
        ],
    )


def _freed(unmasked: Sequence[float], masked: Sequence[float]) -> Reading[Table]:
    clipped = [before < 1 for before in unmasked]
    freed = sum(one and after >= 1 for one, after in zip(clipped, masked, strict=True))
    said = f"Masks free {freed} of {sum(clipped)} clipped examples."
    return Reading("{said}", lambda table: {"said": said})
