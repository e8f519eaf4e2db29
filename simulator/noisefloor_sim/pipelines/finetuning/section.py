"""What the report shows of fine-tuning."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.report import Section


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe accuracy, clipping, attacks and budgets of fine-tuned models."""
    return Section("Private fine-tuning", "", ())
