"""Privacy on the page: claims with their audits, noise multipliers, and what was reached."""

from collections.abc import Mapping, Sequence
from typing import Any

from noisefloor_sim.papers.lowrank import auditing
from noisefloor_sim.papers.lowrank.plans import CellClipping, LowRankCell
from noisefloor_sim.papers.lowrank.results import Found
from noisefloor_sim.report import ClaimRow, Figures, Reading, Section, Table

CLIPPING_WORDS: Mapping[CellClipping, str] = {
    "printed": "each matrix clipped at C",
    "joint": "one norm over all",
}
_SHAPES = {"roberta": "RoBERTa-base", "backbone": "the backbone"}


def claim_row(cell: LowRankCell, found: Mapping[str, Any]) -> ClaimRow:  # Any: JSON
    """Return an audit as a line of claims."""
    count = found["groups"]
    return ClaimRow.of(
        auditing.claim_of(cell, dict(found)),
        f"LoRA, {_SHAPES[cell.method]}",
        pipeline="673 steps, 67,349 records",
        variant=CLIPPING_WORDS[cell.clipping],
        point=f"{count} group{'s' if count > 1 else ''} of clipping",
    )


def privacy_section(found: Found, audits: Sequence[LowRankCell], games: int) -> Section:
    """Return the section on sigma and on audits."""
    return Section(
        "Privacy",
        "The paper's run on SST-2: 673 steps of batches of 2,000 of 67,349 records, delta 1e-5, "
        "one record added or removed.",
        [_sigma_table(found, audits), _audit_table(found, audits, games)],
    )


def _sigma_table(found: Found, audits: Sequence[LowRankCell]) -> Table:
    names = ("sigma_rdp", "sigma_pld", "script_pld")
    rows = [
        (
            cell.epsilon,
            found[cell]["sigma_script"],
            auditing.whole_order_sigma(cell.epsilon),
            *(found[cell][name] for name in names),
        )
        for cell in audits
        if "sigma_rdp" in found[cell]
    ]
    return Table(
        "Noise multipliers",
        "An independent script's by Renyi accounting, ours by whole orders, by fractions of them "
        "as well, and by privacy loss distributions (PLD); and what the script's prove by PLD.",
        ("epsilon", "script", "whole orders", "all orders", "PLD", "epsilon by PLD"),
        rows,
        readings=((Reading("PLD needs {least} to {most} less noise than all orders.", _saved),),),
    )


def _saved(table: Table) -> Figures | None:
    shares = [1 - float(str(row[4])) / float(str(row[3])) for row in table.rows]
    return {"least": f"{min(shares):.1%}", "most": f"{max(shares):.1%}"} if shares else None


def _audit_table(found: Found, audits: Sequence[LowRankCell], games: int) -> Table:
    rows = [
        (
            _SHAPES[cell.method],
            CLIPPING_WORDS[cell.clipping],
            one["groups"],
            cell.epsilon,
            "none" if one["proved"] is None else one["proved"],
            one["audited"],
            one["ceiling"],
        )
        for cell, one in ((cell, found[cell]) for cell in audits)
    ]
    sentence = (
        "Audited above the claim: {printed} of {n} clipped matrix by matrix, {joint} of {m} by "
        "one norm."
    )
    return Table(
        "Epsilon claimed, proved and audited",
        f"A canary of norm C in every group, {games:,} games on each input; each audited figure "
        "is wrong with probability 1e-6 at most. The ceiling is the most that the games can show.",
        ("shapes", "clipping", "groups", "claimed", "proved", "audited", "ceiling"),
        rows,
        readings=((Reading(sentence, _above_claim),),),
    )


def _above_claim(table: Table) -> Figures | None:
    above: dict[str, list[bool]] = {words: [] for words in CLIPPING_WORDS.values()}
    for row in table.rows:
        above[str(row[1])].append(float(str(row[5])) > float(str(row[3])))
    printed, joint = above.values()
    return {"printed": sum(printed), "n": len(printed), "joint": sum(joint), "m": len(joint)}
