"""The coordinates that a kernel sees."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray

_JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Relative additions to the variances, tried in turn until the covariance has a factor."""

_AMPLE_POINTS = 2.0
"""Points for each dimension from which on the sample covariance is taken as it is."""


@attrs.frozen(kw_only=True, eq=False)
class Whitening:
    """z = L^-1 (q - mu), after which training positions have mean zero and unit covariance.

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

        inverse: FloatArray = solve_triangular(self.factor, np.eye(len(self.mean)), lower=True)
        return inverse

    @property
    def shift(self) -> Whitening:
        """The map to q - mu: the same origin, and no other change of coordinates."""
        identity = np.eye(len(self.mean))
        return Whitening(mean=self.mean, factor=identity, inverse=identity)

    @classmethod
    def of(cls, positions: FloatArray, weights: FloatArray) -> Whitening:
        """Return the map that whitens positions.

        With fewer than twice ``dim`` points (counted by weight), the covariance is shrunk
        towards its diagonal; a coordinate that never moved gets the scale of the others.

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
        with np.errstate(over="ignore", invalid="ignore"):
            mean = weights @ positions / count
            centred = positions - mean
            covariance = (centred.T * weights) @ centred / count
        if not np.isfinite(covariance).all():
            raise SurrogateFitError(
                "the covariance of the training positions is not finite: positions as large as "
                f"{np.abs(positions).max():.3g} overflow; rescale the parameters"
            )
        variances = np.diag(covariance).copy()
        moved = variances > 0.0
        variances[~moved] = variances[moved].mean() if moved.any() else 1.0
        covariance *= min(1.0, count / (_AMPLE_POINTS * dim))
        np.fill_diagonal(covariance, variances)
        return cls(mean=mean, factor=_factor(covariance))

    def apply(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at positions of shape (n, dim)."""
        whitened: FloatArray = (positions - self.mean) @ self.inverse.T
        return whitened

    def undo(self, whitened: FloatArray) -> FloatArray:
        """Return positions, shape (n, dim), of which z are ``whitened (n, dim)``."""
        return np.asarray(whitened @ self.factor.T + self.mean)


def _factor(covariance: FloatArray) -> FloatArray:
    # On the correlation, so that parameters of very different scales do no harm.
    scales = np.sqrt(np.diag(covariance))
    correlation = covariance / scales / scales[:, None]
    for jitter in _JITTERS:
        try:
            factor = np.linalg.cholesky(correlation + jitter * np.eye(len(scales)))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(factor * scales[:, None], dtype=np.float64)
    raise SurrogateFitError(
        "the covariance of the training positions has no Cholesky factor; "
        "give the learner positions that vary in every direction"
    )
