"""A linear regression whose errors are normal, with a scale that is not known.

Given the scale s the coefficients b are normal, so that they are integrated out: what is left is a
target of t = log s alone. With G the products of the columns, m the coefficients of least squares,
r their sum of squares, w = 1 / s^2, and a prior of b with mean c and precision P,

    U(t) = n t + r w / 2 + sum_i [log(g_i w + p_i) + v_i^2 g_i p_i w / (g_i w + p_i)] / 2 + rest,

where a basis S turns both G and P into diagonals, g and p, and m - c into v. The rest is the prior
of s, and minus t for the logarithm.
"""

from __future__ import annotations

from typing import ClassVar, Self

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray
from surrokit_sklearn.design import Rows

_FLOOR = 1e-3  # in units of the prior's scale: where all data are met, errors stay near it


@attrs.frozen(kw_only=True, eq=False)
class NormalErrors:
    """U of t, the logarithm of the errors' scale, in nats, and draws of coefficients given it.

    The prior of s is half of Student's t with 3 degrees of freedom and scale a, times
    exp(-(e a / s)^2 / 2) with e = 1e-3: without that factor errors of 0 would have infinite density
    where the columns meet every response.

    ``count`` is n, of rows as often as their weights say, ``least (k,)`` m, ``gram (k, k)`` G,
    ``residual`` r and ``scale`` a. The ``prior`` of the coefficients has mean and sd of shape (k,).
    """

    count: float
    least: FloatArray
    gram: FloatArray
    residual: float
    prior: GaussianPrior
    scale: float
    _diagonal: tuple[FloatArray, FloatArray, FloatArray] = attrs.field(init=False, repr=False)

    capabilities: ClassVar[Capabilities] = frozenset({can.GRADIENT})
    """What it offers besides the value."""
    parameters: ClassVar[Parameters] = Parameters({"log_scale": Parameter()})
    """Its one parameter."""
    dim: ClassVar[int] = 1
    """One number."""

    @_diagonal.default
    def _diagonalise(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return g, p and v."""
        precision = np.diag(self.prior.sd**-2.0)
        share = 1.0 / self.scale**2
        lower = np.linalg.cholesky(precision + share * self.gram)
        inverse = np.linalg.inv(lower)
        turned = inverse @ self.gram @ inverse.T
        g, basis = np.linalg.eigh(0.5 * (turned + turned.T))
        g = np.clip(g, 0.0, 1.0 / share)
        v = basis.T @ (lower.T @ (self.least - self.prior.mean))
        return g, 1.0 - share * g, v

    @classmethod
    def of(cls, design: FloatArray, rows: Rows, *, prior: GaussianPrior, scale: float) -> Self:
        """Return the target for the responses of some rows, and their design (n, k)."""
        share = rows.share
        turned = design.T if rows.weights is None else (design * share[:, None]).T
        gram, products = turned @ design, turned @ rows.response
        least: FloatArray = np.asarray(np.linalg.lstsq(gram, products, rcond=None)[0], np.float64)
        errors = rows.response - design @ least
        return cls(
            count=float(share.sum()),
            least=least,
            gram=0.5 * (gram + gram.T),
            residual=float(share @ (errors * errors)),
            prior=prior,
            scale=scale,
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, 1)."""
        t = check_positions(positions, 1)
        g, p, v = self._diagonal
        squares = np.square(v)
        with np.errstate(over="ignore", invalid="ignore"):
            w = np.exp(-2.0 * t)
            both = g * w + p
            ratio = np.exp(2.0 * t[:, 0]) / (3.0 * self.scale**2)
            least = (self.residual + (_FLOOR * self.scale) ** 2) * w[:, 0]
            value = (self.count - 1.0) * t[:, 0] + 0.5 * least + 2.0 * np.log1p(ratio)
            value += 0.5 * (np.log(both) + squares * g * p * w / both).sum(axis=1)
            slope = self.count - 1.0 - least + 4.0 * ratio / (1.0 + ratio)
            slope -= (g * w / both + squares * g * w * np.square(p / both)).sum(axis=1)
        return np.where(np.isnan(value), np.inf, value), slope[:, None]

    def draw_starts(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return positions where the mass is, shape (n, 1), by values on a grid."""
        low, high = np.log(_FLOOR * self.scale) - 8.0, np.log(self.scale) + 8.0
        grid = np.linspace(low, high, 400)
        values = self.value(grid[:, None])
        weights = np.exp(values.min() - values)
        return rng.choice(grid, size=(n, 1), p=weights / weights.sum())

    def draw_coefficients(self, logs: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a draw of the coefficients for each t in ``logs (n,)``, shape (n, k)."""
        precision = self.prior.sd**-2.0
        known = self.gram @ self.least
        noise = rng.standard_normal((len(logs), len(self.least)))
        found = np.empty_like(noise)
        for i, w in enumerate(np.exp(-2.0 * logs)):
            lower = np.linalg.cholesky(w * self.gram + np.diag(precision))
            right = np.linalg.solve(lower, w * known + precision * self.prior.mean) + noise[i]
            found[i] = np.linalg.solve(lower.T, right)
        return found
