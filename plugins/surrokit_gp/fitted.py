"""The mean of a process as a potential: radial terms and a polynomial."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import attrs
import numpy as np

from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.kernels import unit_matrix
from surrokit_gp.posterior import Posterior
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters
from surrokit_gp.trend import MeanKind, Polynomial

CAPABILITIES: Capabilities = frozenset(
    {GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE}
)
"""Capabilities of every fitted process."""


@attrs.frozen(kw_only=True, eq=False)
class Expansion:
    """V(q) = sum_i e_i lambda_i + level + slope . r + r^T matrix r / 2.

    Here r = q - origin, x = r T, e_i = exp(-|x - c_i|^2 / 2) and lambda_i = v_i + a_i . (x - c_i),
    with a_i = 0 where no derivative was learnt from.
    """

    origin: FloatArray  # of r, (dim,)
    scaling: FloatArray  # T (dim, dim)
    nodes: FloatArray  # c_i (M, dim)
    levels: FloatArray  # v_i (M,)
    slopes: FloatArray | None  # a_i (M, dim)
    polynomial: Polynomial  # the rest, as a function of r

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.origin)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[0]

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim)."""
        return self.value_and_gradient(positions)[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim).

        Chains spend their time here, in small batches: few and large products.
        """
        away = check_positions(positions, self.dim) - self.origin
        if self.slopes is None:
            middle, centres, half_squares, terms = self._centred
            x = away @ self.scaling - middle
            exponents = x @ centres.T
            exponents -= half_squares
            exponents -= 0.5 * np.vecdot(x, x)[:, None]
            sums = np.exp(exponents, out=exponents) @ terms
            total, slopes = sums[:, 0], sums[:, 1:]
        else:
            x, heights, levels = self._terms(positions)
            bends = heights * levels
            total, slopes = bends.sum(axis=1), bends @ self.nodes + heights @ self.slopes
        slopes -= total[:, None] * x
        bends = away @ self.polynomial.matrix
        values = total + self.polynomial.level
        values += np.vecdot(away, 0.5 * bends + self.polynomial.slope)
        return values, slopes @ self.scaling.T + bends + self.polynomial.slope

    @cached_property
    def _centred(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The nodes' mean, nodes less it, half of their squares, levels alone and times nodes."""
        middle = self.nodes.mean(axis=0) if len(self.nodes) else np.zeros(self.dim)
        centres = self.nodes - middle
        terms = np.column_stack([self.levels, self.levels[:, None] * centres])
        return middle, centres, 0.5 * np.vecdot(centres, centres), terms

    # --- derivatives of higher order, with d = x - c ---

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim).

        sum_i e_i [lambda_i (d d^T - 1) - a_i d^T - d a_i^T] in x, by products with c c^T and a c^T.
        """
        x, heights, levels = self._terms(positions)
        bends, c = heights * levels, self.nodes
        total = bends.sum(axis=1)[:, None, None]
        across = x[:, :, None] * (bends @ c)[:, None, :]
        if self.slopes is not None:
            across += (heights @ self.slopes)[:, :, None] * x[:, None, :]
            across -= _of_pairs(heights, self.slopes, c)
        inner = total * (x[:, :, None] * x[:, None, :] - np.eye(self.dim))
        inner += _of_pairs(bends, c, c) - across - across.transpose(0, 2, 1)
        hessian = self.scaling @ (0.5 * (inner + inner.transpose(0, 2, 1))) @ self.scaling.T
        return np.asarray(hessian + self.polynomial.matrix)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k H), shape (n, dim), H the Hessian and A symmetric (n, dim, dim).

        With Q = d^T A d - tr A, in x: sum_i e_i [a_i Q_i - d_i (lambda_i Q_i - 2 a_i . A d_i)] less
        2 A times the gradient of the radial terms.
        """
        x, heights, levels = self._terms(positions)
        c, outer = self.nodes, check_matrices(matrices, x)
        inner = self.scaling.T @ (0.5 * (outer + outer.transpose(0, 2, 1))) @ self.scaling
        flat, turned = inner.reshape(len(x), -1), np.einsum("nij,nj->ni", inner, x)
        squares = np.einsum("ni,ni->n", x, turned) - np.einsum("nkk->n", inner)
        bends = squares[:, None] - 2.0 * turned @ c.T + flat @ _pairs(c, c).T
        pulls, factors = heights * levels, heights * levels * bends
        downhill, found = pulls @ c - pulls.sum(axis=1)[:, None] * x, np.zeros_like(x)
        if self.slopes is not None:
            factors -= 2.0 * heights * (turned @ self.slopes.T - flat @ _pairs(self.slopes, c).T)
            downhill += heights @ self.slopes
            found = (heights * bends) @ self.slopes
        found += factors @ c - factors.sum(axis=1)[:, None] * x
        found -= 2.0 * np.einsum("nij,nj->ni", inner, downhill)
        return np.asarray(found @ self.scaling.T)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k H u, shape (n, dim), with H the Hessian and u of shape (n, dim)."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self.hessian_trace_gradient(positions, u[:, :, None] * u[:, None, :])

    def _terms(self, positions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x (n, dim), and e and lambda of shape (n, M)."""
        x = (check_positions(positions, self.dim) - self.origin) @ self.scaling
        levels = np.broadcast_to(self.levels, (len(x), len(self.levels)))
        if self.slopes is not None:
            tempered = self.levels - np.einsum("md,md->m", self.slopes, self.nodes)
            levels = x @ self.slopes.T + tempered
        return x, unit_matrix(x, self.nodes), levels


def _pairs(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return all products of two entries of each row, shape (M, dim^2)."""
    return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))


def _of_pairs(weights: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return sum_m weights[n, m] left_m right_m^T, shape (n, dim, dim)."""
    dim = left.shape[1]
    return np.asarray((weights @ _pairs(left, right)).reshape(len(weights), dim, dim))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedProcess(Expansion):
    """V(q), the mean of a Gaussian process given exact evaluations, in nats.

    Frozen and safe to share between threads. Every array it returns is new. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers and factors
    go with them.

    Parameters
    ----------
    hyperparameters
        Length scales in the kernel's coordinates, signal and noise in nats.
    mean
        The mean function; a quadratic one whose curvature was raised to be positive is the sum of
        that quadratic, then fixed, and a linear one.
    n_points
        Number of distinct points that it was fitted to.
    n_gradients
        Number of gradients that were used.
    quality : FitQuality or None
        Errors at each point of the process given all others, with the same hyperparameters; None
        for fewer than eight points.
    whitening
        From positions to the coordinates z of the fit.
    """

    hyperparameters: Hyperparameters
    mean: MeanKind
    n_points: int
    n_gradients: int
    quality: FitQuality | None = None
    whitening: Whitening
    posterior: Posterior

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        rows: TrainingRows,
        frame: Whitening,
        fixed: Polynomial,
        **more: Any,
    ) -> Self:
        """Return the process given rows, in z of a frame, plus a fixed trend."""
        variance, slopes = posterior.variance, posterior.gradient_weights
        trend = Polynomial.of(posterior.profile.coefficients, rows.dim) + fixed
        return cls(
            origin=frame.mean,
            scaling=frame.inverse.T / posterior.length_scales,
            nodes=posterior.centres,
            levels=variance * posterior.weights,
            slopes=None if slopes is None else variance * slopes,
            polynomial=trend.in_coordinates(frame.inverse),
            n_points=len(rows),
            n_gradients=len(rows.gradient_rows),
            whitening=frame,
            posterior=posterior,
            **more,
        )

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, Hessian and its derivative, variance."""
        return CAPABILITIES

    @property
    def centres(self) -> FloatArray:
        """Positions q of the kernel's centres: training points, or inducing points: (M, dim)."""
        return self.whitening.undo(self.posterior.centres * self.posterior.length_scales)

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of all that was fitted."""
        return self.posterior.log_likelihood

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """
        z = self.whitening.apply(check_positions(positions, self.dim))
        # Always 16 rows at a time. Where little is unknown a variance is a small difference of
        # large numbers, whose rounding must not depend on how many rows there are.
        padded = np.concatenate([z, np.repeat(z[-1:], -len(z) % 16, axis=0)])
        blocks = [self.posterior.covariance(each) for each in padded.reshape(-1, 16, self.dim)]
        return np.concatenate([np.empty(0), *blocks])[: len(z)]

    def __repr__(self) -> str:
        scales = self.posterior.length_scales
        lengths = f"{scales.min():.3g}"
        if scales.max() > scales.min():
            lengths += f" to {scales.max():.3g}"
        quality = "None" if self.quality is None else f"{self.quality.variance:.3g} nats^2"
        return (
            f"{type(self).__name__}(dim={self.dim}, n_points={self.n_points}, "
            f"n_gradients={self.n_gradients}, n_centres={len(self.nodes)}, mean={self.mean!r}, "
            f"length_scales={lengths}, signal_sd={self.hyperparameters.signal_sd:.3g}, "
            f"noise_sd={self.hyperparameters.noise_sd:.3g}, jitter={self.posterior.jitter:.3g}, "
            f"quality={quality})"
        )
