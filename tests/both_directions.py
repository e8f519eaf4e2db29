"""The mark of a statistical test that runs on the right distribution, and on two that are
wrong."""

import pytest

BOTH_DIRECTIONS = pytest.mark.parametrize(
    ("factor", "passes"),
    [
        pytest.param(1.0, True, id="right law"),
        pytest.param(1.1, False, id="10 % more"),
        pytest.param(0.9, False, id="10 % less"),
    ],
)
