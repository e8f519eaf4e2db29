"""What the report shows of published texts."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.plotting import Axis
from noisefloor_sim.pipelines.releases import named_groups, noise_table, release_table
from noisefloor_sim.report import Section

USUAL = {"pipelines.texts.epsilon": "claimed epsilon of a release"}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe usefulness, likeness, attacks and budgets of published texts."""
    axis = Axis.of(points, USUAL)
    groups = named_groups(axis, points)
    return Section(
        "Published texts",
        "Users post texts. They travel as they are: whoever collects them sees them, and is "
        "trusted. That is the trust boundary: raw up to the publisher, noisy after it.",
        (noise_table(groups, axis), release_table(groups, axis)),
    )
