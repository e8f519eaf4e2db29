"""The methods of the DNN reproduction, in one list; another one is one more entry.

A method is trained on one fold at one epsilon and tells the classes of held-out records. What it
is called, what its epsilon is said to be and what is proved of the whole model stand beside it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.publication import (
    ClassificationScores,
    LogisticPlan,
    classification_scores,
)
from noisefloor.publication.networks import (
    AnonymisedLearning,
    DenseNetwork,
    LearningFirst,
    NetworkTraining,
    train,
)
from noisefloor.publication.synthesis import LabelHistograms, MarginalTree
from noisefloor.randomness import SeededSource, Source, new_run
from noisefloor.tables import (
    EVERY_COLUMN,
    LABEL,
    LEARNING_SCHEMA,
    Examples,
    OneHot,
    Records,
    folds,
    load_adult,
)

FOLDS, DELTA = 10, 1e-5
DEFAULT_SEED = 1
SUBSTITUTE = Neighbours.RECORD_SUBSTITUTE

EpsilonKind: TypeAlias = Literal["reference", "reading", "printed", "per parameter", "whole model"]
PredictedLabels: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DnnPlan:
    """How much is run; public choices, the same for every method.

    Attributes:
        folds: How many of ten are run.
        epsilons: The grid.
        training: Of every network.
        seed: Of folds and of all randomness.
        long_folds: On how many folds networks are also trained as long as printed.
        is_shuffled: Whether labels are permuted over the records: then there is nothing to learn,
            and nothing may be reproduced.
    """

    folds: int
    epsilons: tuple[float, ...]
    training: NetworkTraining
    seed: int = DEFAULT_SEED
    long_folds: int = 0
    is_shuffled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DnnFold:
    """One fold: what is learnt from, and what is held out.

    Attributes:
        place: Which of ten.
        encoding: How records become examples.
        records: To learn from.
        train: The same as examples.
        held_out: To be predicted.
    """

    place: int
    encoding: OneHot
    records: Records
    train: Examples
    held_out: Examples


TrainAndPredict: TypeAlias = Callable[[DnnFold, float, DnnPlan, Source], PredictedLabels]
"""Trains on a fold at an epsilon, and tells the held-out records."""


@dataclass(frozen=True, slots=True)
class DnnMethod:
    """One line of the figure.

    Attributes:
        key: Short name.
        title: As in the figure.
        approach: The paper's approach that it belongs to; empty for references.
        kind: What its epsilon is: of nothing, for a reference line or another reading of one; of a
            proof that is none; of each parameter alone; of the whole model.
        run: Trains and tells.
        most: The largest epsilon that it can be run at.
        only: Epsilons of another reading that has some.
        has_every_column: Whether it learns from the paper's 14 attributes, and not from our 12.
        training: Of its networks, if not the plan's: it is run on the plan's long folds.
    """

    key: str
    title: str
    approach: str
    kind: EpsilonKind
    run: TrainAndPredict
    most: float = 100.0
    only: tuple[float, ...] = (0.0,)
    has_every_column: bool = False
    training: NetworkTraining | None = None

    def epsilons(self, plan: DnnPlan) -> tuple[float, ...]:
        """Return where it is run; references have one point only."""
        if self.training and not plan.long_folds:
            return ()
        if self.kind in ("reference", "reading"):
            return self.only
        return tuple(one for one in plan.epsilons if one <= self.most)

    def folds(self, plan: DnnPlan) -> int:
        """Return on how many folds it is run."""
        return min(plan.folds, plan.long_folds) if self.training else plan.folds

    def proved(self, epsilon: float, parameters: int) -> float:
        """Return the epsilon that is proved of the whole model."""
        factors = {"per parameter": float(parameters), "whole model": 1.0}
        return epsilon * factors.get(self.kind, np.inf)


@lru_cache(maxsize=2)
def adult(*, has_every_column: bool = False) -> Records:
    """Return the 45,222 complete records, with 12 or with all 14 attributes."""
    return load_adult(EVERY_COLUMN if has_every_column else LEARNING_SCHEMA)


def fold_of(place: int, plan: DnnPlan, *, has_every_column: bool = False) -> DnnFold:
    """Return one of ten folds."""
    records = adult(has_every_column=has_every_column)
    encoding = OneHot(records.schema, LABEL)
    with new_run():
        source = SeededSource(plan.seed, "dnn", "folds")
        places = folds(records.count, FOLDS, source)
        if plan.is_shuffled:
            order = SeededSource(plan.seed, "dnn", "labels").generator().permutation(records.count)
            records = replace(
                records,
                values={**records.values, LABEL: records.values[LABEL][order]},
                codes={**records.codes, LABEL: records.codes[LABEL][order]},
            )
    kept = records[places != place]
    held_out = encoding.examples(records[places == place])
    return DnnFold(place, encoding, kept, encoding.examples(kept), held_out)


_networks: dict[str, DenseNetwork] = {}


def plain_network(fold: DnnFold, plan: DnnPlan) -> DenseNetwork:
    """Return the network of a fold that was trained without noise; the last one is kept."""
    name = f"{fold.place} {fold.encoding.columns} {plan}"
    if name not in _networks:
        _networks.clear()
        with new_run():
            source = SeededSource(plan.seed, "dnn", "plain", fold.place)
            _networks[name] = train(fold.train, plan.training, source)
    return _networks[name]


def _majority(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
    larger = np.bincount(fold.train.labels).argmax()
    return np.full(len(fold.held_out), larger, dtype=np.int64)


def _plain(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
    return plain_network(fold, plan).predict_classes(fold.held_out.features)


def _narrower(width: int) -> TrainAndPredict:
    def run(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
        hidden = (width,) * len(plan.training.hidden)
        network = train(fold.train, replace(plan.training, hidden=hidden), source)
        return network.predict_classes(fold.held_out.features)

    return run


def _anonymising_first(
    make: Callable[[DnnFold, Guarantee], LabelHistograms | MarginalTree],
) -> TrainAndPredict:
    def run(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
        way = make(fold, Guarantee(epsilon, SUBSTITUTE, model=TrustModel.CENTRAL))
        # Under substitution the number of records is public.
        count = len(fold.train)
        made = way.release(fold.records, source.child("tables"))
        synthetic = fold.encoding.examples(made.sample(count, source.child("records")))
        network = train(synthetic, plan.training, source.child("network"))
        return network.predict_classes(fold.held_out.features)

    return run


def _histograms(fold: DnnFold, cost: Guarantee) -> LabelHistograms:
    return LabelHistograms(fold.records.schema, fold.encoding.label, cost, printed=True)


def _tree(fold: DnnFold, cost: Guarantee) -> MarginalTree:
    return MarginalTree(fold.records.schema, fold.encoding.label, cost)


def _learning_first(form: Literal["printed", "clamped", "corrected"]) -> TrainAndPredict:
    def run(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
        clean = plain_network(fold, plan)
        noise = LearningFirst(epsilon, clean.shape.count, form)
        return noise.release(clean, source).predict_classes(fold.held_out.features)

    return run


def _anonymised_learning(form: Literal["printed", "clipped", "norm"]) -> TrainAndPredict:
    def run(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
        learning = AnonymisedLearning(epsilon, plan.training, form)
        return learning.train(fold.train, source).predict_classes(fold.held_out.features)

    return run


def _private_sgd(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
    import torch  # lazy: nothing else here needs it

    from noisefloor.publication.private_sgd import SgdPlan, initialise
    from noisefloor.publication.private_sgd import train as train_privately

    torch.set_num_threads(1)
    width = fold.train.features.shape[1]
    module = torch.nn.Sequential(
        torch.nn.Linear(width, 32), torch.nn.ReLU(), torch.nn.Linear(32, fold.train.classes)
    )
    initialise(module, source.child("weights"))
    budget = Guarantee(epsilon, SUBSTITUTE, delta=DELTA, model=TrustModel.CENTRAL)
    count = len(fold.train)
    sgd = SgdPlan.for_budget(
        budget, examples=count, expected_batch=min(4096, count), epochs=10, learning_rate=0.01
    )
    arrays = torch.from_numpy(fold.train.features), torch.from_numpy(fold.train.labels)
    train_privately(module, *arrays, sgd, source.child("training"))
    with torch.no_grad():
        logits = module(torch.from_numpy(fold.held_out.features))
    return np.asarray(logits.argmax(dim=1).numpy())


def _logistic(fold: DnnFold, epsilon: float, plan: DnnPlan, source: Source) -> PredictedLabels:
    logistic = LogisticPlan.for_budget(
        Guarantee(epsilon, SUBSTITUTE, delta=DELTA, model=TrustModel.CENTRAL),
        width=fold.encoding.width,
        classes=fold.encoding.classes,
        size=len(fold.train),
        length=math.sqrt(len(fold.encoding.columns)),
    )
    return logistic.fit(fold.train, source).predict_classes(fold.held_out.features)


FIRST, LEARNING_FIRST, ANONYMISED = "AnonymizingFirst", "LearningFirst", "AnonymizedLearning"
MOST = 10.0
"""The largest epsilon of methods whose epsilon is the model's: beyond, nothing changes."""

METHODS: tuple[DnnMethod, ...] = (
    DnnMethod("majority", "larger class", "", "reference", _majority),
    DnnMethod("plain", "plain network", "", "reference", _plain),
    DnnMethod("plain-32", "plain network, layers of 32", "", "reading", _narrower(32)),
    DnnMethod("plain-16", "plain network, layers of 16", "", "reading", _narrower(16)),
    DnnMethod(
        "af-histograms",
        "AnonymizingFirst, histograms",
        FIRST,
        "whole model",
        _anonymising_first(_histograms),
        most=MOST,  # exact noise of tables ends at 40
    ),
    DnnMethod(
        "af-tree",
        "AnonymizingFirst, tree of tables",
        FIRST,
        "whole model",
        _anonymising_first(_tree),
        most=MOST,
    ),
    DnnMethod(
        "lf-printed",
        "LearningFirst, printed",
        LEARNING_FIRST,
        "printed",
        _learning_first("printed"),
    ),
    DnnMethod(
        "lf-clamped",
        "LearningFirst",
        LEARNING_FIRST,
        "per parameter",
        _learning_first("clamped"),
    ),
    DnnMethod(
        "lf-corrected",
        "LearningFirst, corrected",
        LEARNING_FIRST,
        "whole model",
        _learning_first("corrected"),
    ),
    DnnMethod(
        "al-printed",
        "AnonymizedLearning, printed",
        ANONYMISED,
        "printed",
        _anonymised_learning("printed"),
    ),
    DnnMethod(
        "al-clipped",
        "AnonymizedLearning",
        ANONYMISED,
        "per parameter",
        _anonymised_learning("clipped"),
    ),
    DnnMethod(
        "al-corrected",
        "AnonymizedLearning, corrected",
        ANONYMISED,
        "whole model",
        _anonymised_learning("norm"),
    ),
    DnnMethod("dp-logistic", "DP logistic regression", "", "whole model", _logistic, most=MOST),
    DnnMethod("dp-sgd", "DP-SGD", "", "whole model", _private_sgd, most=MOST),
    *(
        DnnMethod(
            f"{key}-{ending}",
            f"{title}, {words}",
            approach,
            "reading",
            run,
            only=(1.0,) if approach else (0.0,),
            has_every_column=is_every,
            training=training,
        )
        for ending, words, is_every, training in (
            ("14", "14 attributes", True, None),
            ("500", "500 epochs", False, NetworkTraining()),
        )
        for key, title, approach, run in (
            ("plain", "plain network", "", _plain),
            ("lf", LEARNING_FIRST, LEARNING_FIRST, _learning_first("printed")),
            ("al", ANONYMISED, ANONYMISED, _anonymised_learning("printed")),
            ("af", FIRST, FIRST, _anonymising_first(_histograms)),
        )
        if (key, ending) != ("af", "500")  # its epsilon is that of the tables, however long
    ),
)
"""Every method, in the order of the figure. Those of other approaches are added here."""

BY_KEY = {one.key: one for one in METHODS}


def run_point(key: str, epsilon: float, place: int, plan: DnnPlan) -> ClassificationScores:
    """Return what a method reaches on a fold; a worker's whole job."""
    method = BY_KEY[key]
    own = replace(plan, training=method.training or plan.training)
    fold = fold_of(place, plan, has_every_column=method.has_every_column)
    with new_run():
        source = SeededSource(plan.seed, "dnn", key, repr(epsilon), place)
        predicted = method.run(fold, epsilon, own, source)
    return classification_scores(predicted, fold.held_out.labels, fold.held_out.classes)
