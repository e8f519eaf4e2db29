"""Every claim of the paper on generated texts that corpora decide, with its tests.

Each is judged three times: of the algorithm as printed, of the same with the noise where the
accountant has it, and corrected. The paper's third claim is about a curve that is no audit.
"""

from collections.abc import Iterable, Iterator
from itertools import product

from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.plans import (
    NAMES,
    ORIGINAL,
    PRIVATE_EDS,
    VARIANT_WORDS,
    VARIANTS,
    TextCell,
    TextRunPlan,
    TextVariant,
    cell_at,
)
from noisefloor_sim.papers.text.results import GainFigure, TextFigure, f1_name
from noisefloor_sim.papers.verdicts import GapTest, MeanTest, PrintedClaim, Test, Variants

SPLITS, TEXTS, INPUTS, NUMBERS = "splits", "texts", "inputs", "printed"
NEAR = 0.1
"""Nats: what is called equal, or near zero, of losses."""

SCORES = tuple(product(printed.CLASSIFIERS, printed.LABELS))


def _claim(
    key: str, data: str, what: str, words: str, tests: Iterable[Test]
) -> Iterator[PrintedClaim]:
    """Give a claim, or none if the plan runs nothing of it."""
    some = tuple(tests)
    if some:
        yield PrintedClaim(key, data, what, words, some)


def _score_gap(first: TextCell, second: TextCell, classifier: str, label: str) -> GapTest:
    what = f1_name(classifier, label)
    name = f"{printed.CLASSIFIERS[classifier]} {label}: {first.title} over {second.title}"
    return GapTest(name, TextFigure(what, first), TextFigure(what, second))


def order_claims(plan: TextRunPlan, variant: TextVariant) -> list[PrintedClaim]:
    """Return the first claim: what is better than what, and by how much."""
    dp, dpvg = (cell_at(system, plan.epsilon, variant) for system in PRIVATE_EDS)
    plain = cell_at("plain", 0.0, variant)

    def over(first: TextCell, second: TextCell) -> list[Test]:
        return [_score_gap(first, second, *score) for score in SCORES]

    negative = [
        GapTest(
            f"{printed.CLASSIFIERS[classifier]}, {cell.title}",
            TextFigure(f1_name(classifier, "NEG"), cell),
            TextFigure(f1_name(classifier, "POS"), cell),
        )
        for cell in (ORIGINAL, dp, dpvg)
        for classifier in printed.CLASSIFIERS
    ]
    return [
        *_claim("raw-first", SPLITS, "1: original texts are above DPvG E-D in all 8 cells",
            "order", over(ORIGINAL, dpvg)),
        *_claim("plain-first", SPLITS,
            "1, 'original' read as E-D without privacy: it is above DPvG E-D in all 8 cells",
            "order", over(plain, dpvg)),
        *_claim("generalised", SPLITS, "1: DPvG E-D is above DP E-D in all 8 cells", "order",
            over(dpvg, dp)),
        *_claim("negative", SPLITS, "1: NEG is above POS everywhere", "order", negative),
        *_claim("largest-gain", SPLITS, "1: the gain of DPvG E-D is largest for MLR POS",
            "+0.084", _gain_tests(variant, printed.LARGEST_GAIN, is_first=True)),
        *_claim("smallest-gain", SPLITS, "1: the gain of DPvG E-D is smallest for MNB POS",
            "+0.019", _gain_tests(variant, printed.SMALLEST_GAIN, is_first=False)),
    ]  # fmt: skip


def _gain_tests(variant: TextVariant, score: tuple[str, str], *, is_first: bool) -> Iterator[Test]:
    for other in SCORES:
        if other != score:
            pair = (score, other) if is_first else (other, score)
            names = [f"{printed.CLASSIFIERS[one[0]]} {one[1]}" for one in pair]
            first, second = (GainFigure(f1_name(*one), variant) for one in pair)
            yield GapTest(f"gain of {names[0]} over gain of {names[1]}", first, second)


def likeness_claims(plan: TextRunPlan, variant: TextVariant) -> list[PrintedClaim]:
    """Return the second and the fourth claim: cosines, and words that are rare."""
    dp, dpvg = (cell_at(system, plan.epsilon, variant) for system in PRIVATE_EDS)

    def gap(name: str, what: str, first: TextCell, second: TextCell) -> Test:
        return GapTest(name, TextFigure(what, first), TextFigure(what, second))

    return [
        *_claim("less-alike", TEXTS, "2: DPvG E-D is less like the original texts than DP E-D",
            "figures", (
                gap("mean cosine of a text, DP E-D over DPvG E-D", "row_means", dp, dpvg),
                gap("nearest cosine of a text, DP E-D over DPvG E-D", "row_maxima", dp, dpvg))),
        *_claim("rare-words", SPLITS, "4: generalised names let rare words be written", "in words",
            [gap("share of rare pieces, DPvG E-D over DP E-D", "rare_share", dpvg, dp)]),
        *_claim("diverse", SPLITS, "4: generalised names give a more diverse vocabulary",
            "in words", [gap("different pieces by pieces, DPvG E-D over DP E-D", "distinct_1",
                             dpvg, dp)]),
    ]  # fmt: skip


def loss_claims(plan: TextRunPlan, variant: TextVariant) -> list[PrintedClaim]:
    """Return the third claim, of the curve that the paper calls privacy loss."""
    below = [one for one in plan.epsilons if one < printed.LOSS_BORDER]
    above = [one for one in plan.epsilons if one > printed.LOSS_BORDER]

    def figure(system: int, epsilon: float) -> TextFigure:
        return TextFigure("loss", cell_at(PRIVATE_EDS[system], epsilon, variant))

    return [
        *_claim("loss-equal", INPUTS, "3: privacy losses as printed are equal below eps 0.8, "
            f"within {NEAR:g}", "figure",
            (GapTest(f"DPvG E-D over DP E-D, eps {e:g}", figure(1, e), figure(0, e), -NEAR, NEAR)
             for e in below)),
        *_claim("loss-zero", INPUTS, f"3: they are near zero there, at most {NEAR:g}", "figure",
            (MeanTest(f"{NAMES[system]}, eps {e:g}", figure(place, e), 0.0, NEAR)
             for place, system in enumerate(PRIVATE_EDS) for e in below)),
        *_claim("loss-above", INPUTS, "3: above eps 0.8 that of DP E-D is lower", "figure",
            (GapTest(f"DPvG E-D over DP E-D, eps {e:g}", figure(1, e), figure(0, e))
             for e in above)),
    ]  # fmt: skip


def variant_title(variant: TextVariant) -> str:
    """Return the heading of a variant's claims."""
    words = VARIANT_WORDS[variant]
    return words[0].upper() + words[1:]


def empirical_variants(plan: TextRunPlan) -> Variants:
    """Return the claims that corpora decide, variant by variant."""
    return {
        variant_title(variant): [
            *order_claims(plan, variant),
            *likeness_claims(plan, variant),
            *loss_claims(plan, variant),
        ]
        for variant in VARIANTS
    }
