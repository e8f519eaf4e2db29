"""What clipping each matrix by itself protects: claimed, proved and audited (E1), and sigma.

Algorithm 1 clips dL and dR of every layer at the same C and adds noise for C to each. One record
then moves G groups at once, so that the sensitivity is C sqrt(G).
"""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from noisefloor.accounting import (
    SampledGaussian,
    epsilon_at,
    noise_multiplier_for,
)
from noisefloor.adversary.models import audit_canary
from noisefloor.privacy import Claim, Guarantee, LowerBound, Neighbours, TrustModel
from noisefloor.publication.fine_tuning import Backbone, shared_backbone
from noisefloor.publication.fine_tuning.methods import (
    EncoderShapes,
    FineTuningPlan,
    MethodSettings,
)
from noisefloor.publication.methods import GradientCanary
from noisefloor_sim.papers.lowrank import printed
from noisefloor_sim.papers.lowrank.plans import LowRankCell, LowRankPlan, settings_of

ROBERTA = (12, 768, 3072)
"""Layers, width and inner width of RoBERTa-base."""

_ROBERTA_EMBEDDINGS = (50_265 + 514 + 1) * 768 + 2 * 768
"""Pieces, positions, one kind of segment, and a normalisation."""


def roberta_millions() -> float:
    """Return how many millions of parameters RoBERTa-base has, from its sizes."""
    shapes = EncoderShapes.bert(*ROBERTA)
    sizes = [rows * columns for _, (rows, columns) in shapes.matrices]
    sizes += [shape[0] for _, shape in shapes.vectors]
    return (sum(sizes) + _ROBERTA_EMBEDDINGS) / 1e6


ORDERS = range(2, 257)


@lru_cache(maxsize=16)
def whole_order_sigma(epsilon: float) -> float:
    """Return the noise multiplier of the paper's run by Renyi divergences of whole orders alone.

    Closed form of the divergence: Mironov, Talwar and Zhang 2019, arXiv 1908.10530, section 3.3;
    of the conversion: Canonne, Kamath and Steinke 2020, arXiv 2004.00010, proposition 12.
    """
    from scipy.optimize import brentq  # lazy: scipy is slow to import

    def excess(noise: float) -> float:
        return min(_spent(noise, order) for order in ORDERS) - epsilon

    return float(brentq(excess, 0.3, 30.0, xtol=1e-6))


def _spent(noise: float, order: int) -> float:
    """Return the epsilon of the paper's run by the divergence of one order."""
    from scipy.special import gammaln, logsumexp

    counts, rate = np.arange(order + 1), printed.SST2_RATE
    terms = gammaln(order + 1) - gammaln(counts + 1) - gammaln(order - counts + 1)
    terms += (order - counts) * math.log1p(-rate) + counts * math.log(rate)
    terms += counts * (counts - 1) / (2 * noise**2)
    divergence = printed.SST2_STEPS * float(logsumexp(terms)) / (order - 1)
    converted = math.log1p(-1 / order) - math.log(printed.DELTA * order) / (order - 1)
    return divergence + converted


@lru_cache(maxsize=16)
def sigma(epsilon: float, method: Literal["pld", "rdp"]) -> float:
    """Return the noise multiplier of the paper's run on SST-2, by an accounting method."""
    return noise_multiplier_for(
        epsilon, printed.DELTA, printed.SST2_RATE, printed.SST2_STEPS, method
    )


def sigma_facts(epsilon: float) -> dict[str, float]:
    """Return the noise of the paper's run by both accounting methods, beside a script's."""
    script = printed.SIGMAS[epsilon]
    event = SampledGaussian(script, printed.SST2_RATE, printed.SST2_STEPS)
    return {
        "sigma_script": script,
        "sigma_rdp": sigma(epsilon, "rdp"),
        "sigma_pld": sigma(epsilon, "pld"),
        "script_pld": epsilon_at([event], printed.DELTA).epsilon,
    }


def audit_cell(cell: LowRankCell, plan: LowRankPlan) -> dict[str, Any]:  # Any: JSON
    """Return what is claimed, proved and audited of the paper's run with a clipping.

    The canary has norm C in every group; half of the games choose the threshold.
    """
    shapes = _shapes(cell.method)
    settings = MethodSettings(
        rank=cell.rank,
        steps=printed.SST2_STEPS,
        batch=printed.SST2_RATE * printed.SST2_EXAMPLES,
        clipping=cell.clipping,
    )
    cost = _cost(cell.epsilon)
    planned = FineTuningPlan.of(
        *("lora", shapes, cost, printed.SST2_EXAMPLES, settings),
        noise_multiplier=sigma(cell.epsilon, "pld"),
    )
    bound = audit_canary(
        GradientCanary(planned.private),
        printed.DELTA,
        f"reproduce lowrank {plan.seed} {cell.key}",
        games=plan.games,
    )
    return {
        "groups": len(planned.private.clipping.bounds),
        "proved": planned.proved.epsilon if planned.proved.is_finite else None,
        "reason": planned.proved.reason,
        "audited": bound.epsilon,
        "confidence": bound.confidence,
        "trials": bound.trials,
        "ceiling": bound.ceiling,
        **(sigma_facts(cell.epsilon) if cell.clipping == "joint" else {}),
    }


def proved_as_printed(
    cell: LowRankCell, plan: LowRankPlan, examples: int, noise: float, groups: int
) -> float:
    """Return what is proved of a training that clips each of some groups at C.

    Args:
        cell: The training.
        plan: Of the run.
        examples: Training records.
        noise: Its multiplier of C.
        groups: What is clipped apart: one record moves all of them.
    """
    settings = settings_of(cell, plan, examples)
    rate = (settings.batch or examples) / examples
    event = SampledGaussian(noise / math.sqrt(groups), rate, settings.steps or 1)
    return epsilon_at([event], printed.DELTA).epsilon


def check_audited(cell: LowRankCell, backbone: Backbone) -> None:
    """Refuse a backbone whose matrices are smaller than the rank that is audited."""
    shapes = EncoderShapes.of(backbone, backbone.depth, (backbone.depth,), classes=2)
    settings = MethodSettings(rank=cell.rank, steps=1)
    FineTuningPlan.of("lora", shapes, _cost(cell.epsilon), 1, settings, noise_multiplier=1.0)


def _shapes(name: str) -> EncoderShapes:
    if name == "roberta":
        return EncoderShapes.bert(*ROBERTA)
    backbone = shared_backbone()
    return EncoderShapes.of(backbone, backbone.depth, (backbone.depth,), classes=2)


def _cost(epsilon: float) -> Guarantee:
    relation = Neighbours.RECORD_ADD_REMOVE
    return Guarantee(epsilon, relation, delta=printed.DELTA, model=TrustModel.CENTRAL)


def claim_of(cell: LowRankCell, found: dict[str, Any]) -> Claim:  # Any: JSON
    """Return an audit as a claim."""
    relation = Neighbours.RECORD_ADD_REMOVE
    proved = Guarantee.none(
        found["reason"] or "noise for C where the sensitivity is C sqrt(G)",
        relation,
        TrustModel.CENTRAL,
    )
    if found["proved"] is not None:
        proved = Guarantee(
            found["proved"], relation, delta=printed.DELTA, model=TrustModel.CENTRAL
        )
    bound = LowerBound(found["audited"], found["confidence"], found["trials"], found["ceiling"])
    return Claim(_cost(cell.epsilon), proved, bound)
