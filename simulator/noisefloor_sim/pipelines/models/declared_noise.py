"""What a plan declares of the noise of its release, for scoring: apart from the code that adds it.

Scales are written down from what the proof speaks of (noise multiplier, clipping bound, epsilon,
sigma of a table), and not taken from where a release takes them.
"""

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
from noisefloor_sim.pipelines.releases import (
    FLOATS,
    DeclaredPart,
    ReleaseNoise,
    sgd_noise,
    single_part,
)

_GRID_HALF = 1 << 15
"""Grid steps from 0 to the threshold of a parameter in learning-first."""


def declaration_of(plan: ModelPlan, records: int) -> ReleaseNoise | None:
    """Return what a plan declares for a table of some size; None if it has no noise."""
    if isinstance(plan, PrivateSgdPlan):
        return sgd_noise(plan.sgd)
    if isinstance(plan, LogisticMethodPlan):
        return _logistic(plan)
    if isinstance(plan, LearningFirstPlan):
        return _learning_first(plan)
    if isinstance(plan, AnonymisedLearningPlan):
        return _anonymised_learning(plan, records)
    if isinstance(plan, AnonymisingFirstPlan | SyntheticTablePlan):
        return _tables(plan.tables)
    return None


def _logistic(plan: LogisticMethodPlan) -> ReleaseNoise:
    fit = plan.plan
    sums, step = (
        DeclaredNoise(NoiseShape.GAUSSIAN, multiplier * bound, FLOATS)
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
    noise = DeclaredNoise(NoiseShape.LAPLACE, scale, FLOATS, is_integer=True)
    bound = None if learning.form == "printed" else float(_GRID_HALF)
    return single_part(DeclaredPart("parameters", noise, bound), 1)


def _anonymised_learning(plan: AnonymisedLearningPlan, records: int) -> ReleaseNoise:
    learning, training = plan.learning, plan.learning.training
    norm = learning.norm if learning.form == "norm" else None
    # Under substitution a record's part moves by twice its bound, and epochs share epsilon.
    scale = 2 * training.epochs / learning.epsilon * (norm or 1.0)
    noise = DeclaredNoise(NoiseShape.LAPLACE, scale, FLOATS)
    steps = training.epochs * -(-records // training.batch)
    return single_part(DeclaredPart("step", noise, norm), steps)


def _tables(tables: PrivateTables) -> ReleaseNoise:
    made, noises = tables.tables, tables.tables.budget.noises
    declared = {group: _entries(noise) for group, noise in noises.items()}
    if isinstance(made, synthesis.CellHistogram):
        return single_part(DeclaredPart("cells", declared["cells"]), 1)
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
    return DeclaredNoise(NoiseShape.LAPLACE, scale, 2 * FLOATS, is_integer=True)
