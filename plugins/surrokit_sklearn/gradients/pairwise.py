"""Gradients of sums of the kernels that scikit-learn's kernel machines know by name."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True)
class NamedKernel:
    """A kernel k(x, c) by the name and the settings of ``sklearn.metrics.pairwise``.

    Parameters
    ----------
    name
        One of :data:`KNOWN`.
    gamma, coef0, degree
        Settings; which of them counts depends on the kernel.
    """

    name: str
    gamma: float = 1.0
    coef0: float = 1.0
    degree: float = 3.0

    def slope(self, inputs: FloatArray, centres: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the derivatives by x of sum_j w_j k(x, c_j), shape (n, dim).

        Parameters
        ----------
        inputs : ndarray of shape (n, dim)
            x.
        centres : ndarray of shape (m, dim)
            c_j.
        weights : ndarray of shape (m,) or (n, m)
            w_j, the same at all inputs or not.
        """
        if self.name == "rbf":
            return self._radial_slope(inputs, centres, weights)
        by_product = np.broadcast_to(
            self._by_product(inputs @ centres.T), (len(inputs), len(centres))
        )
        return np.asarray((by_product * weights) @ centres)

    def _by_product(self, products: FloatArray) -> FloatArray | float:
        """Return the derivative of the kernel by x . c."""
        if self.name == "linear":
            return 1.0
        arguments = self.gamma * products + self.coef0
        if self.name == "sigmoid":
            return np.asarray(self.gamma * (1.0 - np.tanh(arguments) ** 2))
        return np.asarray(self.gamma * self.degree * arguments ** (self.degree - 1.0))

    def _radial_slope(
        self, inputs: FloatArray, centres: FloatArray, weights: FloatArray
    ) -> FloatArray:
        from scipy.spatial.distance import cdist

        pulls = weights * np.exp(-self.gamma * cdist(inputs, centres, metric="sqeuclidean"))
        return np.asarray(
            2.0 * self.gamma * (pulls @ centres - inputs * pulls.sum(axis=1, keepdims=True))
        )


KNOWN = frozenset({"linear", "rbf", "poly", "polynomial", "sigmoid"})
"""Kernels whose gradients are here; ``laplacian`` and others have kinks, or are rare."""


def read_kernel(name: Any, n_features: int, settings: dict[str, Any]) -> NamedKernel | None:
    """Return a kernel as ``pairwise_kernels`` reads its settings, or None if it is not known.

    Parameters
    ----------
    name
        Its name; anything else is not known.
    n_features
        Numbers in an input, for the default gamma = 1 / n_features.
    settings
        ``gamma``, ``coef0`` and ``degree``; None for the default.
    """
    if not isinstance(name, str) or name not in KNOWN:
        return None
    given = {key: float(value) for key, value in settings.items() if value is not None}
    return NamedKernel(name=name, **({"gamma": 1.0 / n_features} | given))
