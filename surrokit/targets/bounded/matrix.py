"""The Hessian or the metric of a potential with bounded parameters, in unbounded coordinates."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.contracts.matrices import HESSIAN_FIELD, MatrixField
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.coordinates.transforms import (
    Derivatives,
    Transform,
    congruent,
    cross,
    plus_diagonal,
    products,
)
from surrokit.types import FloatArray


@attrs.frozen(eq=False)
class BoundedMatrix:
    """G_ij = q'_i M_ij q'_j + [i = j] (g_i q''_i - l''_i) at unbounded z, M being the inner matrix.

    l is the logarithm of the Jacobian, and -l'' is not negative. g is the inner gradient if M is
    the Hessian; the chain rule of a metric has no such term.

    Parameters
    ----------
    inner
        The potential in the user's coordinates.
    transform
        From unbounded to bounded.
    field
        Whether M is the Hessian or the metric.
    """

    inner: Potential
    transform: Transform
    field: MatrixField

    def matrix(self, z: FloatArray) -> FloatArray:
        """Return G at z of shape (n, dim), shape (n, dim, dim)."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        gradient, matrix = self._gradient(q), self.field.matrix(self.inner, q)
        return plus_diagonal(congruent(matrix, d), _bend(gradient, d))

    def product(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        gradient, product = self._gradient(q), self.field.product(self.inner, q, d.first * u)
        return d.first * product + u * _bend(gradient, d)

    def trace_gradient(self, z: FloatArray, weights: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim), with A in ``weights (n, dim, dim)``."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        return self._derivative(
            z,
            q,
            d,
            lambda: self.field.trace_gradient(self.inner, q, congruent(weights, d)),
            lambda matrix: cross(weights, matrix, d),
            np.einsum("nkk->nk", weights),
        )

    def form_gradient(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim): the trace with A = u u^T."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        scaled = u * d.first
        return self._derivative(
            z,
            q,
            d,
            lambda: self.field.form_gradient(self.inner, q, scaled),
            lambda matrix: u * products(matrix, scaled),
            np.square(u),
        )

    def _derivative(
        self,
        z: FloatArray,
        q: FloatArray,
        d: Derivatives,
        contraction: Callable[[], FloatArray],
        across: Callable[[FloatArray], FloatArray],
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij, shape (n, dim), with A_kk in ``diagonal (n, dim)``.

        ``contraction`` evaluates sum_ij A_ij q'_i q'_j dM_ij/dq_k; ``across`` computes
        sum_j A_kj M_kj q'_j from M.
        """
        third, log_third = self.transform.third_derivatives(z)
        gradient, matrix = self._gradient(q), self.field.matrix(self.inner, q)
        inside = contraction()
        bend = -log_third
        if gradient is not None:
            inside = inside + products(matrix, diagonal * d.second)
            bend = gradient * third - log_third
        return d.first * inside + 2.0 * d.second * across(matrix) + diagonal * bend

    def _gradient(self, q: FloatArray) -> FloatArray | None:
        """Return the inner gradient, if the chain rule has it."""
        if self.field != HESSIAN_FIELD:
            return None
        return with_gradient(self.inner).value_and_gradient(q)[1]


def _bend(gradient: FloatArray | None, d: Derivatives) -> FloatArray:
    """Return what the transform's own curvature adds to the diagonal, shape (n, dim)."""
    if gradient is None:
        return -d.log_second
    return np.asarray(gradient * d.second - d.log_second)
