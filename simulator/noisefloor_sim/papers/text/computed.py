"""What is proved of each part of the paper's pipeline, and claims that need no corpus.

The paper claims (epsilon, delta) for generator and texts, and prints neither. What is stated here
is computed from what a run does; independent scripts' figures are recomputed beside it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from noisefloor.accounting import (
    SampledGaussian,
    epsilon_at,
    group,
    noise_multiplier_for,
    sequential,
)
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication.text.generalisation import KAnonymous, most_rewritten
from noisefloor.publication.text.generators import PRIVATE_PARTS
from noisefloor_sim.papers.text import printed
from noisefloor_sim.papers.text.budgets import RELATION, budget_of, seed_delta
from noisefloor_sim.papers.text.claims import NUMBERS
from noisefloor_sim.papers.text.plans import (
    AUTHOR_TEXTS,
    ENTITIES,
    PRIVATE_EDS,
    VARIANT_WORDS,
    VARIANTS,
    K,
    TextRunPlan,
    TextVariant,
    cell_at,
)
from noisefloor_sim.papers.text.results import TextsFound
from noisefloor_sim.papers.verdicts import ComputedTest, PrintedClaim, Test, Variants, exactly

PRIVACY_VARIANT = "Privacy and accounting"
TABLE_VARIANT = "The printed table against the printed text"
PARTS_ORDER = (
    *("generalisation", "weights, names left", "weights after generalisation", "seeds"),
    *("lengths", "vocabulary", "labels may change", "whole", "whole, for an author"),
)


@dataclass(frozen=True, slots=True)
class PrivatePart:
    """One part of what is released, and what is proved of it.

    Attributes:
        name: Which part.
        guarantee: What is proved.
        words: What it follows from.
    """

    name: str
    guarantee: Guarantee
    words: str = ""


def claimed(plan: TextRunPlan) -> Guarantee:
    """Return what is claimed of every part and of the whole."""
    return budget_of(plan.epsilon)


def parts_of(found: TextsFound, plan: TextRunPlan, variant: TextVariant) -> list[PrivatePart]:
    """Return what is proved of DPvG E-D at the epsilon of the table, part by part.

    Args:
        found: Every cell; what the trainings proved is read from theirs.
        plan: Of the run.
        variant: Of the pipeline.
    """
    cell = cell_at("dpvg-ed", plan.epsilon, variant)
    proved = {name: _read(one) for name, one in found[cell]["proved"].items()}
    alone = _read(found[cell_at("dp-ed", plan.epsilon, variant)]["proved"]["weights"])
    weights = proved["weights"]
    if variant == "corrected":
        places, lengths = proved["generalisation"], proved["lengths"]
        free = Guarantee(0.0, RELATION, model=TrustModel.CENTRAL)
        whole = sequential([places, weights, lengths])
        found_parts = {
            "generalisation": (places, "noisy counts of places; other levels are public"),
            "weights, names left": (alone, "noise inside of 1/L, in DP E-D"),
            "weights after generalisation": (
                weights,
                "given the counts, no text is rewritten because of another",
            ),
            "seeds": (free, "drawn by public frequencies"),
            "lengths": (lengths, "a noisy table of lengths by label"),
            "vocabulary": (free, "the most frequent pieces of public texts"),
        }
    else:
        form = KAnonymous(K)
        after = form.what_follows(weights, ENTITIES)
        changed, steps = _changed(ENTITIES, K, form.most_parents), form.group_size(ENTITIES)
        facts = found[cell]["seeds"]
        none = {name: _none(reason) for name, reason in PRIVATE_PARTS.items()}
        whole = sequential([form.proved, *none.values()])  # after it, nothing is left to add
        place = "outside" if variant == "printed" else "inside"
        found_parts = {
            "generalisation": (form.proved, f"k = {K}"),
            "weights, names left": (alone, f"noise {place} of 1/L"),
            "weights after generalisation": (
                after,
                f"if no document has more than {ENTITIES} mentions, which nothing makes sure of: "
                f"{changed} documents change, {steps} steps of adding or removing one",
            ),
            "seeds": (none["seeds"], f"infinite at any delta below {facts['delta']:.3g}"),
            "lengths": (none["lengths"], _said_of_lengths(found[cell]["different_lengths"])),
            "vocabulary": (none["vocabulary"], "counts of private pieces"),
        }
    found_parts |= {
        "labels may change": (
            replace(_read(found[cell]["substituted"]), neighbours=Neighbours.RECORD_SUBSTITUTE),
            "of one document for another: if it changes its label it is in both trainings, if it "
            "keeps it, in one with what it was and with what it becomes",
        ),
        "whole": (whole, "sum of the parts"),
        "whole, for an author": (
            group(whole, AUTHOR_TEXTS, Neighbours.USER),
            f"an author of {AUTHOR_TEXTS} texts",
        ),
    }
    return [PrivatePart(name, *found_parts[name]) for name in PARTS_ORDER]


def _said_of_lengths(different: int) -> str:
    if different == 1:
        return "all texts are equally long here: they say how many there are, and no more"
    return f"{different} different lengths here"


def _read(stored: Mapping[str, Any]) -> Guarantee:  # Any: JSON
    if stored["epsilon"] is None:
        return _none(stored["reason"])
    delta, reason = stored["delta"], stored["reason"]
    return Guarantee(
        stored["epsilon"], RELATION, delta=delta, model=TrustModel.CENTRAL, reason=reason
    )


def _none(reason: str) -> Guarantee:
    return Guarantee.none(reason, RELATION, TrustModel.CENTRAL)


@lru_cache(maxsize=8)
def script_epsilon(place: str, method: str = "rdp") -> float:
    """Return the epsilon of the scripts' run, with the noise inside of 1/L or outside of it."""
    batch = printed.SCRIPT_BATCH
    sigma = printed.SCRIPT_SIGMA * (batch if place == "outside" else 1)
    event = SampledGaussian(sigma, batch / printed.SCRIPT_DOCUMENTS, script_steps(printed.EPOCHS))
    how: Any = method  # one of two literals
    return epsilon_at([event], printed.DELTA, how).epsilon


def script_steps(epochs: int) -> int:
    """Return the steps of the scripts' run."""
    return round(epochs * printed.SCRIPT_DOCUMENTS / printed.SCRIPT_BATCH)


@lru_cache(maxsize=16)
def script_sigma(epochs: int, epsilon: float) -> float:
    """Return the noise that an epsilon needs in the scripts' run, by Renyi accounting."""
    rate = printed.SCRIPT_BATCH / printed.SCRIPT_DOCUMENTS
    return noise_multiplier_for(epsilon, printed.DELTA, rate, script_steps(epochs), "rdp")


def _claim(key: str, what: str, words: str, *tests: Test) -> PrintedClaim:
    return PrintedClaim(key, NUMBERS, what, words, tests)


def privacy_claims(found: TextsFound, plan: TextRunPlan) -> list[PrintedClaim]:
    """Return the claims of privacy, and figures of independent scripts recomputed.

    A guarantee that is not proved may still hold: then epsilon is between what is known below and
    infinity. Of seeds it is known that it does not: at delta 1e-5 no epsilon is large enough.
    """
    return [
        *(_whole_claim(found, plan, variant) for variant in VARIANTS),
        *(_weights_claim(found, plan, variant) for variant in VARIANTS),
        _noise_claim(found, plan),
        *_script_claims(),
    ]


def _whole_claim(found: TextsFound, plan: TextRunPlan, variant: TextVariant) -> PrintedClaim:
    parts = {one.name: one for one in parts_of(found, plan, variant)}
    whole, facts = parts["whole"].guarantee, found[cell_at("dp-ed", plan.epsilon, variant)]
    leaked = variant != "corrected" and facts["seeds"]["delta"] > printed.DELTA
    high = whole.epsilon if whole.is_finite else math.inf
    low = math.inf if leaked else 0.0
    return _claim(
        f"whole-{variant}",
        f"the texts have epsilon {plan.epsilon:g} at delta 1e-5: {VARIANT_WORDS[variant]}",
        "(eps, delta)",
        _up_to("epsilon of the whole, known to proved", low, high, plan.epsilon),
    )


def _weights_claim(found: TextsFound, plan: TextRunPlan, variant: TextVariant) -> PrintedClaim:
    parts = {one.name: one.guarantee for one in parts_of(found, plan, variant)}
    after = parts["weights after generalisation"]
    high = after.epsilon if after.delta <= printed.DELTA else math.inf
    words = VARIANT_WORDS[variant]
    return _claim(
        f"after-{variant}",
        f"generalised first, a training keeps its epsilon of {plan.epsilon:g}: {words}",
        "(eps, delta)",
        _up_to("epsilon at delta 1e-5, known to proved", 0.0, high, plan.epsilon),
    )


def _noise_claim(found: TextsFound, plan: TextRunPlan) -> PrintedClaim:
    """Return the claim that duplicates need less noise: sigma follows from rates and epsilon."""
    dp, dpvg = (found[cell_at(system, plan.epsilon, "inside")]["noise"] for system in PRIVATE_EDS)
    test = exactly("sigma of DPvG E-D over that of DP E-D", dpvg / dp, most=0.999)
    return _claim("less-noise", "generalised texts need less noise", "in words", test)


def _up_to(name: str, low: float, high: float, most: float) -> ComputedTest:
    return ComputedTest(name, high, low, high, 0.0, most * (1 + 1e-3))


def _script_claims() -> list[PrintedClaim]:
    inside, outside = printed.SCRIPT_EPSILONS
    return [
        _claim("noise-inside", "500 epochs at sigma 1.1 cost epsilon 22.92, noise inside of 1/L",
            "not printed", exactly("epsilon by Renyi accounting", script_epsilon("inside"),
                *_rounded(inside, 0.005))),
        _claim("noise-outside", "500 epochs at sigma 1.1 cost epsilon 0.036, noise outside of 1/L",
            "not printed", exactly("epsilon by Renyi accounting", script_epsilon("outside"),
                *_rounded(outside, 0.0005))),
        *(_claim(f"sigmas-{epochs}", f"{epochs} epochs need sigma "
            + ", ".join(f"{one:g}" for one in table.values()) + " for epsilon "
            + ", ".join(f"{one:g}" for one in table), "not printed",
            *(exactly(f"sigma at eps {epsilon:g}", script_sigma(epochs, epsilon),
                *_rounded(sigma, 0.005 if sigma < 1 else 0.05))
              for epsilon, sigma in table.items()))
          for epochs, table in printed.SCRIPT_SIGMAS.items()),
        _claim("seed-deltas", "a word of one document comes up as a seed in 0.42 % of corpora "
            "(once there), or 2.1 % (five times)", "not printed",
            *(exactly(f"percent, c = {count}",
                100 * seed_delta(printed.SCRIPT_PIECES, printed.SCRIPT_TEXTS, count),
                *_rounded(100 * delta, 0.005 if delta < 0.01 else 0.05))
              for count, delta in printed.SCRIPT_SEED_DELTAS.items())),
        _claim("group", "5 mentions, k = 5 and 3 levels of parents: 81 documents change if one is "
            "removed", "not printed", exactly("documents", _changed(*printed.SCRIPT_CLIMB),
                printed.SCRIPT_GROUP, printed.SCRIPT_GROUP)),
    ]  # fmt: skip


def _changed(entities: int, k: int, parent_levels: int) -> int:
    """Return how many documents differ after the climb if one is removed before it."""
    return 1 + entities * most_rewritten(k, parent_levels)


def _rounded(value: float, half: float) -> tuple[float, float]:
    return value - half, value + half


def table_claims() -> list[PrintedClaim]:
    """Return what the text says of the table, decided from the table alone."""
    table, scores = printed.F1, tuple((one, it) for one in printed.CLASSIFIERS
                                      for it in printed.LABELS)  # fmt: skip
    gains = {
        score: round(table["dpvg-ed", *score] - table["dp-ed", *score], 3) for score in scores
    }

    def least(first: str, second: str) -> float:
        return round(min(table[first, *one] - table[second, *one] for one in scores), 3)

    gap = min(
        table[system, one, "NEG"] - table[system, one, "POS"]
        for system in printed.SYSTEMS
        for one in printed.CLASSIFIERS
    )
    others = {score: value for score, value in gains.items() if score != printed.SMALLEST_GAIN}
    most = max(value for score, value in gains.items() if score != printed.LARGEST_GAIN)
    return [
        _claim("table-original", "original texts are above DPvG E-D in all 8 cells", "order",
            exactly("least gap", least("original", "dpvg-ed"), 0.001)),
        _claim("table-generalised", "DPvG E-D is above DP E-D in all 8 cells", "order",
            exactly("least gap", least("dpvg-ed", "dp-ed"), 0.001)),
        _claim("table-negative", "NEG is above POS everywhere", "order",
            exactly("least gap", round(gap, 3), 0.001)),
        _claim("table-largest", "the largest gain is that of MLR POS", "+0.084",
            exactly("gain over the next", round(gains[printed.LARGEST_GAIN] - most, 3), 0.001)),
        _claim("table-smallest", "the smallest gain is that of MNB POS", "+0.019",
            exactly("the next over it", round(min(others.values())
                - gains[printed.SMALLEST_GAIN], 3), 0.001)),
    ]  # fmt: skip


def computed_variants(found: TextsFound, plan: TextRunPlan) -> Variants:
    """Return every claim that no corpus decides."""
    return {PRIVACY_VARIANT: privacy_claims(found, plan), TABLE_VARIANT: table_claims()}


def accounting_facts() -> Mapping[str, Any]:  # Any: JSON
    """Return what was recomputed of the scripts' run, for the JSON file."""
    return {
        "epsilon_inside": {one: script_epsilon("inside", one) for one in ("rdp", "pld")},
        "epsilon_outside": {one: script_epsilon("outside", one) for one in ("rdp", "pld")},
        "sigmas": {
            str(epochs): {f"{epsilon:g}": script_sigma(epochs, epsilon) for epsilon in table}
            for epochs, table in printed.SCRIPT_SIGMAS.items()
        },
    }
