"""The polynomial under a network with many outputs."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class PairProducts:
    """z^T P_m z / 2 as sums over z_i z_j with i <= j, half as many as entries of P_m.

    A path spends most of its time here, and with the few rows of a run's chains that time is the
    memory's: each product reads all coefficients once.

    Parameters
    ----------
    coefficients : ndarray of shape (p, m)
        Of z_i z_j; p is dim (dim + 1) / 2.
    first, second : ndarray of int, shape (p,)
        i and j.
    places : ndarray of int, shape (dim^2,)
        Where the coefficient of z_i z_j stands, for all i and j.
    """

    coefficients: FloatArray
    first: IntArray
    second: IntArray
    places: IntArray

    @classmethod
    def of(cls, matrices: FloatArray) -> PairProducts:
        """Return the products of symmetric matrices (m, dim, dim)."""
        dim = matrices.shape[1]
        first, second = np.triu_indices(dim)
        coefficients = matrices[:, first, second].T.copy()
        coefficients[first == second] *= 0.5
        places = np.zeros((dim, dim), dtype=np.int64)
        places[first, second] = places[second, first] = np.arange(len(first))
        return cls(coefficients=coefficients, first=first, second=second, places=places.ravel())

    def value(self, whitened: FloatArray) -> FloatArray:
        """Return the forms, shape (n, m), at whitened positions (n, dim)."""
        products = whitened.take(self.first, axis=1)
        products *= whitened.take(self.second, axis=1)
        return np.asarray(products @ self.coefficients)

    def pull_back(self, by_outputs: FloatArray, whitened: FloatArray) -> FloatArray:
        """Return sum_m b_m P_m z for rows b (n, m) and z (n, dim), shape (n, dim)."""
        n, dim = whitened.shape
        # b summed out first: one product for all rows, and no more than dim^2 numbers a row
        summed = by_outputs @ self.coefficients.T
        forms = summed.take(self.places, axis=1).reshape(n, dim, dim)
        gradient = np.einsum("nij,nj->ni", forms, whitened)
        # on the diagonal the coefficients are half of the entries
        gradient += summed.take(self.places[:: dim + 1], axis=1) * whitened
        return np.asarray(gradient)


@attrs.frozen(kw_only=True, eq=False)
class OutputTrend:
    """c_m + l_m . z + z^T P_m z / 2 for each output m.

    Parameters
    ----------
    constant : ndarray of shape (m,)
        c.
    linear : ndarray of shape (dim, m)
        l_m as columns.
    matrices : ndarray of shape (m, dim, dim) or None
        P_m, symmetric; None for a trend of degree one.
    """

    constant: FloatArray
    linear: FloatArray
    matrices: FloatArray | None
    columns: FloatArray | None = attrs.field(init=False, repr=False)
    products: PairProducts | None = attrs.field(init=False, repr=False)

    @columns.default
    def _matrices_by_column(self) -> FloatArray | None:
        # P_m as [b, a, m]: all slopes then come out of one product, in their order
        return None if self.matrices is None else np.ascontiguousarray(self.matrices.T)

    @products.default
    def _as_products(self) -> PairProducts | None:
        return None if self.matrices is None else PairProducts.of(self.matrices)

    def plus(self, constant: FloatArray, linear: FloatArray) -> OutputTrend:
        """Return the trend with more of ``constant (m,)`` and ``linear (dim, m)`` in it."""
        return attrs.evolve(self, constant=self.constant + constant, linear=self.linear + linear)

    def value(self, whitened: FloatArray) -> FloatArray:
        """Return the trend of all outputs, shape (n, m), at whitened positions (n, dim)."""
        value: FloatArray = whitened @ self.linear
        value += self.constant
        if self.products is not None:
            value += self.products.value(whitened)
        return value

    def linearise(self, whitened: FloatArray) -> LinearisedTrend:
        """Return the trend of all outputs and its derivatives at whitened positions (n, dim)."""
        return LinearisedTrend(outputs=self.value(whitened), whitened=whitened, trend=self)


@attrs.frozen(kw_only=True, eq=False)
class LinearisedTrend:
    """The trend of all outputs at some positions.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        The trend.
    whitened : ndarray of shape (n, dim)
        z.
    trend
        Its coefficients.
    """

    outputs: FloatArray
    whitened: FloatArray
    trend: OutputTrend

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        gradient: FloatArray = by_outputs @ self.trend.linear.T
        if self.trend.products is not None:
            gradient += self.trend.products.pull_back(by_outputs, self.whitened)
        return gradient

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        pushed: FloatArray = vectors @ self.trend.linear
        matrices = self.trend.matrices
        if matrices is not None:
            outer = vectors[:, :, None] * self.whitened[:, None, :]
            pushed += outer.reshape(len(vectors), -1) @ matrices.reshape(len(matrices), -1).T
        return pushed

    def slopes(self) -> FloatArray:
        """Return J^T, shape (n, dim, m)."""
        n, dim = self.whitened.shape
        linear, columns = self.trend.linear, self.trend.columns
        if columns is None:
            return np.repeat(linear[None], n, axis=0)
        slopes = (self.whitened @ columns.reshape(dim, -1)).reshape(n, *linear.shape)
        slopes += linear
        return np.asarray(slopes)

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi P_m,ik, shape (n, dim), for W (n, m, dim)."""
        matrices = self.trend.matrices
        n, dim = self.whitened.shape
        if matrices is None:
            return np.zeros((n, dim))
        return np.asarray(weights.reshape(n, -1) @ matrices.reshape(-1, dim))

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        matrices = self.trend.matrices
        n, dim = vectors.shape
        if matrices is None:
            return np.zeros((n, dim))
        forms = by_outputs @ matrices.reshape(len(matrices), -1)
        return np.asarray(np.einsum("nij,nj->ni", forms.reshape(n, dim, dim), vectors))
