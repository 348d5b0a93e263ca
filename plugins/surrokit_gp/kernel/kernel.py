"""The squared-exponential kernel."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.kernel.hyperparameters import Hyperparameters


@attrs.frozen(kw_only=True, eq=False)
class SquaredExponential:
    """k(z, z') = s^2 exp(-sum_k (z_k - z'_k)^2 / (2 l_k^2)).

    Rasmussen and Williams 2006, equation (5.1); section 3.3 of the paper with one l for all k.

    Parameters
    ----------
    length_scales : ndarray of shape (dim,)
        l_k.
    signal_sd
        s.
    """

    length_scales: FloatArray
    signal_sd: float

    @classmethod
    def of(cls, hyperparameters: Hyperparameters, dim: int) -> SquaredExponential:
        """Return the kernel that hyperparameters describe.

        Raises
        ------
        ConfigurationError
            If there is neither one length scale nor one for each of ``dim`` coordinates.
        """
        return cls(length_scales=hyperparameters.scales(dim), signal_sd=hyperparameters.signal_sd)

    @property
    def variance(self) -> float:
        """k(z, z) = s^2."""
        return self.signal_sd**2

    def matrix(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return k between rows (n, dim) and rows (m, dim), shape (n, m)."""
        matrix = unit_matrix(left / self.length_scales, right / self.length_scales)
        matrix *= self.variance
        return matrix


def unit_matrix(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return exp(-|x - x'|^2 / 2) between rows (n, dim) and rows (m, dim), shape (n, m).

    Distances come from one matrix product, |x|^2 - 2 x . x' + |x'|^2, about a common centre, so
    that few digits are lost.
    """
    same = left is right
    centre = right.mean(axis=0) if len(right) else 0.0
    left = left - centre
    right = left if same else right - centre
    exponents: FloatArray = left @ right.T
    exponents -= 0.5 * np.einsum("nd,nd->n", left, left)[:, None]
    exponents -= 0.5 * np.einsum("md,md->m", right, right)
    np.minimum(exponents, 0.0, out=exponents)
    if same:
        np.fill_diagonal(exponents, 0.0)
    return np.exp(exponents, out=exponents)


def weighed_squares(weights: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return sum_nm weights[n, m] (left[n, k] - right[m, k])^2 for each k, shape (dim,).

    By matrix products; the differences themselves are never formed.

    Parameters
    ----------
    weights : ndarray of shape (n, m)
        Of each pair.
    left, right : ndarrays of shape (n, dim) and (m, dim)
        Rows.
    """
    mixed = np.einsum("nk,nk->k", left, weights @ right)
    return np.asarray(
        weights.sum(axis=1) @ np.square(left) + weights.sum(axis=0) @ np.square(right) - 2.0 * mixed
    )
