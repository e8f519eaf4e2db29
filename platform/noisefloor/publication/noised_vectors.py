"""What a release computed before and after its noise, handed out to a simulation that scores it.

An observer gets numbers that no guarantee covers. It exists for simulations alone: methods that a
service publishes by are made without one (``roles.publication_methods.methods_of`` has no argument
for it), and a release with an observer draws and returns what it draws and returns without one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NoisedVector:
    """One vector of a release to which noise was added.

    Attributes:
        part: Which vector of the release it is; the vectors of all steps have one name.
        noised: After the noise, before anything else is done to it.
        clean: Before the noise; None where whoever has the records can count it.
        longest: The largest norm that one record has in ``clean``, as far as it was measured.
        taken: How many records were sampled for it, where a sample is drawn.
        at: The parameters that it was computed at.
        unit: What the declared scale is multiplied by, where it follows from released numbers.
    """

    part: str
    noised: Floats
    clean: Floats | None = None
    longest: float | None = None
    taken: int | None = None
    at: Floats | None = None
    unit: Floats | None = None


ResidualObserver: TypeAlias = Callable[[NoisedVector], None]
"""Takes every vector of a release, in the order in which noise was added."""
