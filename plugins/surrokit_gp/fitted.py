"""The mean of a process as a potential: radial terms and a polynomial."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.exact import Posterior
from surrokit_gp.hyperparameters import Hyperparameters
from surrokit_gp.kernels import by_blocks
from surrokit_gp.observations import Frame
from surrokit_gp.trend import MeanKind, Polynomial, features

CAPABILITIES: Capabilities = frozenset(
    {GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE}
)
"""Capabilities of every fitted process."""

_SCRATCH = 2_000_000  # numbers that derivatives of higher order may take at a time


@attrs.frozen(kw_only=True, eq=False)
class Expansion:
    """V(q) = sum_i e_i lambda_i + level + slope . r + r^T matrix r / 2.

    Here r = q - origin, x = r T, e_i = exp(-|x - c_i|^2 / 2) and lambda_i = v_i + a_i . (x - c_i),
    with a_i = 0 where no derivative was learnt from.

    The exponent is x . c - |x|^2 / 2 - |c|^2 / 2, so one product of (r, 1, -|x|^2) with a table
    gives all exponents, and one of e with another both sum_i e_i v_i and sum_i e_i v_i c_i. What
    is left to do is of the size of the positions. Everything linear is folded into the tables.

    """

    origin: FloatArray  # of r, (dim,)
    scaling: FloatArray  # T (dim, dim)
    centres: FloatArray  # c_i (M, dim)
    weights: FloatArray  # v_i (M,)
    gradient_weights: FloatArray | None  # a_i (M, dim)
    polynomial: Polynomial  # the rest, as a function of r
    _pulls: FloatArray = attrs.field(init=False, repr=False)
    _heights: FloatArray = attrs.field(init=False, repr=False)
    _sums: FloatArray = attrs.field(init=False, repr=False)
    _tilts: tuple[FloatArray, FloatArray] | None = attrs.field(init=False, repr=False)

    @_pulls.default
    def _make_pulls(self) -> FloatArray:
        dim, rest = self.dim, self.polynomial
        table = np.zeros((dim + 1, 2 * dim + 1))
        table[:dim, :dim] = -self.scaling @ self.scaling.T
        table[:dim, dim:-1] = rest.matrix
        table[dim, dim:-1] = rest.slope
        table[:dim, -1] = rest.slope
        table[dim, -1] = 2.0 * rest.level
        return table

    @_heights.default
    def _make_heights(self) -> FloatArray:
        offsets = -0.5 * np.einsum("md,md->m", self.centres, self.centres)
        halves = np.full_like(offsets, 0.5)
        return np.vstack([self.scaling @ self.centres.T, offsets, halves])

    @_sums.default
    def _make_sums(self) -> FloatArray:
        # for lambda_i in the sums, the weights are left to be multiplied in row by row
        weights = self.weights if self.gradient_weights is None else np.ones_like(self.weights)
        moved = (self.centres @ self.scaling.T) * weights[:, None]
        return np.asfortranarray(np.column_stack([moved, weights]))

    @_tilts.default
    def _make_tilts(self) -> tuple[FloatArray, FloatArray] | None:
        if self.gradient_weights is None:
            return None
        levels = self.weights - np.einsum("md,md->m", self.gradient_weights, self.centres)
        moved = self.gradient_weights @ self.scaling.T
        return np.vstack([moved.T, levels]), np.asfortranarray(moved)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.origin)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[0]

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim)."""
        return self._sum_and_gradient(*self._extend(positions))[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        extended, pulls = self._extend(positions)
        values, gradient = self._sum_and_gradient(extended, pulls)
        # twice the polynomial is (r, 1) . the end of pulls
        values += 0.5 * np.vecdot(extended[:, :-1], pulls[:, self.dim :])
        return values, gradient

    def _extend(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (r, 1, -|x|^2), and (-r T T^T, r matrix + slope, r . slope + 2 level)."""
        n, dim = positions.shape
        extended = np.empty((n, dim + 2))
        away = extended[:, :dim]
        np.subtract(positions, self.origin, out=away)
        extended[:, dim] = 1.0
        pulls: FloatArray = extended[:, :-1] @ self._pulls
        np.vecdot(away, pulls[:, :dim], out=extended[:, -1])
        return extended, pulls

    def _heights_at(self, extended: FloatArray) -> FloatArray:
        exponents: FloatArray = extended @ self._heights
        return np.exp(exponents, out=exponents)

    def _sum_and_gradient(
        self, extended: FloatArray, pulls: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of radial terms, and the gradient of everything."""
        heights, dim = self._heights_at(extended), extended.shape[1] - 2
        radial_gradient = None
        if self._tilts is not None:
            radial_gradient = heights @ self._tilts[1]
            heights *= extended[:, :-1] @ self._tilts[0]
        sums = heights @ self._sums
        radial = sums[:, -1]
        gradient: FloatArray = pulls[:, :dim] * radial[:, None]
        gradient += sums[:, :-1]
        gradient += pulls[:, dim:-1]
        if radial_gradient is not None:
            gradient += radial_gradient
        return radial, gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        n, dim = positions.shape
        scaled = (positions - self.origin) @ self.scaling
        inner = np.empty((n, dim, dim))
        for rows in self._blocks(n):
            away, heights, levels = self._terms(scaled[rows])
            bends = heights * levels
            weighed = away * bends[:, :, None]
            if self.gradient_weights is not None:
                weighed -= 2.0 * heights[:, :, None] * self.gradient_weights
            np.matmul(away.transpose(0, 2, 1), weighed, out=inner[rows])
            inner[rows] -= bends.sum(axis=1)[:, None, None] * np.eye(dim)
        hessian = self.scaling @ (0.5 * (inner + inner.transpose(0, 2, 1))) @ self.scaling.T
        return np.asarray(hessian + self.polynomial.matrix)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k H) for each k, shape (n, dim), with A in ``matrices (n, dim, dim)``.

        With d = x - c and Q = d^T A d - tr A, in x: sum_i e_i [a_i Q_i - d_i (lambda_i Q_i - 2
        a_i . A d_i)] - 2 A grad V.
        """
        scaled = (positions - self.origin) @ self.scaling
        inner = self.scaling.T @ (0.5 * (matrices + matrices.transpose(0, 2, 1))) @ self.scaling
        traces = np.einsum("nkk->n", inner)
        found = np.zeros_like(scaled)
        for rows in self._blocks(len(scaled)):
            away, heights, levels = self._terms(scaled[rows])
            turned = away @ inner[rows]
            bends = np.einsum("nmd,nmd->nm", away, turned) - traces[rows, None]
            factors = levels * bends
            gradient = -np.einsum("nm,nmd->nd", heights * levels, away)
            if self.gradient_weights is not None:
                factors -= 2.0 * np.einsum("nmd,md->nm", turned, self.gradient_weights)
                found[rows] = (heights * bends) @ self.gradient_weights
                gradient += heights @ self.gradient_weights
            found[rows] -= np.einsum("nm,nmd->nd", heights * factors, away)
            found[rows] -= 2.0 * np.einsum("nij,nj->ni", inner[rows], gradient)
        return np.asarray(found @ self.scaling.T)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k H u for each k, shape (n, dim), with u in ``vectors (n, dim)``.

        As :meth:`hessian_trace_gradient` with A = u u^T, but from products of the size of a
        gradient's: d itself is never formed.
        """
        extended, _ = self._extend(positions)
        scaled, inner = extended[:, : self.dim] @ self.scaling, vectors @ self.scaling
        heights = self._heights_at(extended)
        along = np.einsum("nd,nd->n", scaled, inner)[:, None] - inner @ self.centres.T
        bends = np.square(along) - np.einsum("nd,nd->n", inner, inner)[:, None]
        if self.gradient_weights is None or self._tilts is None:
            levels = np.broadcast_to(self.weights, heights.shape)
            drags, found = np.zeros(1), np.zeros_like(scaled)
        else:
            levels = extended[:, :-1] @ self._tilts[0]
            drags = inner @ self.gradient_weights.T
            found = (heights * bends) @ self.gradient_weights
        factors = heights * (levels * bends - 2.0 * along * drags)
        found += factors @ self.centres - factors.sum(axis=1)[:, None] * scaled
        downhill = np.einsum("nm,nm->n", heights, drags - levels * along)
        found -= 2.0 * downhill[:, None] * inner
        return np.asarray(found @ self.scaling.T)

    def _blocks(self, n: int) -> list[slice]:
        size = max(1, _SCRATCH // max(1, self.centres.size))
        return [slice(start, start + size) for start in range(0, n, size)]

    def _terms(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return d = x - c of shape (n, M, dim), e and lambda of shape (n, M)."""
        away = scaled[:, None, :] - self.centres
        heights = np.exp(-0.5 * np.einsum("nmd,nmd->nm", away, away))
        levels = np.broadcast_to(self.weights, heights.shape)
        if self.gradient_weights is not None:
            levels = levels + np.einsum("nmd,md->nm", away, self.gradient_weights)
        return away, heights, levels


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedProcess(ShownFit):
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
        Errors at points held out from another fit with the same hyperparameters; None where
        there were too few points to hold any out.
    kind
        The mean function whose coefficients are uncertain.
    expansion
        Its mean, as a function of q.
    """

    hyperparameters: Hyperparameters
    mean: MeanKind
    n_points: int
    n_gradients: int
    quality: FitQuality | None = None
    frame: Frame
    kind: MeanKind
    posterior: Posterior
    expansion: Expansion

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.expansion.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, Hessian and its derivative, variance."""
        return CAPABILITIES

    @property
    def centres(self) -> FloatArray:
        """Positions q of the kernel's centres: training points, or inducing points: (M, dim)."""
        return self.frame.kernel.undo(self.posterior.centres * self.posterior.length_scales)

    @property
    def weights(self) -> FloatArray:
        """Weights of the kernel at the centres, shape (M,)."""
        return self.posterior.weights

    @property
    def jitter(self) -> float:
        """Addition to the kernel matrix's diagonal, in units of the signal's variance."""
        return self.posterior.jitter

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of all that was fitted."""
        return self.posterior.log_likelihood

    def __repr__(self) -> str:
        scales = self.hyperparameters.scales(self.dim)
        lengths = f"{scales.min():.3g}"
        if scales.max() > scales.min():
            lengths += f" to {scales.max():.3g}"
        quality = "None" if self.quality is None else f"{self.quality.variance:.3g} nats^2"
        return (
            f"FittedProcess(dim={self.dim}, n_points={self.n_points}, "
            f"n_gradients={self.n_gradients}, n_centres={len(self.weights)}, mean={self.mean!r}, "
            f"length_scales={lengths}, signal_sd={self.hyperparameters.signal_sd:.3g}, "
            f"noise_sd={self.hyperparameters.noise_sd:.3g}, jitter={self.jitter:.3g}, "
            f"quality={quality})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.expansion.value(check_positions(positions, self.dim))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self.expansion.gradient(check_positions(positions, self.dim))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        return self.expansion.value_and_gradient(check_positions(positions, self.dim))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        return self.expansion.hessian(check_positions(positions, self.dim))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k H), shape (n, dim), H the Hessian and A symmetric (n, dim, dim)."""
        where = check_positions(positions, self.dim)
        return self.expansion.hessian_trace_gradient(where, check_matrices(matrices, where))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k H u, shape (n, dim), with H the Hessian and u of shape (n, dim)."""
        where = check_positions(positions, self.dim)
        return self.expansion.hessian_form_gradient(where, check_vectors(vectors, where))

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """

        def variance_of(rows: FloatArray) -> FloatArray:
            basis = features(self.kind, self.frame.whitening.apply(rows))
            return self.posterior.variance_at(self.frame.kernel.apply(rows), basis)

        return by_blocks(variance_of, check_positions(positions, self.dim))
