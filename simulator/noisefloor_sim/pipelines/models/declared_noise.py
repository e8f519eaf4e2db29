"""What a plan declares of the noise of its release, for scoring: apart from the code that adds it.

Scales are written down from what the proof speaks of (noise multiplier, clipping bound, epsilon,
sigma of a table), and not taken from where a release takes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from noisefloor.adversary.releases import DeclaredNoise, NoiseShape
from noisefloor.publication import synthesis
from noisefloor.publication.methods import (
    AnonymisedLearningPlan,
    AnonymisingFirstPlan,
    LearningFirstPlan,
    LogisticMethodPlan,
    ModelPlan,
    PrivateSgdPlan,
    PrivateTables,
    SyntheticTablePlan,
)

_FLOATS = 1e-5
"""Margins of float noise beside the plan's own: two parts in a million at most, and rounding."""

_SUM_ROUNDING = 2.0**-23
"""Of private SGD, for each record of the expected batch: more noise than the account asks for."""

_GRID_HALF = 1 << 15
"""Grid steps from 0 to the threshold of a parameter in learning-first."""


@dataclass(frozen=True, slots=True)
class DeclaredPart:
    """What is declared of one vector of a release, or of the vectors of all steps.

    Attributes:
        group: The name of all parts with the same noise; they are tested together.
        noise: Its distribution, in multiples of the vector's ``unit`` where it has one.
        bound: The largest norm of one record in it; None where records are counted.
        rate: The probability of each record to be sampled for it.
    """

    group: str
    noise: DeclaredNoise
    bound: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseNoise:
    """What is declared of a release.

    Attributes:
        parts: By the names that the release gives its vectors.
        vectors: How many vectors each group has, at least and at most: these are accounted for.
    """

    parts: Mapping[str, DeclaredPart]
    vectors: Mapping[str, tuple[int, int]]


def declaration_of(plan: ModelPlan, records: int) -> ReleaseNoise | None:
    """Return what a plan declares for a table of some size; None if it has no noise."""
    if isinstance(plan, PrivateSgdPlan):
        return _private_sgd(plan)
    if isinstance(plan, LogisticMethodPlan):
        return _logistic(plan)
    if isinstance(plan, LearningFirstPlan):
        return _learning_first(plan)
    if isinstance(plan, AnonymisedLearningPlan):
        return _anonymised_learning(plan, records)
    if isinstance(plan, AnonymisingFirstPlan | SyntheticTablePlan):
        return _tables(plan.tables)
    return None


def _single(part: DeclaredPart, vectors: int) -> ReleaseNoise:
    return ReleaseNoise({part.group: part}, {part.group: (vectors, vectors)})


def _private_sgd(plan: PrivateSgdPlan) -> ReleaseNoise:
    sgd = plan.sgd
    bound = sgd.clipping.sensitivity
    slack = sgd.expected_batch * _SUM_ROUNDING + _FLOATS
    scale = sgd.noise_multiplier * sgd.clipping.noised_bound
    noise = DeclaredNoise(NoiseShape.GAUSSIAN, scale, slack)
    rate = sgd.expected_batch / sgd.examples
    return _single(DeclaredPart("step", noise, bound, rate if rate < 1 else None), sgd.steps)


def _logistic(plan: LogisticMethodPlan) -> ReleaseNoise:
    fit = plan.plan
    sums, step = (
        DeclaredNoise(NoiseShape.GAUSSIAN, multiplier * bound, _FLOATS)
        for multiplier, bound in zip(fit.multipliers, (fit.length, fit.clip), strict=True)
    )
    parts = {
        "feature sums": DeclaredPart("feature sums", sums, fit.length),
        "step": DeclaredPart("step", step, fit.clip),
    }
    return ReleaseNoise(parts, {"feature sums": (1, 1), "step": (fit.steps, fit.steps)})


def _learning_first(plan: LearningFirstPlan) -> ReleaseNoise:
    learning = plan.learning
    shares = learning.parameters if learning.form == "corrected" else 1
    scale = shares * 2 * _GRID_HALF / learning.epsilon
    noise = DeclaredNoise(NoiseShape.LAPLACE, scale, _FLOATS, is_integer=True)
    bound = None if learning.form == "printed" else float(_GRID_HALF)
    return _single(DeclaredPart("parameters", noise, bound), 1)


def _anonymised_learning(plan: AnonymisedLearningPlan, records: int) -> ReleaseNoise:
    learning, training = plan.learning, plan.learning.training
    norm = learning.norm if learning.form == "norm" else None
    # Under substitution a record's part moves by twice its bound, and epochs share epsilon.
    scale = 2 * training.epochs / learning.epsilon * (norm or 1.0)
    noise = DeclaredNoise(NoiseShape.LAPLACE, scale, _FLOATS)
    steps = training.epochs * -(-records // training.batch)
    return _single(DeclaredPart("step", noise, norm), steps)


def _tables(tables: PrivateTables) -> ReleaseNoise:
    made, noises = tables.tables, tables.tables.budget.noises
    declared = {group: _entries(noise) for group, noise in noises.items()}
    if isinstance(made, synthesis.CellHistogram):
        return _single(DeclaredPart("cells", declared["cells"]), 1)
    if isinstance(made, synthesis.LabelHistograms):
        names = (*made.columns, *((made.label,) if made.printed else ()))
        part = DeclaredPart("tables", declared["tables"])
        return ReleaseNoise(dict.fromkeys(names, part), {"tables": (len(names), len(names))})
    if not isinstance(made, synthesis.MarginalTree):
        raise TypeError(f"{type(made).__name__} declares no noise.")
    parts = dict.fromkeys(made.columns, DeclaredPart("ones", declared["ones"]))
    parts["scores"] = DeclaredPart("scores", declared["scores"])
    twos = DeclaredPart("twos", declared["twos"])
    parts |= dict.fromkeys(edge_names(made), twos)
    count = len(made.columns)
    # A forest of n columns has at most n - 1 edges: n - 1 tables of pairs are paid for.
    vectors = {"ones": (count, count), "scores": (1, 1), "twos": (0, count - 1)}
    return ReleaseNoise(parts, vectors)


def edge_names(tree: synthesis.MarginalTree) -> dict[str, tuple[str, str]]:
    """Return the pairs of columns by the names of their tables, parent first, either way round."""
    both = [*tree.pairs, *((two, one) for one, two in tree.pairs)]
    return {",".join(pair): pair for pair in both}


def _entries(noise: synthesis.EntryNoise) -> DeclaredNoise:
    """Return the integer noise of a group of tables."""
    if isinstance(noise, synthesis.GaussianEntries):
        return DeclaredNoise(NoiseShape.GAUSSIAN, noise.table.sigma, is_integer=True)
    if not isinstance(noise, synthesis.LaplaceEntries):
        raise TypeError(f"{type(noise).__name__} is no noise of tables.")
    mechanism = noise.mechanism
    # Calibrated to a hundred-thousandth less, so that rounded weights keep to epsilon.
    scale = mechanism.sensitivity / mechanism.epsilon
    return DeclaredNoise(NoiseShape.LAPLACE, scale, 2 * _FLOATS, is_integer=True)
