"""The potential that a fitted network makes together with a part of U that is known."""

from __future__ import annotations

import attrs

from surrokit import capabilities as can
from surrokit.contracts.matrices import HESSIAN_FIELD, FormsAt
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.regression.fitted import CAPABILITIES, FittedNetwork


def sum_capabilities(known: Capabilities, fitted: Capabilities) -> Capabilities:
    """Return what the sum of two potentials can do: what both can."""
    return known & fitted & (CAPABILITIES | {can.CONVEX})


@attrs.frozen(kw_only=True, eq=False)
class FittedSum(ShownFit):
    """V(q) = a part of U that is known + a network fitted to the rest, in nats.

    Frozen and safe to share between threads, as far as the known part is. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers.

    Parameters
    ----------
    known : Potential or None
        The part of U that was not fitted; None where nothing was worth its price.
    network
        What was fitted to U less that part.
    capabilities
        What it offers: what both parts can do, or less.
    """

    known: Potential | None
    network: FittedNetwork
    capabilities: Capabilities

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.network.dim

    @property
    def n_points(self) -> int:
        """Distinct points that it was fitted to."""
        return self.network.n_points

    @property
    def quality(self) -> FitQuality | None:
        """Error at points held out from a twin of the fit; None where there were too few."""
        return self.network.quality

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self._add(self.network.value(positions), "value", positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.network.value_and_gradient(positions)
        if self.known is None:
            return value, gradient
        known, slope = with_gradient(self.known).value_and_gradient(positions)
        return value + known, gradient + slope

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V alone, shape (n, dim)."""
        return self._add(self.network.gradient(positions), "gradient", positions)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        return self._add(self.network.hessian(positions), "hessian", positions)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        product = self.network.hessian_product(positions, vectors)
        return self._add(product, "hessian_product", positions, vectors)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        diagonal = self.network.hessian_diagonal(positions)
        return self._add(diagonal, "hessian_diagonal", positions)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), with c (n, dim)."""
        gradient = self.network.hessian_diagonal_gradient(positions, weights)
        return self._add(gradient, "hessian_diagonal_gradient", positions, weights)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), G the Hessian and A symmetric (n, dim, dim)."""
        gradient = self.network.hessian_trace_gradient(positions, matrices)
        return self._add(gradient, "hessian_trace_gradient", positions, matrices)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim), G the Hessian and u of shape (n, dim)."""
        gradient = self.network.hessian_form_gradient(positions, vectors)
        return self._add(gradient, "hessian_form_gradient", positions, vectors)

    def hessian_forms_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_form_gradient` of rows of positions (n, dim)."""
        return self._add_at(self.network.hessian_forms_at(positions), "forms_at", positions)

    def hessian_traces_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_trace_gradient` of rows of positions (n, dim)."""
        return self._add_at(self.network.hessian_traces_at(positions), "traces_at", positions)

    def _add_at(self, fitted: FormsAt, name: str, positions: FloatArray) -> FormsAt:
        if self.known is None:
            return fitted
        known: FormsAt = getattr(HESSIAN_FIELD, name)(self.known, positions)
        return lambda factors, rows: fitted(factors, rows) + known(factors, rows)

    def _add(self, fitted: FloatArray, method: str, *arguments: FloatArray) -> FloatArray:
        if self.known is None:
            return fitted
        known: FloatArray = getattr(self.known, method)(*arguments)
        return fitted + known
