"""Derivatives of a forward map at some positions, as the linear maps that contractions take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs
import numpy as np

from surrokit.types import FloatArray


class ForwardDerivatives(Protocol):
    """m outputs F at n positions, with their first and second derivatives.

    Where a map can do so, none of these forms the derivative of each output.
    """

    @property
    def outputs(self) -> FloatArray:
        """F, shape (n, m)."""
        ...

    def pushed(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        ...

    def pulled_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        ...

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        ...

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, dim), for W (n, m, dim)."""
        ...

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        ...


@attrs.frozen(kw_only=True, eq=False)
class KnownDerivatives:
    """Derivatives from a Jacobian that is there, and products with the second ones.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        Of the map.
    known_jacobian : ndarray of shape (n, m, dim)
        Their derivatives.
    product
        From W, shape (n, m, dim), to sum over m and i of W_mi d_i d_k F_m, shape (n, dim).
    """

    outputs: FloatArray
    known_jacobian: FloatArray
    product: Callable[[FloatArray], FloatArray]

    def pushed(self, vectors: FloatArray) -> FloatArray:
        """Return J u, shape (n, m)."""
        return np.asarray(np.einsum("nmk,nk->nm", self.known_jacobian, vectors))

    def pulled_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b, shape (n, dim)."""
        return np.asarray(np.einsum("nm,nmk->nk", by_outputs, self.known_jacobian))

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        return self.known_jacobian

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, dim)."""
        return self.product(weights)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T."""
        return self.product(by_outputs[:, :, None] * vectors[:, None, :])
