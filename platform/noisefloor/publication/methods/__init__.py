"""Model methods: the ways to publish a classifier of a labelled table, all behind one interface.

    spec = ModelSpec(OneHot(schema, "income"), cost, size=45_222, parameters={"epochs": 20})
    plan = plan_model("private-sgd", spec)        # looks at no records
    plan.proved, plan.claims                      # of the whole model, and of one parameter
    content = plan.release(records, source)       # the file that is published
    plan.describe(content), plan.canary           # for its card, and for an audit

``model_spec`` reads a request and bounds it; ``model_plan`` is the interface; ``canaries`` are the
games that audit a plan without any records; ``held_out`` adds an accuracy that is paid for;
``text_plan`` is the interface for texts, ``text_layers`` trains layers of an encoder,
``text_ngrams`` and ``text_language_model`` write made-up texts;
``registry`` lists the methods. Publisher and simulator plan by the same names and parameters.
"""

from noisefloor.publication.methods.anonymising_first import (
    AnonymisingFirstPlan,
    SyntheticTablePlan,
)
from noisefloor.publication.methods.canaries import IncrementCanary, ParameterCanary
from noisefloor.publication.methods.expected_accuracy import (
    StandInAccuracy,
    stand_in_accuracy,
    table_errors,
)
from noisefloor.publication.methods.gradient_canaries import (
    ComposedCanary,
    GradientCanary,
    NormalCanary,
)
from noisefloor.publication.methods.held_out import ACCURACY, HeldOutPlan, plan_release
from noisefloor.publication.methods.held_out import HELP as ACCURACY_HELP
from noisefloor.publication.methods.logistic import LogisticMethodPlan
from noisefloor.publication.methods.model_plan import (
    INTEGER_NOISE,
    WHOLE_MODEL,
    Canary,
    CanaryBounds,
    CurveTest,
    GaussianCanary,
    ModelPlan,
    ReleaseClaim,
)
from noisefloor.publication.methods.model_spec import ModelSpec, Parameter, ParameterReader
from noisefloor.publication.methods.noisy_networks import (
    MOST_COORDINATES,
    AnonymisedLearningPlan,
    LearningFirstPlan,
    network_file,
    read_training,
    training_fields,
)
from noisefloor.publication.methods.plain_network import PlainPlan
from noisefloor.publication.methods.private_sgd import PrivateSgdPlan
from noisefloor.publication.methods.private_tables import PrivateTables
from noisefloor.publication.methods.registry import (
    EXPERIMENT_METHODS,
    MODEL_METHODS,
    TEXT_METHODS,
)
from noisefloor.publication.methods.text_head import TextHeadPlan
from noisefloor.publication.methods.text_language_model import TextLanguageModelPlan
from noisefloor.publication.methods.text_layers import TextLayersPlan
from noisefloor.publication.methods.text_ngrams import TextNgramsPlan
from noisefloor.publication.methods.text_plan import TextPlan, TextSpec

__all__ = [
    "ACCURACY",
    "ACCURACY_HELP",
    "EXPERIMENT_METHODS",
    "INTEGER_NOISE",
    "MODEL_METHODS",
    "MOST_COORDINATES",
    "TEXT_METHODS",
    "WHOLE_MODEL",
    "AnonymisedLearningPlan",
    "AnonymisingFirstPlan",
    "Canary",
    "CanaryBounds",
    "ComposedCanary",
    "CurveTest",
    "GaussianCanary",
    "GradientCanary",
    "HeldOutPlan",
    "IncrementCanary",
    "LearningFirstPlan",
    "LogisticMethodPlan",
    "ModelPlan",
    "ModelSpec",
    "NormalCanary",
    "Parameter",
    "ParameterCanary",
    "ParameterReader",
    "PlainPlan",
    "PrivateSgdPlan",
    "PrivateTables",
    "ReleaseClaim",
    "StandInAccuracy",
    "SyntheticTablePlan",
    "TextHeadPlan",
    "TextLanguageModelPlan",
    "TextLayersPlan",
    "TextNgramsPlan",
    "TextPlan",
    "TextSpec",
    "network_file",
    "plan_release",
    "read_training",
    "stand_in_accuracy",
    "table_errors",
    "training_fields",
]
