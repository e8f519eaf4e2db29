"""The private trainings of a plan of texts, by the names of the vectors that they hand out."""

from collections.abc import Mapping

from noisefloor.publication.methods import TextHeadPlan, TextLayersPlan, TextPlan
from noisefloor.publication.private_sgd import SgdPlan
from noisefloor_sim.pipelines.releases import STEP


def noisy_trainings(plan: TextPlan) -> Mapping[str, SgdPlan]:
    """Return the trainings that add noise; none of a plan without privacy."""
    if isinstance(plan, TextHeadPlan):
        return {STEP: plan.sgd}
    return plan.noisy_parts if isinstance(plan, TextLayersPlan) else {}
