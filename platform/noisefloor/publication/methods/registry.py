"""Every way to publish a classifier of a labelled table or of labelled texts, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from noisefloor.errors import BadParameter
from noisefloor.publication.methods import anonymising_first
from noisefloor.publication.methods.logistic import LogisticMethodPlan
from noisefloor.publication.methods.model_plan import ModelPlan
from noisefloor.publication.methods.model_spec import ModelSpec
from noisefloor.publication.methods.noisy_networks import AnonymisedLearningPlan, LearningFirstPlan
from noisefloor.publication.methods.plain_network import PlainPlan
from noisefloor.publication.methods.private_sgd import PrivateSgdPlan
from noisefloor.publication.methods.text_head import TextHeadPlan
from noisefloor.publication.methods.text_language_model import TextLanguageModelPlan
from noisefloor.publication.methods.text_layers import TextLayersPlan
from noisefloor.publication.methods.text_ngrams import TextNgramsPlan
from noisefloor.publication.methods.text_plan import TextPlan

MODEL_METHODS: Mapping[str, type[ModelPlan]] = MappingProxyType(
    {
        kind.NAME: kind
        for kind in (
            LogisticMethodPlan,
            PrivateSgdPlan,
            anonymising_first.AnonymisingFirstPlan,
            LearningFirstPlan,
            AnonymisedLearningPlan,
            anonymising_first.SyntheticTablePlan,
        )
    }
)
"""By the name that requests and scenarios use."""

TEXT_METHODS: Mapping[str, type[TextPlan]] = MappingProxyType(
    {
        kind.NAME: kind
        for kind in (TextHeadPlan, TextLayersPlan, TextNgramsPlan, TextLanguageModelPlan)
    }
)
"""Those of labelled texts."""

EXPERIMENT_METHODS: Mapping[str, type[ModelPlan]] = MappingProxyType({PlainPlan.NAME: PlainPlan})
"""Methods without a guarantee: a publisher has them for experiments alone."""


def plan_model(method: str, spec: ModelSpec) -> ModelPlan:
    """Plan a release by the name of its method; no records are looked at.

    Args:
        method: One of ``MODEL_METHODS``.
        spec: Encoding, cost, public size, parameters.

    Raises:
        BadParameter: An unknown method, or a parameter that breaks its rule.
    """
    if method not in MODEL_METHODS:
        raise BadParameter("method", "<text>", f"one of {', '.join(MODEL_METHODS)}")
    return MODEL_METHODS[method].of(spec)
