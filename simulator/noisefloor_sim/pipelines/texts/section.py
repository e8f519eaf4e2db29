"""What the report shows of published texts."""

from collections.abc import Sequence

from noisefloor_sim.pipelines.api import PointFindings
from noisefloor_sim.pipelines.attack_figures import attack_figures
from noisefloor_sim.pipelines.plotting import Axis
from noisefloor_sim.pipelines.releases import named_groups, noise_table, release_table
from noisefloor_sim.pipelines.texts import text_figures
from noisefloor_sim.pipelines.texts.block import block_of
from noisefloor_sim.report import Section
from noisefloor_sim.scenario import Attack, Attacks

USUAL = {
    "pipelines.texts.epsilon": "claimed epsilon of a release",
    "pipelines.texts.public_weight": "chance of a public piece",
    "pipelines.texts.posts": "texts of an author at most",
}

GAMES: Attacks = {
    "seed": Attack("whose rare word a published text begins with"),
    "search": Attack("whose rare word one of very many texts begins with"),
    "length": Attack("whose text has a length that the others do not explain"),
    "exposure": Attack("which of many secrets was posted"),
    "author": Attack("who wrote a corpus, by style"),
    "boundary": Attack("whether there is a k-th text that names a place"),
}
"""Games with right and wrong guesses."""

_NOTES = {
    "seed": "Right: of words that one post each had, those that a text begins with. The bound is "
    "at the rate of words that nobody posted, or what that could be.",
    "length": "The analyst knows all other texts of the corpus.",
    "author": "A bound is for all texts of an author: group privacy by the cap that devices keep.",
}


def report_section(points: Sequence[PointFindings]) -> Section:
    """Describe usefulness, likeness, attacks and budgets of published texts."""
    axis = Axis.of(points, USUAL)
    groups = named_groups(axis, points)
    is_swept = len({place for by_place in groups.values() for place in by_place}) > 1
    plots = [*text_figures.along_axis(groups, axis)] if is_swept else []
    return Section(
        "Published texts",
        "Users post texts, which travel as they are: their collector sees them, and is "
        "trusted. The trust boundary is the publisher: raw up to it, noisy after it. From what "
        "was collected it publishes made-up texts with labels. Utility and likeness are measured "
        "on texts that were never posted; the analyst sees what was published, and public texts."
        + _said(points),
        (
            *plots,
            *attack_figures(groups, axis, GAMES, _NOTES),
            *text_figures.tables(groups, axis),
            noise_table(groups, axis),
            release_table(groups, axis),
        ),
    )


def _said(points: Sequence[PointFindings]) -> str:
    """Say where texts come from, and what stands in for what."""
    said = []
    if any(block_of(one.scenario).is_made_up for one in points):
        said.append(
            " Posts, public texts and the language are made up, by a stated distribution: figures "
            "are about methods, and not about people."
        )
    if any(one.scenario.variant == "paper" for one in points):
        said.append(
            " In the paper's variant first words, lengths and vocabulary are those of the posts, "
            "and made-up places climb to k-anonymity: nothing is proved of any of these. A chain "
            "of noisy pairs at the claimed epsilon stands in for the paper's encoder-decoder."
        )
    most = max(block_of(one.scenario).posts for one in points)
    said.append(
        f" A guarantee is for one text. Devices post at most {most} of one author, whose "
        "guarantee is that of twice as many texts: all of them become somebody else's."
    )
    return "".join(said)
