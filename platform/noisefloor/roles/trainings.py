"""Every way of training that a server may be asked for, listed in one place, as plain data.

A way of training is a frozen value; its parameters are public, the seed of the untrained model
included. So server and devices can agree on one by a description.
"""

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.gradient_noise import Form
from noisefloor.ads.laplace_training import LaplaceTraining
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.checks import check_types
from noisefloor.errors import BadParameter

_Type: TypeAlias = type[BitTraining] | type[LaplaceTraining] | type[SpectralTraining]

AD_TRAININGS: Mapping[str, _Type] = MappingProxyType(
    {"bits": BitTraining, "laplace": LaplaceTraining, "spectral": SpectralTraining}
)


def training_of(told: Mapping[str, Any]) -> Training:  # Any: JSON
    """Make the training that was asked for: ``{"method": "bits", "ads": 20, ...}``."""
    given = dict(told)
    method = given.pop("method", None)
    if method not in AD_TRAININGS:
        raise BadParameter("method", method, f"one of {', '.join(AD_TRAININGS)}")
    if "form" in given and method == "laplace":
        forms = {form.value: form for form in Form}
        if given["form"] not in forms:
            raise BadParameter("form", given["form"], f"one of {', '.join(forms)}")
        given["form"] = forms[given["form"]]
    if "shares" in given:
        given["shares"] = tuple(given["shares"])
    check_types(AD_TRAININGS[method], given)
    try:
        return AD_TRAININGS[method](**given)
    except TypeError:
        raise BadParameter(
            method, sorted(given), "the parameters that this method takes"
        ) from None


def training_description(training: Training) -> dict[str, Any]:  # Any: JSON
    """Describe a training as plain data that ``training_of`` reads."""
    names: dict[type, str] = {made: name for name, made in AD_TRAININGS.items()}
    told: dict[str, Any] = {"method": names[type(training)]}
    for one in fields(training):  # type: ignore[arg-type]  # each of them is a dataclass
        if one.init:
            value = getattr(training, one.name)
            told[one.name] = value.value if isinstance(value, Enum) else value
    return told
