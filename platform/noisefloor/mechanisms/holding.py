"""Some of many are raised: the one weight behind every response on a set of fixed size.

``raised`` of ``size`` outcomes share the weight ``hold`` out of 2**64 evenly, the others share the
rest. Which ones are raised may be anything; how many never changes, so the ratio is the same for
all. Subset selection, the response on a top set and leaning signs are all made of it.
"""

from decimal import Decimal

import numpy as np

from noisefloor.checks import Floats
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import log_of
from noisefloor.mechanisms.thresholds import epsilon_of, exp, floor64, in_sixty_digits, ratio


@in_sixty_digits
def hold_weight(epsilon: float, raised: int, size: int) -> int:
    """Return the largest weight of the raised outcomes that keeps epsilon."""
    share = raised * exp(epsilon)
    return floor64(ratio(share, share + Decimal(size - raised)))


def hold_epsilon(hold: int, raised: int, size: int) -> float:
    """Return the log-ratio of a raised outcome to another, never below the exact value."""
    return epsilon_of(hold * (size - raised), (ONE - hold) * raised)


def log_mixture(share: Floats, hold: int, raised: int, size: int) -> Floats:
    """Return ln P of one outcome that is raised in so large a share of equally likely cases."""
    high = np.exp(log_of(hold, ONE * raised))
    low = np.exp(log_of(ONE - hold, ONE * (size - raised)))
    return np.asarray(np.log(share * high + (1 - share) * low))
