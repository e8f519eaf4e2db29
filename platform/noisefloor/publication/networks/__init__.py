"""Networks that are published, and two ways to put noise into them.

``dense`` trains a plain network, ``ranges`` says how far one record can move an increment,
``learning_first`` adds noise to trained parameters and ``anonymised_learning`` to the increments
of every batch; each as printed and as corrected. ``claims`` sets what is claimed beside what is
proved. All in numpy: importing this loads no framework.
"""

from noisefloor.publication.networks.anonymised_learning import AnonymisedLearning, IncrementForm
from noisefloor.publication.networks.claims import NetworkClaim, claims_of
from noisefloor.publication.networks.dense import DenseNetwork, NetworkTraining, train
from noisefloor.publication.networks.learning_first import HALF_STEPS, LearningFirst, ParameterForm

__all__ = [
    "HALF_STEPS",
    "AnonymisedLearning",
    "DenseNetwork",
    "IncrementForm",
    "LearningFirst",
    "NetworkClaim",
    "NetworkTraining",
    "ParameterForm",
    "claims_of",
    "train",
]
