"""Model methods: the ways to publish a classifier of a labelled table, all behind one interface.

    spec = ModelSpec(OneHot(schema, "income"), cost, size=45_222, parameters={"epochs": 20})
    plan = plan_model("private-sgd", spec)        # looks at no records
    plan.proved, plan.claims                      # of the whole model, and of one parameter
    content = plan.release(records, source)       # the file that is published
    plan.describe(content), plan.canary           # for its card, and for an audit

``model_spec`` reads a request and bounds it; ``model_plan`` is the interface; ``canaries`` are the
games that audit a plan without any records; ``registry`` lists the methods. Publisher and
simulator plan by the same names and parameters.
"""

from noisefloor.publication.methods.anonymising_first import (
    AnonymisingFirstPlan,
    SyntheticTablePlan,
)
from noisefloor.publication.methods.canaries import (
    GradientCanary,
    IncrementCanary,
    NormalCanary,
    ParameterCanary,
)
from noisefloor.publication.methods.logistic import LogisticMethodPlan
from noisefloor.publication.methods.model_plan import (
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
from noisefloor.publication.methods.registry import EXPERIMENT_METHODS, MODEL_METHODS

__all__ = [
    "EXPERIMENT_METHODS",
    "MODEL_METHODS",
    "MOST_COORDINATES",
    "WHOLE_MODEL",
    "AnonymisedLearningPlan",
    "AnonymisingFirstPlan",
    "Canary",
    "CanaryBounds",
    "CurveTest",
    "GaussianCanary",
    "GradientCanary",
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
    "SyntheticTablePlan",
    "network_file",
    "read_training",
    "training_fields",
]
