"""What a published support vector machine gives away: who took part, and with which label.

Support vectors are training rows. Where rows are values as they are, or classes without noise,
the model is a list of some of its owners; where they are reports, it is a function of reports,
and its guarantee is theirs.

Support vectors as an adversary reads them in a published machine, and who publishes it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import binary_success, true_positive_rate
from noisefloor.adversary.audit import AttackOutcome, draw_truth, lower_limit, upper_limit
from noisefloor.checks import Floats, check_count, check_probability
from noisefloor.collection import collecting, learners, one_thread
from noisefloor.collection.encoding import Discretiser, JointResponse, PrintedDiscretiser
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.tables import Labels, ScaledRecords


@dataclass(frozen=True, slots=True, eq=False)
class SupportVectors:
    """What anybody reads in a published support vector machine.

    Attributes:
        vectors: Its support vectors; none if it tells the same of everything.
        labels: Of the support vectors, by the sign of their weights.
        model: That predicts from features.
    """

    vectors: Floats
    labels: Labels
    model: learners.Classifier

    @classmethod
    def of(cls, model: learners.Classifier | learners.JointSVM, width: int) -> "SupportVectors":
        """Read a machine of n features, or a model of a single label.

        Args:
            model: As ``classifiers.fit`` or ``fit_svm`` returns it, or as it is published.
            width: How many features it has.
        """
        if isinstance(model, learners.JointSVM):
            only = model.machine
            model = (
                learners.ConstantClassifier(only)
                if isinstance(only, bool)
                else learners.export_svc(only)
            )
        if isinstance(model, learners.SklearnClassifier) and hasattr(
            model.estimator, "support_vectors_"
        ):
            machine = model.estimator
            return cls(machine.support_vectors_, np.asarray(machine.dual_coef_[0] > 0), model)
        if isinstance(model, learners.KernelModel):
            return cls(model.vectors, model.weights > 0, model)
        if isinstance(model, learners.ConstantClassifier | learners.ConstantModel):
            return cls(np.empty((0, width)), np.empty(0, dtype=np.bool_), model)
        raise BadParameter("model", type(model).__name__, "to have support vectors")

    def contains(self, rows: collecting.Collected) -> NDArray[np.bool_]:
        """Return which rows are support vectors, in every feature and with their label."""
        mine = np.column_stack([self.vectors, self.labels])
        theirs = np.column_stack([rows.features, rows.labels])
        kinds = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)[1]
        flat = kinds.reshape(-1)
        return np.isin(flat[len(mine) :], flat[: len(mine)])


@dataclass(frozen=True, slots=True)
class SvmPublisher:
    """Who collects and publishes, and what is promised to owners.

    Attributes:
        publish: Makes the model of some owners' records.
        clear: Returns what owners would send without noise.
        epsilon: Of an owner's record; infinite if nothing is promised.
        is_plain: Whether values are sent as they are, so that rows are the owners' own.
    """

    publish: Callable[[ScaledRecords, Source], SupportVectors]
    clear: Callable[[ScaledRecords], collecting.Collected]
    epsilon: float
    is_plain: bool = False


def collector_publisher(
    collector: collecting.Collector, columns: Sequence[int], weight: float = 1.0
) -> SvmPublisher:
    """Return who trains an SVM on what a collector reads.

    Args:
        collector: Of the rows: raw, WA, WALDP or joint.
        columns: The attributes that are collected.
        weight: The C of the machine.
    """
    if not isinstance(
        collector,
        collecting.RawCollector
        | collecting.WeakCollector
        | collecting.UnifiedCollector
        | collecting.JointCollector,
    ):
        raise BadParameter("collector", type(collector).__name__, "to be raw, WA, WALDP or joint")
    epsilon = collector.guarantee(columns).epsilon

    def publish(records: ScaledRecords, source: Source) -> SupportVectors:
        got = collector.collect(records, columns, source)
        return SupportVectors.of(
            learners.fit("svm", got.features, got.labels, weight=weight), len(columns)
        )

    classes = None if isinstance(collector, collecting.RawCollector) else collector.classes
    clear = partial(clear_rows, classes, tuple(columns))
    return SvmPublisher(publish, clear, epsilon, classes is None)


def joint_publisher(
    classes: Discretiser, columns: Sequence[int], epsilon: float, cost: float = 1.0
) -> SvmPublisher:
    """Return who trains an SVM on joint responses about the same columns (jSVM)."""
    sizes = tuple(classes.sizes[column] for column in columns)
    response = JointResponse(sizes, len(columns), epsilon)

    def publish(records: ScaledRecords, source: Source) -> SupportVectors:
        codes = classes.codes(records.values[:, list(columns)], columns)
        rows = np.column_stack([codes, records.labels.astype(np.uint16)])
        reports = response.randomise(rows, source)
        return SupportVectors.of(learners.fit_svm(classes, columns, reports, cost), len(columns))

    promised = response.guarantee().epsilon
    return SvmPublisher(publish, partial(clear_rows, classes, tuple(columns)), promised)


def clear_rows(
    classes: Discretiser | PrintedDiscretiser | None,
    columns: tuple[int, ...],
    records: ScaledRecords,
) -> collecting.Collected:
    """Return rows without noise: values, or what their classes stand for."""
    values = records.values[:, list(columns)]
    if classes is not None:
        values = classes.values(classes.codes(values, columns), columns)
    return collecting.Collected(np.asarray(values), records.labels)


HitMask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MemberOutcome:
    """How well members are distinguished from other owners.

    Attributes:
        members: Owners who took part, right where they were named.
        others: Owners who did not, "right" where they were named all the same.
        support: The share of training rows that are support vectors.
        epsilon: What was promised.
    """

    members: AttackOutcome
    others: AttackOutcome
    support: float
    epsilon: float

    @property
    def success(self) -> float:
        """The success on a fair coin: half of both rates that are right."""
        return (1 + self.members.success - self.others.success) / 2

    @property
    def bound(self) -> float:
        """What no attack can pass on a fair coin, if the promise holds."""
        return float(binary_success(self.epsilon))

    def proved(self, alpha: float = 0.05) -> float:
        """Return the epsilon that the two rates prove, wrong with probability alpha at most."""
        half = check_probability(alpha, "alpha") / 2
        low = float(lower_limit(self.members.right, self.members.n, half))
        high = float(upper_limit(self.others.right, self.others.n, half))
        return max(0.0, math.log(low / high)) if low > 0 else 0.0


def attack_members(
    publisher: SvmPublisher, pool: ScaledRecords, size: int, games: int, source: Source
) -> MemberOutcome:
    """Guess whether an owner took part, in ``games`` trainings of ``size`` owners each.

    In each game a fair coin decides whether the target is among the owners; if not, another one
    of the pool takes the place.

    Sees:      the published model.
    Knows:     the target's row, as it would be sent without noise.
    Guesses:   that the target took part if the row is a support vector.
    Reference: support vectors are training rows; where rows are plain and all different, the
               share of support vectors is the closed form of the rate of members named.
    """
    is_in = draw_truth(np.full(2, 0.5), check_count(games, "games"), source.child("coins")) == 1
    hits, support = np.zeros(games, dtype=np.bool_), np.zeros(games)
    with one_thread():
        for game in range(games):
            mine = source.child("game", game)
            drawn = _drawn(pool, size, mine)
            published = publisher.publish(
                drawn[:-1] if is_in[game] else drawn[1:], mine.child("training")
            )
            hits[game] = published.contains(publisher.clear(drawn[:1]))[0]
            support[game] = len(published.vectors) / size
    named, false = hits[is_in], hits[~is_in]
    share = float(support[is_in].mean()) if is_in.any() else 0.0
    return _member_outcome(
        named, false, share, publisher.epsilon, share if publisher.is_plain else None
    )


def _member_outcome(
    named: HitMask,
    false: HitMask,
    support: float,
    epsilon: float,
    closed_form: float | None = None,
) -> MemberOutcome:
    if not len(named) or not len(false):
        raise BadParameter("games", len(named) + len(false), "more: no member, or nobody else")
    wrong = AttackOutcome(int(np.count_nonzero(false)), len(false), 0.0, 1.0)
    most = float(true_positive_rate(wrong.interval[1], epsilon))
    right = AttackOutcome(
        int(np.count_nonzero(named)), len(named), wrong.success, most, closed_form
    )
    return MemberOutcome(right, wrong, support, epsilon)


def _drawn(pool: ScaledRecords, size: int, source: Source) -> ScaledRecords:
    """Return one owner more than are to take part, at random; the first is the target."""
    check_count(size, "size", least=2, most=len(pool) - 1)
    order = np.argsort(source.stage("owners").words(len(pool)))
    return pool[order[: size + 1]]
