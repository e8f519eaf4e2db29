"""What a reproduction of the paper on generated texts runs: cells, sizes and settings.

**Settings were fixed beforehand**; no text that judges here chose anything. What the paper prints
is taken from it: Adam's decays, rate and dropout, one model for each label. Rate, batch, epochs,
clipping bound and averaging of the corrected generators are those of the benchmark of generators
(``bench/text_likelihoods.py``), chosen there on a split of IMDB that is not reported. N-grams have
no settings but the budget. Generalisation is to k = 5 as printed, and by levels and noisy counts
of places where corrected. The chance of public pieces was set to a half beforehand.

The paper trains for 500 epochs. Here it is three: with noise for one epsilon, more steps need
more noise in each. The batch and the clipping bound are not printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from noisefloor.publication.text.entities import DEFAULT_PIPELINE, EntityKind

TextSystem: TypeAlias = Literal["original", "plain", "dp-ed", "dpvg-ed", "ngrams", "crossed"]
TextVariant: TypeAlias = Literal["printed", "inside", "corrected"]

VARIANTS: tuple[TextVariant, ...] = ("printed", "inside", "corrected")
PARTS = 5
"""One split is four fifths to learn from and one to judge; five splits are a repetition."""

PRIVATE_EDS: tuple[TextSystem, ...] = ("dp-ed", "dpvg-ed")
ENCODER_DECODERS: tuple[TextSystem, ...] = ("plain", *PRIVATE_EDS)
NAMES: Mapping[TextSystem, str] = MappingProxyType(
    {
        "original": "Original texts",
        "plain": "E-D without privacy",
        "dp-ed": "DP E-D",
        "dpvg-ed": "DPvG E-D",
        "ngrams": "DP n-grams",
        "crossed": "DP n-grams and public text",
    }
)
VARIANT_WORDS: Mapping[TextVariant, str] = MappingProxyType(
    {
        "printed": "as printed, noise outside of 1/L",
        "inside": "as printed, but noise inside of 1/L",
        "corrected": "corrected",
    }
)

K = 5
"""Not printed."""

ENTITIES = 5
"""Mentions of a document that bounds of the climb are stated for."""

AUTHOR_TEXTS = 5
"""Texts of one author that guarantees are stated for."""

LEVELS: Mapping[EntityKind, int] = MappingProxyType(
    {
        EntityKind.PERSON: 2,  # initials
        EntityKind.ORGANISATION: 1,  # the kind
    }
)
"""Of the corrected generalisation, chosen in public: free. Places are kept by noisy counts."""

PAPER_KINDS = (EntityKind.PERSON, EntityKind.LOCATION, EntityKind.ORGANISATION)
LENGTH_SHARE, PLACE_SHARE = 0.05, 0.05
"""Of epsilon and delta of a corrected encoder-decoder: for lengths of texts, and for places."""

LENGTH_DEVIATIONS = 3.0
"""Of the noise, below which a cell of lengths counts as empty."""

MOST_PLACES = 5
"""That one document is counted at, regions above a place included."""

PUBLIC_WEIGHT = 0.5
CHARACTERS = 12
"""Of a text that is read, for each piece that is kept of it: what is tagged and generalised."""


@dataclass(frozen=True, slots=True)
class TextCell:
    """One corpus that is written and measured.

    Attributes:
        system: What writes it.
        epsilon: That is claimed; 0 without privacy.
        variant: Of encoder-decoders; others are ``corrected``.
        split: Which fifth of which repetition judges.
    """

    system: TextSystem
    epsilon: float
    variant: TextVariant = "corrected"
    split: int = 0

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"{self.system}-{self.variant}-e{self.epsilon:g}-s{self.split}"

    @property
    def title(self) -> str:
        """As a table has it."""
        return NAMES[self.system]

    @property
    def is_paper(self) -> bool:
        """Whether vocabulary, seeds and lengths are those of private documents."""
        return self.variant != "corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRunPlan:
    """How much is run; public choices.

    Attributes:
        name: ``full`` or ``quick``.
        seed: Of splits and of all draws.
        records: Texts that are used at most; all of them if 0.
        splits: How many there are at the epsilon of the table.
        curve_splits: How many at other epsilons, two at least: the privacy loss as printed needs
            pairs.
        epsilon: Of the table.
        curve: Other epsilons.
        longest: Pieces of a text; what follows is cut off.
        vocabulary: Pieces that encoder-decoders can write.
        embedding: Width of looked-up pieces.
        hidden: Width of the LSTMs.
        batch: Texts in a step, on average.
        epochs: How often each is seen, on average.
        plain_epochs: Without privacy.
        rate: Of Adam; the algorithm as printed has the printed one.
        clip: Of the gradient of a text.
        averaging: The share of last steps whose weights are averaged, where corrected.
        inputs: Pieces whose likeliest successors are looked at.
        compared: Texts of each corpus that cosines are taken of.
        sample: Texts that self-BLEU is over.
        tagger: Of names.
    """

    name: str
    seed: int = 1
    records: int = 0
    splits: int = 2 * PARTS
    curve_splits: int = 2
    epsilon: float = 8.0
    curve: tuple[float, ...] = (0.2, 0.4, 0.8, 1.6, 3.2)
    longest: int = 60
    vocabulary: int = 3_000
    embedding: int = 96
    hidden: int = 128
    batch: int = 256
    epochs: float = 3.0
    plain_epochs: float = 3.0
    rate: float = 4e-3
    clip: float = 1.0
    averaging: float = 0.3
    inputs: int = 500
    compared: int = 1_000
    sample: int = 500
    tagger: str = DEFAULT_PIPELINE

    @property
    def epsilons(self) -> tuple[float, ...]:
        """All of them, the least first."""
        return tuple(sorted({*self.curve, self.epsilon}))


FULL = TextRunPlan(name="full")
QUICK = TextRunPlan(
    name="quick",
    records=1_250,
    splits=2,
    curve=(0.4,),
    vocabulary=800,
    embedding=48,
    hidden=64,
    batch=64,
    epochs=2.0,
    plain_epochs=2.0,
    inputs=200,
    compared=250,
    sample=200,
)

ORIGINAL = TextCell("original", 0.0)


def cell_at(
    system: TextSystem, epsilon: float, variant: TextVariant = "corrected", split: int = 0
) -> TextCell:
    """Return a cell; epsilon is 0 where there is no privacy, and variants are those there are."""
    is_private = system not in ("original", "plain")
    has_variants = system in ENCODER_DECODERS
    # Without privacy there is no noise, so it cannot stand outside.
    own: TextVariant = variant if has_variants else "corrected"
    if system == "plain" and own == "inside":
        own = "printed"
    return TextCell(system, epsilon if is_private else 0.0, own, split)


def systems_at(epsilon: float) -> list[TextCell]:
    """Return every system at an epsilon, of the first split."""
    found = [ORIGINAL]
    for system in ENCODER_DECODERS:
        found += [cell_at(system, epsilon, variant) for variant in VARIANTS]
    found += [cell_at("ngrams", epsilon), cell_at("crossed", epsilon)]
    return list(dict.fromkeys(found))


def cells_of(plan: TextRunPlan) -> list[TextCell]:
    """Return everything that is run, each once; the table comes first."""
    found = [
        replace(one, split=split)
        for split in range(plan.splits)
        for one in systems_at(plan.epsilon)
    ]
    for epsilon in plan.curve:
        private = [one for one in systems_at(epsilon) if one.epsilon]
        found += [
            replace(one, split=split) for split in range(plan.curve_splits) for one in private
        ]
    return list(dict.fromkeys(found))


def splits_of(plan: TextRunPlan, epsilon: float) -> int:
    """Return on how many splits cells of an epsilon are run."""
    return plan.splits if epsilon in (0.0, plan.epsilon) else plan.curve_splits
