"""Heat maps of rank by sparsity: the printed ones, and what was reached here."""

from collections.abc import Callable, Mapping, Sequence

from noisefloor_sim.papers.lowrank import printed
from noisefloor_sim.papers.lowrank.plans import CellClipping, LowRankCell, LowRankPlan
from noisefloor_sim.papers.lowrank.results import Found, accuracy, rank_correlation
from noisefloor_sim.report import Cell, Figures, Reading, Table

Values = Mapping[tuple[int, float], float]
NAMES = {"rgp": "RGP", "lora": "LoRA"}
NUMBERS = {"rgp": "Table 2", "lora": "Table 3"}


def printed_map(method: str, table: printed.Grid) -> Table:
    """Return a printed table."""
    ranks = printed.RGP_RANKS if method == "rgp" else printed.LORA_RANKS
    title = f"{NAMES[method]}, as the paper prints it ({NUMBERS[method]})"
    says = "Accuracy in percent on SST-2 with RoBERTa-base."
    return _map(title, says, ranks, printed.SPARSITIES, table, [_best(table)])


def here_map(
    found: Found,
    plan: LowRankPlan,
    method: str,
    clipping: CellClipping,
    table: printed.Grid,
    words: str,
) -> Table:
    """Return what was reached here with one clipping, compared with the printed table."""
    ranks, shares = plan.ranks(method), plan.sparsities
    values = {
        (rank, share): accuracy(found, LowRankCell(method, 2.0, rank, share, clipping))
        for share in shares
        for rank in ranks
    }
    judged = len(found[LowRankCell(method, 2.0, ranks[0], shares[0], clipping)]["right"])
    says = f"Accuracy in percent on {judged:,} judged texts, one training each."
    readings = [_best(values), _like_printed(values, table)]
    return _map(f"{NAMES[method]} here, {words}", says, ranks, shares, values, readings)


def _map(
    title: str,
    describes: str,
    ranks: Sequence[int],
    shares: Sequence[float],
    values: Values,
    readings: Sequence[Reading[Table]],
) -> Table:
    least, most = min(values.values()), max(values.values())
    width = (most - least) or 1.0
    rows: list[tuple[Cell, ...]] = []
    shades: list[tuple[float | None, ...]] = []
    for share in shares:
        row = [values[rank, share] for rank in ranks]
        rows.append((f"p = {share:g}", *(f"{one:.1f}" for one in row)))
        shades.append((None, *((one - least) / width for one in row)))
    header = ("masked", *(f"k = {rank}" for rank in ranks))
    return Table(title, describes, header, rows, [[one] for one in readings], shades)


def _best(values: Values) -> Reading[Table]:
    (rank, share), most = max(values.items(), key=lambda one: one[1])
    (low_rank, low_share), least = min(values.items(), key=lambda one: one[1])
    figures = {
        "most": f"{most:.1f}",
        "best": f"k = {rank}, p = {share:g}",
        "least": f"{least:.1f}",
        "worst": f"k = {low_rank}, p = {low_share:g}",
    }
    return Reading("Best at {best} ({most}), worst at {worst} ({least}).", _always(figures))


def _like_printed(values: Values, table: printed.Grid) -> Reading[Table]:
    cells = [one for one in values if one in table]
    found = rank_correlation([values[one] for one in cells], [table[one] for one in cells])
    figures = {"n": len(cells), "found": f"{found:.2f}"}
    sentence = "Over {n} cells the rank correlation with the printed table is {found}."
    return Reading(sentence, _always(figures) if found == found else lambda table: None)


def _always(figures: Figures) -> Callable[[Table], Figures | None]:
    return lambda table: figures
