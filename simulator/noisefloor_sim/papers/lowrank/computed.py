"""Claims that are decided without any training: from printed tables, sizes and accountants."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication.fine_tuning import Backbone
from noisefloor.randomness import SeededSource, new_run
from noisefloor_sim.papers.lowrank import auditing, printed
from noisefloor_sim.papers.lowrank.claims import MODEL, NUMBERS
from noisefloor_sim.papers.lowrank.plans import LowRankCell
from noisefloor_sim.papers.verdicts import ComputedTest, PrintedClaim, Test, Variants, exactly

Matrix = NDArray[np.float64]
ROUNDING = 0.1
"""Printed accuracies have one digit: a difference of two may be off by this."""

TABLES_VARIANT = "The printed tables against the printed text"
PRIVACY_VARIANT = "Privacy and accounting"
WEIGHTS_VARIANT = "Public weights (Figure 1)"


def _claim(key: str, what: str, words: str, *tests: Test, data: str = NUMBERS) -> PrintedClaim:
    return PrintedClaim(key, data, what, words, tests)


def table_claims() -> list[PrintedClaim]:
    """Return what the text says of Tables 2 and 3 and of Listing 1, decided from these alone."""
    rgp, lora = printed.TABLE_2, printed.TABLE_3
    base = rgp[printed.RGP_BASELINE, 0.0]
    return [
        _claim("text-gain", "Ours(RGP) is more than 2 points above RGP at eps 2", "> 2",
            exactly("Table 2, the choice of Table 1", rgp[printed.RGP_CHOICE] - base, 2.0),
            exactly("Table 2, the best cell", max(rgp.values()) - base, 2.0)),
        _claim("text-monotone", "RGP improves almost monotonically up to p = 0.5", "order",
            *(exactly(f"Table 2, k = {rank}: least step", _least_step(rank), -ROUNDING)
              for rank in printed.RGP_RANKS)),
        _claim("text-best-rgp", "RGP is best at k = 4, p = 0.7", "88.7",
            exactly("Table 2: over the second best", _lead(rgp, (4, 0.7)), 0.0)),
        _claim("text-best-lora", "LoRA is best at k = 32, p = 0", "91.2",
            exactly("Table 3: over the second best", _lead(lora, (32, 0.0)), 0.0)),
        _claim("text-no-gain", "LoRA gains nothing from sparsity", "best at p = 0",
            *(exactly(f"Table 3, k = {rank}: best masked over p = 0", _masked_gain(rank),
              most=0.0) for rank in printed.LORA_RANKS)),
        _claim("text-equal", "Ours(LoRA) equals LoRA at eps 2, within 1 point", "about equal",
            exactly("Table 3", lora[printed.LORA_CHOICE] - lora[printed.LORA_BASELINE, 0.0],
                -1.0, 1.0)),
        _claim("text-collapse", "small k with large p collapses", "50.9",
            exactly("Table 3: p = 0 over p = 0.7, k = 8", lora[8, 0.0] - lora[8, 0.7], 10.0)),
        _claim("text-counts", "the number of parameters alone does not predict accuracy",
            "in words", exactly("Table 2: (4, 0.5) over (2, 0), equally many",
                rgp[4, 0.5] - rgp[2, 0.0], 1.0)),
        _claim("text-lora-over-rgp", "LoRA is above RGP at eps 2", "order",
            exactly("Tables 3 and 2: worst LoRA over best RGP, p = 0",
                min(lora[one, 0.0] for one in printed.LORA_RANKS)
                - max(rgp[one, 0.0] for one in printed.RGP_RANKS), 0.0)),
        _claim("text-listing", "masks leave fewer examples clipped", "7, then 1",
            exactly("Listing 1: factors below 1",
                len(printed.LISTED_FACTORS) - len(printed.LISTED_MASKED), 1.0)),
    ]  # fmt: skip


def _least_step(rank: int) -> float:
    """Return the least change from one sparsity to the next one, up to 0.5."""
    row = [printed.TABLE_2[rank, share] for share in printed.SPARSITIES if share <= 0.5]
    return round(float(np.diff(row).min()), 1)


def _lead(table: printed.Grid, best: tuple[int, float]) -> float:
    return round(table[best] - max(value for cell, value in table.items() if cell != best), 1)


def _masked_gain(rank: int) -> float:
    masked = [printed.TABLE_3[rank, share] for share in printed.SPARSITIES if share]
    return round(max(masked) - printed.TABLE_3[rank, 0.0], 1)


def privacy_claims(audits: Mapping[LowRankCell, dict[str, Any]]) -> list[PrintedClaim]:
    """Return the claims of privacy: audited bounds below, proofs above.

    Args:
        audits: What ``auditing.audit_cell`` gave; each bound errs with probability 1e-6 at most.
    """
    return [
        *(_epsilon_claim(cell, found) for cell, found in audits.items()),
        _claim("sigma", "Renyi accounting gives sigma 3.27, 1.87, 1.18 and 0.845 on SST-2",
            "not printed", *(exactly(f"sigma at eps {cell.epsilon:g}, whole orders",
                auditing.whole_order_sigma(cell.epsilon),
                *_rounded(found["sigma_script"]))
              for cell, found in audits.items() if "sigma_rdp" in found)),
        *(_claim(f"delta-{name}", f"delta is below one over the records of {title}", "1e-5",
            exactly(f"delta x {count:,}", printed.DELTA * count, most=1.0))
          for name, title, count in (("sst2", "SST-2", printed.SST2_EXAMPLES),
                                     ("qnli", "QNLI", printed.QNLI_EXAMPLES))),
        _claim("size", "RoBERTa-base has 1.25 million parameters", "1.25 million",
            exactly("millions, from its sizes", auditing.roberta_millions(),
                printed.PARAMETERS_MILLIONS - 0.005, printed.PARAMETERS_MILLIONS + 0.005)),
    ]  # fmt: skip


def _rounded(value: float) -> tuple[float, float]:
    """Return what is written as a number of three digits."""
    half = 0.0005 if value < 1 else 0.005
    return value - half, value + half


def _epsilon_claim(cell: LowRankCell, found: dict[str, Any]) -> PrintedClaim:
    rule = "each matrix at C" if cell.clipping == "printed" else "one norm"
    shapes = "RoBERTa-base" if cell.method == "roberta" else "the backbone"
    proved = float("inf") if found["proved"] is None else found["proved"]
    test = ComputedTest(
        f"groups: {found['groups']}; epsilon, audited to proved",
        found["audited"],
        found["audited"],
        max(proved, found["audited"]),
        0.0,
        cell.epsilon * (1 + 1e-3),
    )
    what = f"clipping {rule} of {shapes} gives epsilon {cell.epsilon:g}"
    return _claim(f"epsilon-{cell.key}", what, f"epsilon {cell.epsilon:g}", test)


def weight_claims(backbone: Backbone) -> list[PrintedClaim]:
    """Return Figure 1's claims, of the public weights of all matrices of a backbone.

    A distribution with skewness above 1 is called highly skewed. A matrix looks low-rank if the
    largest tenth of its singular values has at least half of its energy. Importances of rows
    spread if their coefficient of variation is twice that of independent normal entries.
    """
    matrices = _matrices(backbone)
    skews = [float(np.median([_skewness(np.abs(one).sum(axis)) for one in matrices]))
             for axis in (1, 0)]  # fmt: skip
    shares = [top_share(one) for one in matrices]
    spread = float(np.median([_spread(one) for one in matrices]))
    random = [top_share(one) for one in _random_like(matrices)]
    return [
        _claim("skewed", "importances of units are skewed", "Figure 1",
            exactly(f"median skewness of rows, {len(matrices)} matrices", skews[0], 1.0),
            exactly(f"median skewness of columns, {len(matrices)} matrices", skews[1], 1.0),
            data=MODEL),
        _claim("uneven", "importances of rows spread more than those of random matrices",
            "Figure 1", exactly("median ratio of the coefficients of variation", spread, 2.0),
            data=MODEL),
        _claim("looks-low-rank", "weights look low-rank", "Figure 1",
            exactly("median share of energy in the largest tenth of singular values (of random "
                f"matrices {float(np.median(random)):.2f})", float(np.median(shares)), 0.5),
            data=MODEL),
    ]  # fmt: skip


def _matrices(backbone: Backbone) -> list[Matrix]:
    from torch import nn

    return [
        one.weight.detach().double().numpy()
        for layer in backbone.layers
        for one in layer.modules()
        if type(one) is nn.Linear
    ]


def _skewness(values: Matrix) -> float:
    centred = values - values.mean()
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def _spread(matrix: Matrix) -> float:
    """Return the coefficient of variation of rows over that of independent normal entries."""
    rows = np.abs(matrix).sum(axis=1)
    return float(rows.std() / rows.mean() / math.sqrt((math.pi / 2 - 1) / matrix.shape[1]))


def _random_like(matrices: list[Matrix]) -> list[Matrix]:
    """Return a random matrix of each shape that there is; public numbers."""
    shapes = sorted({one.shape for one in matrices})
    with new_run():
        return [
            SeededSource(1, "lowrank", "random", *shape)
            .normals(math.prod(shape))
            .reshape(shape)
            .astype(np.float64)
            for shape in shapes
        ]


def top_share(matrix: Matrix) -> float:
    """Return which share of a matrix's energy the largest tenth of its singular values has."""
    energies = np.linalg.svd(matrix, compute_uv=False) ** 2
    count = max(1, len(energies) // 10)
    return float(energies[:count].sum() / energies.sum())


def computed_variants(
    audits: Mapping[LowRankCell, dict[str, Any]], backbone: Backbone
) -> Variants:
    """Return every claim that no training decides."""
    return {
        PRIVACY_VARIANT: privacy_claims(audits),
        TABLES_VARIANT: table_claims(),
        WEIGHTS_VARIANT: weight_claims(backbone),
    }
