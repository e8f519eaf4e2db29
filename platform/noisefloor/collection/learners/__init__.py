"""Classifiers that are fitted to protected reports, and their published form."""

from noisefloor.collection.learners.classifiers import (
    Classifier,
    ConstantClassifier,
    JointSVM,
    SklearnClassifier,
    check_classifier,
    check_sklearn,
    fit,
    fit_svm,
    machine_of,
)
from noisefloor.collection.learners.exported_models import (
    ConstantModel,
    ExportedModel,
    KernelModel,
    check_table_size,
    export_model,
    export_svc,
    model_from_arrays,
)
from noisefloor.collection.learners.naive_bayes import (
    NaiveBayes,
    Shrinkage,
    fit_counts,
    fit_tuples,
    model_from_counts,
)

__all__ = [
    "Classifier",
    "ConstantClassifier",
    "ConstantModel",
    "ExportedModel",
    "JointSVM",
    "KernelModel",
    "NaiveBayes",
    "Shrinkage",
    "SklearnClassifier",
    "check_classifier",
    "check_sklearn",
    "check_table_size",
    "export_model",
    "export_svc",
    "fit",
    "fit_counts",
    "fit_svm",
    "fit_tuples",
    "machine_of",
    "model_from_arrays",
    "model_from_counts",
]
