"""A target that is a sum over rows, with an exact sampler."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.testing.targets.densities import Gaussian
from surrokit.types import Capabilities, FloatArray, IntArray

_N_ROWS = 40
_STRENGTH = 0.3  # sum of psi: how far the sum over rows is from its second-order expansion


def _rows() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return directions, offsets and weights of the rows.

    Directions lie in a fan, so that remainders of the expansions add up to something skewed.
    Weights differ by a factor of ten, and offsets give linear terms.
    """
    angles = 0.7 + 0.5 * np.linspace(-1.0, 1.0, _N_ROWS)
    weights = np.geomspace(1.0, 10.0, _N_ROWS)
    weights *= 6.0 * _STRENGTH / weights.sum()
    offsets = 1.0 + 0.5 * np.cos(3.0 * np.arange(_N_ROWS))
    return np.column_stack([np.cos(angles), np.sin(angles)]), offsets, weights


@attrs.frozen(kw_only=True, eq=False)
class Summed(Gaussian):
    """A normal distribution as a sum over rows plus a rest that cancels the rows.

    U_i(q) = w_i (x_i . q - m_i)^3 / 6 has the third derivative w_i x_i^3 everywhere, so the bounds
    are attained. The rest is the normal potential less the sum. So the remainders of the expansions
    are as skewed as possible, and the distribution is known.
    """

    directions: FloatArray = attrs.field(factory=lambda: _rows()[0], init=False)
    offsets: FloatArray = attrs.field(factory=lambda: _rows()[1], init=False)
    weights: FloatArray = attrs.field(factory=lambda: _rows()[2], init=False)

    @property
    def capabilities(self) -> Capabilities:
        """Also ``rows``."""
        return super().capabilities | {can.ROWS}

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self.weights)

    def expand(self, centre: FloatArray) -> CubicExpansion:
        """Return the expansions of all terms at ``centre (2,)``."""
        self._open(np.asarray(centre)[None])
        t = self.directions @ centre - self.offsets
        return CubicExpansion(
            target=self,
            centre=np.array(centre),
            gradient=0.5 * (self.weights * t * t) @ self.directions,
            hessian=(self.directions.T * (self.weights * t)) @ self.directions,
        )

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return w_i |L^T x_i|^3 / 6, shape (n_rows,), with L the ``factor (2, 2)``."""
        norms = np.linalg.norm(self.directions @ factor, axis=1)
        return np.asarray(self.weights / 6.0 * norms**3)

    def select(self, rows: IntArray) -> CubicRows:
        """Return the sum of some rows' terms alone."""
        return CubicRows(self.directions[rows], self.offsets[rows], self.weights[rows])


@attrs.frozen(kw_only=True, eq=False)
class CubicExpansion:
    """Second-order expansions of the rows of :class:`Summed`.

    Parameters
    ----------
    target
        The sum.
    centre, gradient : ndarray of shape (2,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (2, 2)
        The sum of their Hessians there.
    third
        None: terms are expanded to second order.
    """

    target: Summed
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    third: FloatArray | None = None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, 2): U less all remainders."""
        # the sum of cubes of two coordinates has four coefficients, however many rows there are
        x, y = self.target.directions.T
        h, k = (positions - self.centre).T
        terms = np.array([x * x * x, 3.0 * x * x * y, 3.0 * x * y * y, y * y * y])
        a, b, c, d = terms @ self.target.weights / 6.0
        left_out = h * (h * (a * h + b * k) + c * k * k) + d * k * k * k
        return np.asarray(self.target.value(positions) - left_out)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q) = w_i (x_i . h)^3 / 6, shape (m,)."""
        h = (positions - self.centre)[owners]
        along = np.einsum("ij,ij->i", self.target.directions[rows], h)
        return np.asarray(self.target.weights[rows] / 6.0 * along * along * along)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,)."""
        return self.remainders(after, rows, owners) - self.remainders(before, rows, owners)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        x, w = self.target.directions, self.target.weights / 6.0
        s, t = (before - self.centre) @ x.T, (after - self.centre) @ x.T
        return np.asarray(np.maximum(t * t * t - s * s * s, 0.0) @ w)


@attrs.frozen(eq=False)
class CubicRows:
    """The sum of some rows of :class:`Summed`: no potential of a density, as it has no lower bound.

    Parameters
    ----------
    directions : ndarray of shape (m, 2)
        x_i.
    offsets, weights : ndarray of shape (m,)
        m_i and w_i.
    """

    directions: FloatArray
    offsets: FloatArray
    weights: FloatArray

    @property
    def dim(self) -> int:
        """Two."""
        return 2

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, by itself as well, and Hessian."""
        return frozenset({can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN})

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,)."""
        t = self._along(positions)
        return np.asarray((t * t * t) @ (self.weights / 6.0))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, 2)."""
        return np.asarray((0.5 * self.weights * self._along(positions) ** 2) @ self.directions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, 2)."""
        return self.value(positions), self.gradient(positions)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return its second derivatives, shape (n, 2, 2)."""
        weighted = self.weights * self._along(positions)
        x = self.directions
        return np.asarray(np.einsum("nm,mi,mj->nij", weighted, x, x))

    def _along(self, positions: FloatArray) -> FloatArray:
        return check_positions(positions, 2) @ self.directions.T - self.offsets
