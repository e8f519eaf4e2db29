"""A linear head without privacy on frozen features: what privacy is paid from, and a leak to find.

With the penalty of logistic regression as it is usually fitted it is the baseline of accuracy.
With hardly any it knows its texts by heart: the planted fault of the attacks on members.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Logits = NDArray[np.float64]

PENALTY, ALMOST_NONE = 1.0, 1e-4
"""Half of it times the squared length of the weights is added to the sum of losses."""

_ITERATIONS = 200


def fit_plain_head(
    features: Floats, labels: NDArray[np.int64], classes: int, penalty: float
) -> tuple[Floats, Floats]:
    """Return weights and biases of the least penalised sum of losses, by L-BFGS from zero."""
    import torch
    from torch.nn import functional

    inputs, targets = torch.from_numpy(features.copy()), torch.from_numpy(labels.copy())
    weight = torch.zeros(classes, features.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weight, bias], max_iter=_ITERATIONS, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        summed = functional.cross_entropy(inputs @ weight.T + bias, targets, reduction="sum")
        penalised = (summed + penalty / 2 * weight.square().sum()) / len(targets)
        penalised.backward()  # type: ignore[no-untyped-call]
        return penalised

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach().numpy(), bias.detach().numpy()


def head_logits(features: Floats, head: tuple[Floats, Floats]) -> Logits:
    """Return a figure for each class."""
    weight, bias = head
    return np.asarray((features @ weight.T + bias).astype(np.float64))
