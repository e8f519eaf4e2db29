"""Synthetic records of wearables, by a stated law: no data are needed, at any size.

A person is at risk with probability 0.35. Each number is its mean plus its deviation times

    shift [at risk] + 0.5 f + sqrt(0.75) noise,

f being the person's own and the noise each number's, both standard normal: so numbers go together
beyond the label, and naive Bayes is wrong about that, as it is of real ones. What lies outside the
public range is moved to its end. Smoking and work depend on the label alone.
"""

import math
from dataclasses import dataclass

import numpy as np

from noisefloor.randomness import Generator
from noisefloor.tables import Categorical, Continuous, Label, ScaledRecords, ScaledSchema

AT_RISK = 0.35
_SHARED = 0.5
"""Of a number's deviation, what the person's own factor takes."""


@dataclass(frozen=True, slots=True)
class VitalSign:
    """A number that a wearable measures."""

    name: str
    low: float
    high: float
    mean: float
    deviation: float
    shift: float


VITAL_SIGNS = (
    VitalSign("resting_heart_rate", 40, 90, 62, 8, 0.9),
    VitalSign("heart_rate_variability_ms", 0, 90, 50, 15, -0.9),
    VitalSign("steps_thousand", 0, 15, 8, 3.5, -0.8),
    VitalSign("sleep_h", 3, 10, 7, 1.1, -0.5),
    VitalSign("sleep_efficiency", 0.7, 1.0, 0.86, 0.05, -0.6),
    VitalSign("active_minutes", 0, 90, 50, 20, -0.7),
    VitalSign("skin_temperature_change", -1.5, 1.5, 0, 0.5, 0.4),
    VitalSign("blood_oxygen", 93, 100, 97, 1.2, -0.6),
    VitalSign("breaths_per_minute", 10, 21, 15, 1.8, 0.7),
    VitalSign("body_mass_index", 14, 40, 25, 4, 0.6),
)
SMOKES = ((0.85, 0.15), (0.65, 0.35))
WORK = ((0.3, 0.4, 0.3), (0.5, 0.35, 0.15))
"""Shares of the categories, of those who are not at risk and of those who are."""

SCHEMA = ScaledSchema(
    (
        *(Continuous(sign.name, sign.low, sign.high) for sign in VITAL_SIGNS),
        Categorical("smokes", ("no", "yes")),
        Categorical("work", ("seated", "mixed", "moving")),
    ),
    Label("at_risk", "no", "yes"),
)


def health_records(count: int, draw: Generator) -> ScaledRecords:
    """Draw the records of a number of people."""
    labels = draw.random(count) < AT_RISK
    factor = draw.standard_normal((count, 1))
    noise = draw.standard_normal((count, len(VITAL_SIGNS)))
    shifts = np.array([sign.shift for sign in VITAL_SIGNS])
    apart = shifts * labels[:, None] + _SHARED * factor + math.sqrt(1 - _SHARED**2) * noise
    columns = [
        attribute.scale(sign.mean + sign.deviation * apart[:, place], "synthetic")
        for place, (sign, attribute) in enumerate(
            zip(VITAL_SIGNS, SCHEMA.attributes, strict=False)
        )
    ]
    for shares in (SMOKES, WORK):
        ends = np.cumsum(np.array(shares), axis=1)[labels.astype(np.intp)]
        places = (draw.random((count, 1)) > ends[:, :-1]).sum(axis=1)
        columns.append(places * (2 / (len(shares[0]) - 1)) - 1)
    return ScaledRecords(np.column_stack(columns), labels)
