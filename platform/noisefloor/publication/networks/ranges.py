"""How far one record can move an increment: ranges that follow from the parameters alone.

Inputs lie in [0, 1] by the public schema, and the current parameters are released already; so
ranges of every signal and every error can be worked out without looking at a record: (20)-(26) of
the paper. Errors at the output lie in [-1, 1], and (23) keeps ranges of errors symmetric: one
number for each says both ends.
"""

from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from noisefloor.publication.networks.dense import Floats, Network, Shape

Layers: TypeAlias = list[Floats]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of what one record sends through a network.

    Attributes:
        signals: The largest of each input of each layer; the last, of the biases, is 1.
        errors: The largest size of each error of each layer.
    """

    signals: Layers
    errors: Layers

    def into(self, blocks: Layers) -> None:
        """Write how far each increment reaches from 0, both ways: (24), (25), (26)."""
        for signal, error, block in zip(self.signals, self.errors, blocks, strict=True):
            np.multiply(signal[:, None], error, out=block)


class PrintedRanges:
    """Ranges as printed.

    (21) takes max x for max y, which the paper says is never negative. It can be: then the range
    is too small in this layer and in every later one, and records get outside of it.

    Buffers are kept between calls: what a call returned is overwritten by the next one.

    Args:
        shape: Of the networks.
    """

    def __init__(self, shape: Shape) -> None:
        self._sizes = np.empty(shape.count, np.float32)
        self._size_of = [block[:-1] for block in shape.views(self._sizes)]
        self._most = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._errors = [np.ones(width, np.float32) for width in shape.widths[1:]]

    def __call__(self, network: Network) -> Ranges:
        """Return the ranges for the parameters as they are."""
        np.abs(network.vector, out=self._sizes)
        for place, block in enumerate(network.blocks[:-1]):
            # Half of w + |w| is max(w, 0).
            here, onward = self._most[place][:-1], self._most[place + 1][:-1]
            np.add(here @ block[:-1], here @ self._size_of[place], out=onward)
            onward *= np.float32(0.5)
            onward += block[-1]
        for place in range(len(self._errors) - 2, -1, -1):
            weights = self._size_of[place + 1]
            np.matmul(weights, self._errors[place + 1], out=self._errors[place])
        return Ranges(self._most, self._errors)


class CertifiedRanges:
    """Ranges that hold for every record, and are tighter than the printed ones.

    Signals are never negative (21). The least a signal can be counts too, where the paper takes
    0. The errors at the output add up to 0 and their sizes to 2 at most, so what they send back is
    the difference of two weights at most.

    Buffers are kept between calls: what a call returned is overwritten by the next one.

    Args:
        shape: Of the networks.
    """

    def __init__(self, shape: Shape) -> None:
        self._sizes = np.empty(shape.count, np.float32)
        self._size_of = shape.views(self._sizes)
        # The last is the 1 of the biases, the most and the least of it.
        self._most = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._least = [np.ones(width + 1, np.float32) for width in shape.widths[:-1]]
        self._least[0][:-1] = 0
        self._errors = [np.ones(width, np.float32) for width in shape.widths[1:]]

    def __call__(self, network: Network) -> Ranges:
        """Return the ranges for the parameters as they are."""
        np.abs(network.vector, out=self._sizes)
        for place in range(len(self._most) - 1):
            self._onward(place, network.blocks[place])
        if len(self._errors) > 1:
            # Class by class: there are few, and a reduction along so short an axis is slow.
            classes = network.blocks[-1][:-1].T
            most, least = reduce(np.maximum, classes), reduce(np.minimum, classes)
            np.subtract(most, least, out=self._errors[-2])
        for place in range(len(self._errors) - 3, -1, -1):
            weights = self._size_of[place + 1][:-1]
            np.matmul(weights, self._errors[place + 1], out=self._errors[place])
        return Ranges(self._most, self._errors)

    def _onward(self, place: int, block: Floats) -> None:
        """Set the most and the least of what a layer hands on.

        With m the middle of a range and h half its width, m w + h |w| is the most of its product
        with w, and m w - h |w| the least.
        """
        middle = (self._most[place] + self._least[place]) * np.float32(0.5)
        centre = middle @ block
        spread = (self._most[place] - middle) @ self._size_of[place]
        np.maximum(centre + spread, 0, out=self._most[place + 1][:-1])
        np.maximum(centre - spread, 0, out=self._least[place + 1][:-1])
