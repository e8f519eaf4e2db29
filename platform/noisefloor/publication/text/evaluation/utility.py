"""Utility: classifiers trained on a published corpus, tested on real texts that were kept out.

The four of the paper (multinomial logistic regression, a support vector machine with a Gaussian
kernel, multinomial naive Bayes and a tree like C4.5), all on counts of pieces, and the logistic
regression on presence of the benchmark, whose other classifier is the paper's naive Bayes.

The machine and the tree are too slow for all counts of all texts. The machine sees at most 4,000
texts in 100 dimensions (tf-idf, truncated SVD), the tree the 2,000 pieces that most documents of
its corpus have, and stops at leaves of five. Their scores say so. This is for the holder of the
real texts: nothing here is private.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_extra
from noisefloor.errors import BadParameter
from noisefloor.publication.text.documents import Documents
from noisefloor.publication.text.evaluation.class_scores import ClassScores, class_f1
from noisefloor.publication.text.evaluation.features import (
    Sparse,
    check_texts,
    piece_counts,
    piece_presence,
)
from noisefloor.publication.text.tokeniser import EXTRA

BENCHMARK = ("naive-bayes", "logistic-presence")
PAPER = ("logistic", "svm-rbf", "naive-bayes", "tree")

_SVM_TEXTS, _SVM_WIDTH = 4000, 100
_TREE_PIECES, _TREE_LEAF = 2000, 5
_SEED = 0  # of scikit-learn's own searches: nothing that is published depends on it

Labels = NDArray[np.int64]


def evaluate_utility(
    corpus: Documents,
    held_out: Documents,
    size: int,
    classes: int,
    names: Sequence[str] = (*PAPER, "logistic-presence"),
) -> dict[str, ClassScores]:
    """Return what each classifier reaches on real texts after training on a corpus.

    Args:
        corpus: What classifiers are trained on: published texts, or the originals to compare with.
        held_out: Real texts that no generator has seen.
        size: Of the vocabulary.
        classes: How many classes labels may name. A corpus of one class is allowed: what is
            trained on it names that class always.
        names: Of classifiers: see ``PAPER`` and ``BENCHMARK``.
    """
    check_extra("Judging texts", EXTRA, "scikit-learn")
    for name, documents in (("corpus", corpus), ("held_out", held_out)):
        check_texts(name, documents, size)
        labels = documents.labels
        if not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise BadParameter(name, "<labels>", f"classes below {classes}")
    unknown = [name for name in names if name not in _TRAINERS]
    if unknown:
        raise BadParameter("names", unknown, f"some of {', '.join(_TRAINERS)}")
    return {name: _scored(name, corpus, held_out, size, classes) for name in names}


def _scored(
    name: str, corpus: Documents, held_out: Documents, size: int, classes: int
) -> ClassScores:
    trainer, features, note = _TRAINERS[name]
    most_frequent = np.bincount(corpus.labels).argmax()
    if (corpus.labels == most_frequent).all() or not len(corpus.pieces):
        note = "one class in the corpus" if len(corpus.pieces) else "no pieces in the corpus"
        guessed = np.full(held_out.count, most_frequent)
        trained = corpus.count
    else:
        seen, unseen = (features(one, size) for one in (corpus, held_out))
        guessed, trained = trainer(seen, corpus.labels, unseen)
    scores = class_f1(guessed.astype(np.int64), held_out.labels, classes)
    return ClassScores(scores, trained, held_out.count, note)


def _logistic(seen: Sparse, labels: Labels, unseen: Sparse) -> tuple[Labels, int]:
    return _fitted_logistic(1.0, seen, labels, unseen)


def _logistic_presence(seen: Sparse, labels: Labels, unseen: Sparse) -> tuple[Labels, int]:
    return _fitted_logistic(0.05, seen, labels, unseen)


def _fitted_logistic(
    weight: float, seen: Sparse, labels: Labels, unseen: Sparse
) -> tuple[Labels, int]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=weight, max_iter=1000, tol=1e-3).fit(seen, labels)
    return model.predict(unseen), len(labels)


def _naive_bayes(seen: Sparse, labels: Labels, unseen: Sparse) -> tuple[Labels, int]:
    from sklearn.naive_bayes import MultinomialNB

    return MultinomialNB().fit(seen, labels).predict(unseen), len(labels)


def _svm_rbf(seen: Sparse, labels: Labels, unseen: Sparse) -> tuple[Labels, int]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    # Evenly spread over the corpus: its classes may lie one after the other.
    count = min(len(labels), _SVM_TEXTS)
    rows = np.arange(count) * len(labels) // count
    width = max(1, min(_SVM_WIDTH, seen.shape[1] - 1, count - 1))
    weights = TfidfTransformer(sublinear_tf=True).fit(seen)
    reduced = TruncatedSVD(width, random_state=_SEED)
    scaled = StandardScaler()
    kept = scaled.fit_transform(reduced.fit_transform(weights.transform(seen[rows])))
    machine = SVC(kernel="rbf", gamma="scale").fit(kept, labels[rows])
    return machine.predict(scaled.transform(reduced.transform(weights.transform(unseen)))), count


def _tree(seen: Sparse, labels: Labels, unseen: Sparse) -> tuple[Labels, int]:
    from sklearn.tree import DecisionTreeClassifier

    frequency = np.bincount(seen.indices, minlength=seen.shape[1])
    kept = np.sort(np.argsort(-frequency, kind="stable")[:_TREE_PIECES])
    tree = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=_TREE_LEAF, random_state=_SEED
    )
    fitted = tree.fit(seen[:, kept].tocsc(), labels)
    return fitted.predict(unseen[:, kept]), len(labels)


_Trainer = Callable[[Sparse, Labels, Sparse], tuple[Labels, int]]
_Features = Callable[[Documents, int], Sparse]

_TRAINERS: Mapping[str, tuple[_Trainer, _Features, str]] = {
    "logistic": (_logistic, piece_counts, "counts of pieces, C 1"),
    "svm-rbf": (
        _svm_rbf,
        piece_counts,
        f"at most {_SVM_TEXTS} texts; tf-idf of pieces in {_SVM_WIDTH} dimensions by SVD",
    ),
    "naive-bayes": (_naive_bayes, piece_counts, "counts of pieces"),
    "tree": (
        _tree,
        piece_counts,
        f"entropy, the {_TREE_PIECES} most frequent pieces, leaves of {_TREE_LEAF} at least",
    ),
    "logistic-presence": (_logistic_presence, piece_presence, "presence of pieces, C 0.05"),
}


def classifier_names() -> tuple[str, ...]:
    """Return the names of all classifiers."""
    return tuple(_TRAINERS)


def mean_scores(splits: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean macro F1 of each classifier over splits of the data."""
    if not splits:
        raise BadParameter("splits", 0, "at least one")
    return {name: float(np.mean([one[name].macro_f1 for one in splits])) for name in splits[0]}
