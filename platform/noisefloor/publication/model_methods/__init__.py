"""Model methods: the ways to publish a classifier of a labelled table, all behind one interface.

    wanted = Wanted(OneHot(schema, "income"), cost, size=45_222, parameters={"epochs": 20})
    plan = plan_model("private-sgd", wanted)      # looks at no records
    plan.proved, plan.claims                      # of the whole model, and of one parameter
    content = plan.release(records, source)       # the file that is published
    plan.describe(content), plan.canary           # for its card, and for an audit

``wanted`` reads what is asked for and bounds it; ``plan`` is the interface; ``canaries`` are the
games that audit a plan without any records; ``registry`` lists the methods. Publisher and
simulator plan by the same names and parameters.
"""

from noisefloor.publication.model_methods.plan import Canary, ModelPlan, ReleaseClaim
from noisefloor.publication.model_methods.registry import MODEL_METHODS, plan_model
from noisefloor.publication.model_methods.wanted import Parameter, Told, Wanted

__all__ = [
    "MODEL_METHODS",
    "Canary",
    "ModelPlan",
    "Parameter",
    "ReleaseClaim",
    "Told",
    "Wanted",
    "plan_model",
]
