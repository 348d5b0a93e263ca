"""The affine map after which training positions have mean zero and unit covariance."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray

_JITTER = 1e-10
"""Relative addition to the variances, so that positions on a plane have a factor too."""

_AMPLE_POINTS = 2.0
"""Points for each dimension from which on the sample covariance is taken as it is."""


@attrs.frozen(kw_only=True, eq=False)
class Whitening:
    """z = L^-1 (q - mu).

    Parameters
    ----------
    mean : ndarray of shape (dim,)
        mu.
    factor : ndarray of shape (dim, dim)
        L, lower triangular.
    inverse : ndarray of shape (dim, dim)
        L^-1.
    """

    mean: FloatArray
    factor: FloatArray
    inverse: FloatArray = attrs.field(repr=False)

    @inverse.default
    def _inverse_of_factor(self) -> FloatArray:
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.factor, np.eye(len(self.mean)), lower=True))

    @classmethod
    def identity(cls, dim: int) -> Whitening:
        """Return the map that changes nothing."""
        return cls(mean=np.zeros(dim), factor=np.eye(dim), inverse=np.eye(dim))

    @classmethod
    def of(cls, positions: FloatArray, weights: FloatArray) -> Whitening:
        """Return the map that whitens positions.

        With fewer than twice ``dim`` points (counted by weight), the covariance is shrunk towards
        its diagonal; a coordinate that never moved gets the scale of the others.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Training positions.
        weights : ndarray of shape (n,)
            How much each counts, at most 1.

        Raises
        ------
        SurrogateFitError
            If the covariance is not finite.
        """
        count, dim = float(weights.sum()), positions.shape[1]
        mean = weights @ positions / count
        centred = positions - mean
        with np.errstate(over="ignore", invalid="ignore"):
            variances = weights @ centred**2 / count
        if not np.isfinite(variances).all():
            raise SurrogateFitError(
                "the covariance of the training positions is not finite: positions as large as "
                f"{np.abs(positions).max():.3g} overflow; rescale the parameters"
            )
        moved = variances > 0.0
        variances[~moved] = variances[moved].mean() if moved.any() else 1.0
        scales = np.sqrt(variances)
        # By way of the correlation, so that parameters of very different scales do no harm.
        scaled = centred / scales
        correlation = (scaled.T * weights) @ scaled / count
        correlation *= min(1.0, count / (_AMPLE_POINTS * dim))
        np.fill_diagonal(correlation, 1.0 + _JITTER * dim)
        factor = np.linalg.cholesky(correlation) * scales[:, None]
        return cls(mean=mean, factor=np.asarray(factor))

    def apply(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at positions of shape (n, dim)."""
        return np.asarray((positions - self.mean) @ self.inverse.T)

    def pulled(self, slopes: FloatArray) -> FloatArray:
        """Return derivatives by q, shape (n, dim), from derivatives by z."""
        return np.asarray(slopes @ self.inverse)
