"""How many examples a property is tried on: a few on commits, thirty times as many at night.

A number that is given to hypothesis' own ``settings`` holds in every profile, so that a property
with few examples on commits would have no more at night.
"""

import os
from typing import Any

from hypothesis import settings

PROFILE = os.environ.get("NOISEFLOOR_PROFILE", "ci")
DEFAULT_EXAMPLES = 100
NIGHTLY_FACTOR = 30


def examples(count: int, **others: Any) -> settings:  # Any: what hypothesis takes
    """Return settings for a number of examples on commits, and for many more at night."""
    factor = NIGHTLY_FACTOR if PROFILE == "nightly" else 1
    return settings(max_examples=count * factor, **others)
