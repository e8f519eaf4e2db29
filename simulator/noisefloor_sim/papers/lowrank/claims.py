"""Every claim of the paper on low rank and sparsity, with the tests that decide it.

What is estimated is the accuracy of the trained models on texts of the same kind: the runs of an
interval are judged texts, right (100) or wrong (0), and gaps are paired text by text. A model is
trained once in each split, so an interval says nothing of another training. Claims about privacy,
sizes and the printed tables are computed, and have no interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from noisefloor_sim.papers.lowrank import plans, printed
from noisefloor_sim.papers.lowrank.plans import CellClipping, LowRankCell, LowRankPlan
from noisefloor_sim.papers.verdicts import GapTest, MeanTest, PrintedClaim, Test, Variants

TEXTS, MODEL, NUMBERS = "texts", "backbone", "printed"

MASKED_SHARE = 0.3
SMALL, LOW_END, HIGH_END = 1.0, 5.0, 20.0
"""Points: what the paper calls equal, and its range of what low rank gains over DP-SGD."""

COLLAPSE = 10.0
"""Points that a cell has to lose to have collapsed: the printed cell loses 39.8."""


@dataclass(frozen=True, slots=True)
class LowRankRise:
    """By how much a cell's method is better at its epsilon than at another one, text by text.

    Attributes:
        high: At the larger epsilon.
        low: The smaller one.
    """

    high: LowRankCell
    low: float


@dataclass(frozen=True, slots=True)
class ClipPoint:
    """Whether examples are clipped, with masks or without."""

    is_masked: bool


def _claim(key: str, what: str, words: str, tests: Iterable[Test]) -> list[PrintedClaim]:
    """Return a claim, or none if the plan runs nothing of it."""
    some = tuple(tests)
    return [PrintedClaim(key, TEXTS, what, words, some)] if some else []


def _gap(
    first: LowRankCell, second: LowRankCell, least: float = 0.0, most: float = float("inf")
) -> GapTest:
    name = f"{_name(first)} over {_name(second)}"
    if first.epsilon == second.epsilon:
        name += f", eps {first.epsilon:g}"
    return GapTest(name, first, second, least, most)


def _name(cell: LowRankCell) -> str:
    sizes = f" ({cell.rank}, {cell.sparsity:g})" if cell.rank else ""
    return f"{cell.title}{sizes}"


def _family(clipping: CellClipping) -> list[LowRankCell]:
    """Return RGP, LoRA and the proposal on both, clipped in one way."""
    return [replace(one, clipping=clipping) for one in plans.LOW_RANK]


def _orders(plan: LowRankPlan, clipping: CellClipping) -> list[PrintedClaim]:
    """Return the claims about methods over epsilon."""
    rgp, lora, ours_rgp, ours_lora = _family(clipping)
    at = plan.epsilons
    beyond = [one for one in at if one > 1]
    over = [
        claim
        for cell in (rgp, lora)
        for claim in _claim(
            f"over-dpsgd-{cell.method}",
            f"{cell.title} is 5 to 20 points above DP-SGD",
            "5 to 20",
            (_gap(cell.at(e), plans.DP_SGD.at(e), LOW_END, HIGH_END) for e in at),
        )
    ]
    return [
        *over,
        *_claim("ours-rgp", "Ours(RGP) is more than 2 points above RGP for eps > 1", "> 2",
            (_gap(ours_rgp.at(e), rgp.at(e), 2.0) for e in beyond)),
        *_claim("ours-rgp-1", "Ours(RGP) is about 1.5 points below RGP at eps 1", "-1.5",
            (_gap(ours_rgp.at(e), rgp.at(e), -2.5, -0.5) for e in at if e == 1)),
        *_claim("up-to-3", "sparsity gains up to 3 points (introduction): none gains more", "+3",
            (_gap(ours.at(e), base.at(e), -100.0, 3.0)
             for ours, base in ((ours_rgp, rgp), (ours_lora, lora)) for e in at)),
        *_claim("lora-over-rgp", "the LoRA family is above the RGP family", "order",
            (_gap(one.at(e), other.at(e))
             for one, other in ((lora, rgp), (ours_lora, ours_rgp)) for e in at)),
        *_claim("flatter", "LoRA is flatter over epsilon than RGP", "order",
            _rises(plan, lora, rgp)),
        *_claim("ours-lora", "Ours(LoRA) equals LoRA, within 1 point", "about equal",
            (_gap(ours_lora.at(e), lora.at(e), -SMALL, SMALL) for e in at)),
        *_claim("np", "every private method is at least 3 points below N.P.", ">= 3",
            (_gap(plans.PLAIN, one.at(e), 3.0)
             for one in (plans.DP_SGD, plans.SPARSE, *_family(clipping)) for e in at)),
        *_claim("near-at-large", "low-rank methods are nearly equal at large eps (said of QNLI)",
            "within 1", (_gap(one.at(max(at)), lora.at(max(at)), -SMALL, SMALL)
             for one in (rgp, ours_rgp, ours_lora))),
    ]  # fmt: skip


def _rises(plan: LowRankPlan, flat: LowRankCell, steep: LowRankCell) -> list[Test]:
    least, most = min(plan.epsilons), max(plan.epsilons)
    if least == most:
        return []
    name = f"rise of {_name(steep)} over that of {_name(flat)}, eps {least:g} to {most:g}"
    one, other = (LowRankRise(cell.at(most), least) for cell in (steep, flat))
    return [GapTest(name, one, other)]


def _baselines(plan: LowRankPlan) -> list[PrintedClaim]:
    """Return the claims about methods without factors; no clipping of matrices touches them."""
    at = plan.epsilons
    shares = [replace(plans.SPARSE, sparsity=one) for one in plans.SPARSE_SHARES]
    return [
        *_claim("sparse-near", "Sparse DP-SGD is within 1 point of DP-SGD (p = 0.3)", "within 1",
            (_gap(plans.SPARSE.at(e), plans.DP_SGD.at(e), -SMALL, SMALL) for e in at)),
        *_claim("sparse-worse", "Sparse DP-SGD is worse than DP-SGD on SST-2 (p = 0.3)", "order",
            (_gap(plans.DP_SGD.at(e), plans.SPARSE.at(e)) for e in at)),
        *_claim("sparse-shares", "Sparse DP-SGD is within 1 point of DP-SGD, p 0.1, 0.3 or 0.5",
            "p not printed", (_gap(one, plans.DP_SGD, -SMALL, SMALL) for one in shares)),
    ]  # fmt: skip


def _best(cells: Sequence[LowRankCell], best: LowRankCell) -> list[Test]:
    if best not in cells:
        return []
    return [_gap(best, other, -SMALL) for other in cells if other != best]


def _grids(plan: LowRankPlan, clipping: CellClipping) -> list[PrintedClaim]:
    """Return the claims about rank by sparsity at epsilon 2."""

    def cell(method: str, rank: int, share: float) -> LowRankCell:
        return LowRankCell(method, 2.0, rank, share, clipping)

    rgp, lora = (plans.rank_table(plan, one, clipping) for one in ("rgp", "lora"))
    rising = [one for one in plan.sparsities if one <= 0.5]
    same_count = [((4, 0.5), (2, 0.0)), ((8, 0.5), (4, 0.0))]
    same_lora = [((16, 0.5), (8, 0.0)), ((64, 0.5), (32, 0.0))]
    pairs = [(cell("rgp", *one), cell("rgp", *other)) for one, other in same_count]
    pairs += [(cell("lora", *one), cell("lora", *other)) for one, other in same_lora]
    known = {*rgp, *lora}
    collapsed = (cell("lora", 8, 0.0), cell("lora", 8, 0.7))
    gaining = (cell("lora", 64, 0.5), cell("lora", 64, 0.0))
    return [
        *_claim("monotone", "RGP improves with p almost monotonically up to 0.5 (within 1 point)",
            "order", (_gap(cell("rgp", rank, more), cell("rgp", rank, less), -SMALL)
             for rank in plan.rgp_ranks for less, more in pairwise(rising))),
        *_claim("best-rgp", "RGP is best at k = 4, p = 0.7 (within 1 point)", "88.7",
            _best(rgp, cell("rgp", 4, 0.7))),
        *_claim("best-lora", "LoRA is best at k = 32, p = 0 (within 1 point)", "91.2",
            _best(lora, cell("lora", 32, 0.0))),
        *_claim("collapse", "LoRA collapses at k = 8, p = 0.7: 10 points below p = 0", "50.9",
            [_gap(*collapsed, COLLAPSE)] if known.issuperset(collapsed) else []),
        *_claim("counts", "at equally many parameters more rank with masks is better",
            "87.7 over 83.9", (_gap(*pair) for pair in pairs[:2] if known.issuperset(pair))),
        *_claim("counts-lora", "likewise of LoRA, which is equal within 1 point", "90.0, 90.7",
            (_gap(*pair, -SMALL, SMALL) for pair in pairs[2:] if known.issuperset(pair))),
        *_claim("lora-gains", "LoRA gains from sparsity at k = 64 (its Table 3)", "90.8 over 90.2",
            [_gap(*gaining)] if known.issuperset(gaining) else []),
    ]  # fmt: skip


def _listing() -> list[PrintedClaim]:
    points = ClipPoint(is_masked=False), ClipPoint(is_masked=True)
    before, after = (
        100 * len(one) / printed.LISTED_EXAMPLES
        for one in (printed.LISTED_FACTORS, printed.LISTED_MASKED)
    )
    return [
        *_claim("listing", "with masks of 0.3 fewer examples are clipped (Listing 1)", "7, then 1",
            [GapTest("clipped without over with masks, percent", *points)]),
        *_claim("listing-most", "masks free most of the clipped examples (Listing 1)",
            f"{before:.0f} %, then {after:.0f} %",
            [MeanTest("clipped with masks, percent", points[1], 0.0, before / 2)]),
    ]  # fmt: skip


PRINTED_VARIANT = "As printed, each matrix clipped at C"
JOINT_VARIANT = "Corrected, one norm over all that is trained"


def empirical_variants(plan: LowRankPlan) -> Variants:
    """Return the claims that trainings decide: of the algorithm as printed, then corrected."""
    return {
        PRINTED_VARIANT: [
            *_orders(plan, "printed"),
            *_baselines(plan),
            *_grids(plan, "printed"),
            *_listing(),
        ],
        JOINT_VARIANT: [*_orders(plan, "joint"), *_grids(plan, "joint")],
    }
