"""Carriers: factors of low rank by which the gradient of a matrix is taken (RGP).

W = rest + L R, with orthonormal columns of L and rows of R. The outputs are those of W itself, so
no forward pass changes; per example, dL = dW R^T and dR = L^T dW, and from noisy sums of these
follows the move of W. Reference: Yu, Zhang, Chen, Liu 2021, arXiv 2106.09352, Algorithms 1 and 2.

Carriers are made from released weights alone: the move of a matrix since the training began, by
one power iteration. A training passes nothing else, so that they cost no privacy.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from noisefloor.errors import BadParameter


class Carriers(NamedTuple):
    """Orthonormal factors.

    Attributes:
        left: [rows, rank], orthonormal columns.
        right: [rank, columns], orthonormal rows.
    """

    left: Tensor
    right: Tensor

    def move_of(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the gradient of the matrix from those of the factors.

        For exact ones, dL = dW R^T and dR = L^T dW, it is the projection P_L dW + dW P_R -
        P_L dW P_R, with P_L = L L^T and P_R = R^T R: what the two spaces share is counted once.
        """
        # L (dR - L^T dL R) + dL R, with the products of small matrices first.
        inner = right - (self.left.t() @ left) @ self.right
        return torch.addmm(left @ self.right, self.left, inner)


def power_iteration(
    history: Tensor, rank: int, normals: Callable[[int], Tensor], *, name: str
) -> Carriers:
    """Return carriers of a matrix of released moves; random ones where nothing moved yet.

    Args:
        history: [rows, columns], what was released so far.
        rank: At most the smaller side.
        normals: Draws a number of standard normal numbers; public ones, they may be known.
        name: Of the matrix, for an error.

    Raises:
        BadParameter: The rank is above the smaller side.
    """
    rows, columns = history.shape
    if rank > min(rows, columns):
        raise BadParameter(
            "carriers", rank, f"<= {min(rows, columns)}, the smaller side of {name}"
        )
    start = normals(rank * columns).to(history.dtype).view(rank, columns)
    if not bool(history.any()):
        other = normals(rows * rank).to(history.dtype).view(rows, rank)
        return Carriers(_orthonormal(other), _orthonormal(start.t()).t())
    left = _orthonormal(history @ start.t())
    return Carriers(left, _orthonormal(history.t() @ left).t())


def _orthonormal(columns: Tensor) -> Tensor:
    """Return an orthonormal basis whose span has these columns."""
    basis: Tensor = torch.linalg.qr(columns).Q
    return basis
