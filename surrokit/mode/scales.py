"""What is known of the scales of a target before a search for its mode."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Scales:
    """What is known of the covariance of the mass before a search for the mode.

    Parameters
    ----------
    covariance : ndarray of shape (dim, dim)
        Positive definite.
    least : float, optional
        The potential in nats to which the search may come down, of a mode that is known. Its first
        step then goes as far as a quadratic of such a covariance would have to.
    """

    covariance: FloatArray
    least: float | None = None

    def root(self, value: float, gradient: FloatArray) -> FloatArray:
        """Return a square root, shape (dim, dim), in which a first step of length 1 is of use.

        Parameters
        ----------
        value : float
            The potential where the search begins.
        gradient : ndarray of shape (dim,)
            Its gradient there.
        """
        root = np.asarray(np.linalg.cholesky(self.covariance))
        if self.least is None or not value > self.least:
            return root
        with np.errstate(over="ignore"):  # far from a mode
            slope = float(np.linalg.norm(root.T @ gradient))
        step = 2.0 * (value - self.least) / slope if slope > 0.0 else 1.0
        return root * step if 0.0 < step < np.inf else root
