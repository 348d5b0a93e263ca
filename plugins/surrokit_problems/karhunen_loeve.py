"""The Karhunen-Loeve expansion of a Gaussian field on the unit square.

The covariance exp(-|x - y|^2 / (2 l^2)) is a product over the two coordinates, and so are its
eigenfunctions. Those of one coordinate are simple, so an order and a sign fix them; on the square
they come in pairs with one eigenvalue, of which LAPACK returns another basis with another number
of threads.
"""

from __future__ import annotations

from math import ceil

import attrs
import numpy as np
from scipy.linalg import eigh

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

_LEAST = 1e-8
"""Eigenvalues below this share of the greatest are not told from rounding."""


@attrs.frozen(kw_only=True, eq=False)
class LineModes:
    """Eigenfunctions of the squared-exponential covariance of variance 1 on [0, 1].

    Parameters
    ----------
    length
        l, in units of the interval.
    eigenvalues : ndarray of shape (n_modes,)
        Of the integral operator, decreasing.
    nodes : ndarray of shape (n_nodes,)
        Gauss-Legendre nodes.
    weighted : ndarray of shape (n_nodes, n_modes)
        Each eigenfunction at the nodes, times the weights, over its eigenvalue.
    """

    length: float
    eigenvalues: FloatArray
    nodes: FloatArray
    weighted: FloatArray

    @classmethod
    def of(cls, length: float) -> LineModes:
        """Return all modes that double precision can tell apart, positive at 0 and of unit norm.

        By Nystrom's method with Gauss-Legendre nodes, whose error is that of rounding here.

        Raises
        ------
        ConfigurationError
            If the length is not positive.
        """
        if not (np.isfinite(length) and length > 0):
            raise ConfigurationError(f"length must be positive and finite, got {length}")
        points, weights = np.polynomial.legendre.leggauss(40 + ceil(12.0 / length))
        nodes, roots = 0.5 * (points + 1.0), np.sqrt(0.5 * weights)
        values, vectors = eigh(roots[:, None] * _covariance(nodes, nodes, length) * roots)
        kept = np.flatnonzero(values > _LEAST * values[-1])[::-1]
        weighted = roots[:, None] * vectors[:, kept] / values[kept]
        at_zero = _covariance(np.zeros(1), nodes, length) @ weighted
        return cls(
            length=length,
            eigenvalues=values[kept],
            nodes=nodes,
            weighted=np.where(at_zero < 0, -weighted, weighted),
        )

    def at(self, points: FloatArray) -> FloatArray:
        """Return the eigenfunctions at ``points (n,)`` of [0, 1], shape (n_modes, n)."""
        return np.asarray((_covariance(points, self.nodes, self.length) @ self.weighted).T)


@attrs.frozen(kw_only=True, eq=False)
class SquareModes:
    """The leading terms of the expansion on the unit square.

    Parameters
    ----------
    line
        Eigenfunctions of one coordinate.
    pairs : ndarray of int, shape (n_modes, 2)
        Which of them, in x1 and in x2, are multiplied: by decreasing eigenvalue, and in the order
        of the first among equal ones.
    """

    line: LineModes
    pairs: np.ndarray

    @classmethod
    def leading(cls, n_modes: int, length: float) -> SquareModes:
        """Return the terms with the ``n_modes`` greatest eigenvalues, for a length l.

        Raises
        ------
        ConfigurationError
            If there are not so many that double precision can tell apart.
        """
        line = LineModes.of(length)
        products = np.outer(line.eigenvalues, line.eigenvalues)
        # products of a pair in both orders are equal to the last bit, so a stable sort will do
        order = np.argsort(-products, axis=None, kind="stable")
        most = int((products > _LEAST * products[0, 0]).sum())
        if not 1 <= n_modes <= most:
            raise ConfigurationError(
                f"modes must be between 1 and {most} for the length {length:g}, where eigenvalues "
                f"fall below {_LEAST:g} of the greatest; got {n_modes}"
            )
        pairs = np.column_stack(np.unravel_index(order[:n_modes], products.shape))
        return cls(line=line, pairs=pairs)

    @property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues of the integral operator, shape (n_modes,), decreasing."""
        return np.asarray(self.line.eigenvalues[self.pairs].prod(axis=1))

    def on_grid(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return eigenfunctions of unit norm on a grid (n1,) x (n2,), shape (n_modes, n1, n2)."""
        one, two = self.line.at(first)[self.pairs[:, 0]], self.line.at(second)[self.pairs[:, 1]]
        return np.asarray(one[:, :, None] * two[:, None, :])


def _covariance(first: FloatArray, second: FloatArray, length: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * np.square((first[:, None] - second) / length)))
