"""A linear regression whose errors are normal, with a scale that is not known."""

from __future__ import annotations

from typing import ClassVar, Self

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.shapes import check_positions
from surrokit.types import Capabilities, FloatArray

_DEGREES = 3.0


@attrs.frozen(kw_only=True, eq=False)
class GaussianSums:
    """U of coefficients b and of t, the logarithm of the errors' standard deviation s.

    U = n t + [r + (b - m)' G (b - m)] / (2 s^2) + sum_k p_k (b_k - c_k)^2 / 2
    + 2 log(1 + s^2 / (3 a^2)) - t, in nats: normal errors, normal priors of b, and for s half of
    Student's t with 3 degrees of freedom and scale a. No row is touched after the sums are made.

    Parameters
    ----------
    count
        n: rows, each as often as its weight says.
    least : ndarray of shape (k,)
        m: coefficients of least squares.
    gram : ndarray of shape (k, k)
        G: products of the columns.
    residual
        r: the least sum of squares.
    centre, precision : ndarray of shape (k,)
        c and p.
    scale
        a.
    """

    count: float
    least: FloatArray
    gram: FloatArray
    residual: float
    centre: FloatArray
    precision: FloatArray
    scale: float

    capabilities: ClassVar[Capabilities] = frozenset({can.GRADIENT, can.HESSIAN})
    """What it offers besides the value."""

    @classmethod
    def of(
        cls,
        design: FloatArray,
        response: FloatArray,
        weights: FloatArray | None,
        *,
        centre: FloatArray,
        precision: FloatArray,
        scale: float,
    ) -> Self:
        """Return the target for a design (n, k) and responses (n,)."""
        share = np.ones(len(response)) if weights is None else weights
        gram = (design * share[:, None]).T @ design if weights is not None else design.T @ design
        products = design.T @ (share * response)
        least: FloatArray = np.asarray(np.linalg.lstsq(gram, products, rcond=None)[0])
        errors = response - design @ least
        return cls(
            count=float(share.sum()),
            least=least.astype(np.float64),
            gram=gram,
            residual=float(share @ (errors * errors)),
            centre=centre,
            precision=precision,
            scale=scale,
        )

    @property
    def dim(self) -> int:
        """Coefficients, and the logarithm of the scale."""
        return len(self.least) + 1

    def start(self) -> FloatArray:
        """Return a position near the mode, shape (dim,)."""
        variance = self.residual / max(self.count, 1.0)
        floor = (1e-3 * self.scale) ** 2
        return np.append(self.least, 0.5 * np.log(max(variance, floor)))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        away, logs = q[:, :-1] - self.least, q[:, -1]
        off = q[:, :-1] - self.centre
        with np.errstate(over="ignore", invalid="ignore"):
            bent, shrink = away @ self.gram, np.exp(-2.0 * logs)
            squares = self.residual + (away * bent).sum(axis=1)
            ratio = np.exp(2.0 * logs) / (_DEGREES * self.scale**2)
            value = (self.count - 1.0) * logs + 0.5 * squares * shrink
            value += 0.5 * np.square(off) @ self.precision + 2.0 * np.log1p(ratio)
            gradient = np.empty_like(q)
            gradient[:, :-1] = bent * shrink[:, None] + self.precision * off
            gradient[:, -1] = self.count - 1.0 - squares * shrink + 4.0 * ratio / (1.0 + ratio)
        return np.where(np.isnan(value), np.inf, value), gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        q = check_positions(positions, self.dim)
        away, logs = q[:, :-1] - self.least, q[:, -1]
        bent, shrink = away @ self.gram, np.exp(-2.0 * logs)
        squares = self.residual + (away * bent).sum(axis=1)
        ratio = np.exp(2.0 * logs) / (_DEGREES * self.scale**2)
        found = np.empty((len(q), self.dim, self.dim))
        found[:, :-1, :-1] = self.gram * shrink[:, None, None] + np.diag(self.precision)
        found[:, :-1, -1] = found[:, -1, :-1] = -2.0 * bent * shrink[:, None]
        found[:, -1, -1] = 2.0 * squares * shrink + 8.0 * ratio / np.square(1.0 + ratio)
        return found
