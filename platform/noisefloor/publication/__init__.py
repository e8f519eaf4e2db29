"""Publication: what may be released of a table of records, with its noise and its proof.

``histogram`` counts with exact integer noise (``cell_noise``), ``methods`` are the ways to
publish a classifier, ``published_model`` is what comes of them, ``tensors`` writes and reads the
files that are published, ``noised_vectors`` are what simulations may see of a release, and
``release_run`` is where a long one shows its progress and keeps checkpoints. The methods of a
publisher are listed in ``noisefloor.roles.publication_methods``.
"""

from noisefloor.publication.cell_error import CellError, cell_error
from noisefloor.publication.cell_noise import CellNoise
from noisefloor.publication.histogram import HISTOGRAM, HISTOGRAM_HELP, Histogram
from noisefloor.publication.logistic_regression import LogisticPlan
from noisefloor.publication.noised_vectors import NoisedVector, ResidualObserver
from noisefloor.publication.published_model import (
    ClassificationScores,
    PublishedModel,
    classification_scores,
    load_model,
)
from noisefloor.publication.release_run import (
    CheckpointStore,
    ReleaseProgress,
    ReleaseRun,
    no_release_progress,
)
from noisefloor.publication.tensors import (
    MEDIA_TYPE,
    check_release,
    check_writable,
    load_table,
    read_metadata,
    read_tensors,
)

__all__ = [
    "HISTOGRAM",
    "HISTOGRAM_HELP",
    "MEDIA_TYPE",
    "CellError",
    "CellNoise",
    "CheckpointStore",
    "ClassificationScores",
    "Histogram",
    "LogisticPlan",
    "NoisedVector",
    "PublishedModel",
    "ReleaseProgress",
    "ReleaseRun",
    "ResidualObserver",
    "cell_error",
    "check_release",
    "check_writable",
    "classification_scores",
    "load_model",
    "load_table",
    "no_release_progress",
    "read_metadata",
    "read_tensors",
]
