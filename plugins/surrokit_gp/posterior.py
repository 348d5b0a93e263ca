"""A process given its equations: all of them, or by FITC through values at inducing points.

Coefficients of the mean function are integrated out (Rasmussen and Williams 2006, section 2.7),
under a flat prior, or a normal one of mean zero.

FITC is the fully independent training conditional of Snelson and Ghahramani (2006), section 3.3 of
the paper: values are independent given those at M inducing points u_i, and the mean is
h(z) . beta + sum_i k(z, u_i) w_i. With L L^T = K_M, V = L^-1 K_MN, D = Lambda + noise and
C C^T = I + V D^-1 V^T, the matrix Sigma_M of the paper is L C C^T L^T; so nothing larger than M x N
is formed, and L and C are well conditioned where K_M and Sigma_M are not.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, TypeAlias

import attrs
import numpy as np
from scipy.cluster.vq import kmeans2

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality
from surrokit.types import FloatArray, IntArray
from surrokit_gp.kernels import (
    cross_matrix,
    factorise,
    inverse_of,
    joint_matrix,
    scale_derivatives,
    solve,
    unit_matrix,
    weighted_squares,
)
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters, Likelihood
from surrokit_gp.trend import MeanKind, features

Inducing: TypeAlias = Literal["data", "k-means++", "optimised"]
"""How inducing points are found: drawn from the training points, spread over them, or moved from
there to where the likelihood is largest."""


@attrs.frozen(kw_only=True, eq=False)
class Profile:
    """Coefficients of basis functions, and what is left of the targets.

    In rotated coordinates in which the noise is white there are features F and targets y, with
    F^T F = H^T K^-1 H. The mean of the coefficients is generalised least squares.
    """

    coefficients: FloatArray  # mean of beta, (p,)
    factor: FloatArray  # lower triangular L_A (p, p), L_A L_A^T = H^T K^-1 H + precision
    precision: FloatArray  # of the prior of beta, (p,); zeros for a flat one
    log_likelihood: float  # of y, but for log |K|: Rasmussen and Williams 2006, equation (2.45)
    residual: FloatArray  # y - F beta, (q,)

    @classmethod
    def of(
        cls, features: FloatArray, targets: FloatArray, n: int, sd: FloatArray | None
    ) -> Profile:
        """Return the profile of F (q, p) and y (q,) that stand for n equations.

        ``sd (p,)`` are the prior's standard deviations; None for a flat one.
        """
        p = features.shape[1]
        precision = np.zeros(p) if sd is None else 1.0 / np.square(sd)
        normal = features.T @ features + np.diag(precision)
        scales = np.sqrt(np.diag(normal))
        # a feature that is zero everywhere, as in a coordinate that never moved, gets no weight
        scales = np.where(scales > 0.0, scales, 1.0)
        # some features may be the same
        correlation, _ = factorise(normal / scales / scales[:, None], 1.0, "matrix of the mean")
        factor = correlation * scales[:, None]
        coefficients = solve(factor, solve(factor, features.T @ targets), transposed=True)
        residual = targets - features @ coefficients
        squares = residual @ residual + precision @ np.square(coefficients)
        squares += 2.0 * float(np.log(np.diag(factor)).sum())
        if sd is None:
            n -= p
        else:
            squares += 2.0 * float(np.log(sd).sum())
        return cls(
            coefficients=coefficients,
            factor=factor,
            precision=precision,
            log_likelihood=-0.5 * float(squares + n * math.log(2.0 * math.pi)),
            residual=residual,
        )


@attrs.frozen(kw_only=True, eq=False)
class Posterior:
    """A process given its equations, in the coordinates z of its kernel.

    Its mean is h(z) . beta + s^2 sum_i e_i (w_i + a_i . (x - c_i)), where x = z / l. What is known
    are the m equations, or the M values at inducing points.
    """

    kind: MeanKind
    length_scales: FloatArray  # l (dim,)
    variance: float  # s^2
    centres: FloatArray  # c_i in x, (M, dim)
    gradient_rows: IntArray  # centres at which derivatives are known
    weights: FloatArray  # w_i (M,)
    gradient_weights: FloatArray | None = None  # a_i (M, dim); None where no derivative is known
    factor: FloatArray  # lower Cholesky factor of the covariance of what is known
    inner_factor: FloatArray | None = None  # C of FITC, (M, M); None for all equations
    design: FloatArray  # basis functions (m, p), rotated as what is known
    profile: Profile  # the mean function
    jitter: float  # addition to the kernel matrix's diagonal, in units of s^2
    log_likelihood: float

    def covariance(self, z: FloatArray, others: FloatArray | None = None) -> FloatArray:
        """Return the covariance of U at ``z (n, dim)`` with ``others (m, dim)``, shape (n, m).

        Without others its diagonal, shape (n,), which is never negative.
        """
        parts = [self._parts(z)]
        parts.append(parts[0] if others is None else self._parts(others))
        if others is None:
            left = np.full(len(z), self.variance)
        else:
            left = self.variance * unit_matrix(z / self.length_scales, others / self.length_scales)
        for sign, one, other in zip((-1.0, 1.0, 1.0), *parts, strict=True):
            left += sign * (np.einsum("mn,mn->n", one, one) if others is None else one.T @ other)
        return np.maximum(left, 0.0) if others is None else left

    def _parts(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        cross = cross_matrix(z / self.length_scales, self.centres, self.gradient_rows)
        cross *= self.variance
        known = solve(self.factor, cross.T)
        inner = known[:0] if self.inner_factor is None else solve(self.inner_factor, known)
        unknown = features(self.kind, z).T - self.design.T @ known
        return known, inner, solve(self.profile.factor, unknown)


# --- of all equations: Rasmussen and Williams 2006, equations (2.25) and (2.41) ---


def condition(
    rows: TrainingRows, hyperparameters: Hyperparameters, sd: FloatArray | None = None
) -> tuple[Posterior, FloatArray, FloatArray]:
    """Return the process given equations, their kernel matrix, and K^-1 (targets - mean).

    Coefficients have prior standard deviations ``sd (p,)``, or a flat prior.

    Raises
    ------
    SurrogateFitError
        If the covariance cannot be factorised.
    """
    n, dim, gradient_rows = len(rows), rows.dim, rows.gradient_rows
    scales, variance = hyperparameters.scales(dim), hyperparameters.signal_sd**2
    scaled = rows.positions / scales
    matrix = joint_matrix(scaled, gradient_rows)
    covariance = variance * matrix
    covariance[np.diag_indices_from(covariance)] += rows.noise(hyperparameters.noise_sd)
    factor, jitter = factorise(covariance, variance)
    design = solve(factor, rows.design(scales))
    profile = Profile.of(design, solve(factor, rows.targets(scales)), rows.n_equations, sd)
    dual = solve(factor, profile.residual, transposed=True)
    gradient_weights = None
    if len(gradient_rows):
        gradient_weights = np.zeros_like(scaled)
        gradient_weights[gradient_rows] = dual[n:].reshape(dim, -1).T
    # derivatives in x are l times as large as those observed
    log_jacobian = len(gradient_rows) * float(np.log(scales).sum())
    posterior = Posterior(
        kind=rows.kind,
        length_scales=scales,
        variance=variance,
        centres=scaled,
        gradient_rows=gradient_rows,
        weights=dual[:n],
        gradient_weights=gradient_weights,
        factor=factor,
        design=design,
        profile=profile,
        jitter=jitter,
        log_likelihood=profile.log_likelihood - np.log(np.diag(factor)).sum() + log_jacobian,
    )
    return posterior, matrix, dual


def _inverse(posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """Return Sigma^-1 of all equations, and K^-1 H L_A^-T, whose square is taken off K^-1."""
    spread = solve(posterior.factor, posterior.design, transposed=True)
    spread = solve(posterior.profile.factor, spread.T).T
    return inverse_of(posterior.factor) - spread @ spread.T, spread


def exact_likelihood(
    rows: TrainingRows, hyperparameters: Hyperparameters, sd: FloatArray | None = None
) -> Likelihood:
    """Return the log marginal likelihood of a full process with its derivatives.

    They are by log l_k, log s and log sigma, and by the log of each ``sd`` (p,). One Cholesky
    factorisation and one inverse; all else is matrix products (Rasmussen and Williams 2006,
    equation (5.9), with the mean function integrated out).
    """
    posterior, matrix, dual = condition(rows, hyperparameters, sd)
    n, profile, scales = len(rows), posterior.profile, posterior.length_scales
    adjoint, spread = _inverse(posterior)
    np.subtract(np.outer(dual, dual), adjoint, out=adjoint)
    adjoint *= 0.5
    diagonal = np.diag(adjoint)
    by_scales = posterior.variance * scale_derivatives(
        adjoint, matrix, posterior.centres, rows.gradient_rows
    )
    if len(rows.gradient_rows):  # which are l_k times as large in x
        design = rows.design(scales)[n:]
        left = rows.targets(scales)[n:] - design @ profile.coefficients
        by_equation = 1.0 - dual[n:] * left
        rotated = solve(profile.factor, design.T).T
        by_equation -= np.einsum("rp,rp->r", spread[n:], rotated)
        by_scales += by_equation.reshape(len(scales), -1).sum(axis=1)
    by_signal = np.einsum("ij,ij->", adjoint, matrix) + posterior.jitter * diagonal.sum()
    by_noise = hyperparameters.noise_sd**2 * (diagonal @ rows.noise_shares)
    own = np.diag(inverse_of(profile.factor)) if len(profile.factor) else np.empty(0)
    by_prior = profile.precision * (np.square(profile.coefficients) + own) - 1.0
    slopes = [*by_scales, 2.0 * posterior.variance * by_signal, 2.0 * by_noise, *by_prior]
    return posterior.log_likelihood, np.array(slopes)


def left_out(rows: TrainingRows, posterior: Posterior, dual: FloatArray) -> FloatArray:
    """Return errors at each row of the process given all others: of value and gradient in z.

    Shape (n, 1 + dim); NaN in place of gradients that are not among the equations.
    Rasmussen and Williams 2006, equation (5.12), by blocks.
    """
    n, dim, known = len(rows), rows.dim, rows.gradient_rows
    inverse, _ = _inverse(posterior)
    errors = np.full((n, 1 + dim), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors[:, 0] = dual[:n] / np.diag(inverse)[:n]
    if len(known):
        places = n + np.arange(dim) * len(known) + np.arange(len(known))[:, None]
        blocks = np.concatenate([known[:, None], places], axis=1)
        within = inverse[blocks[:, :, None], blocks[:, None, :]]
        errors[known] = np.linalg.solve(within, dual[blocks][:, :, None])[:, :, 0]
        errors[known, 1:] /= posterior.length_scales
    return errors


# --- FITC ---


def condition_sparse(
    rows: TrainingRows, hyperparameters: Hyperparameters, inducing: FloatArray
) -> tuple[Posterior, tuple[FloatArray, ...]]:
    """Return the process given values, not gradients, with inducing points z (M, dim).

    And what else is made of it: x, K_MN / s^2, K_M / s^2, V, C^-1 V D^-1/2, D^1/2,
    alpha = Sigma^-1 (values - mean), what integrating the coefficients takes off Sigma^-1 as the
    square of (p, n), and the diagonal of Sigma^-1 with that off.

    Raises
    ------
    SurrogateFitError
        If K_M cannot be factorised.
    """
    scales, variance = hyperparameters.scales(rows.dim), hyperparameters.signal_sd**2
    x, centres = rows.positions / scales, inducing / scales
    among, unit = unit_matrix(centres, centres), unit_matrix(centres, x)
    # K_M has no noise on its diagonal, and weights grow with the inverse of its least pivot. A
    # jitter as large as the least square of a pivot is far below the noise, and keeps digits
    factor, jitter = factorise(
        variance * among, variance, "kernel matrix of inducing points", room=1e-9
    )
    among[np.diag_indices_from(among)] += jitter
    projected = solve(factor, variance * unit)
    lost = np.maximum(variance - np.einsum("mn,mn->n", projected, projected), 0.0)
    # never quite without noise: a value met exactly has infinite weight
    root = np.sqrt(np.maximum(lost + rows.noise(hyperparameters.noise_sd), 1e-14 * variance))
    whitened = projected / root
    inner_factor, _ = factorise(np.eye(len(centres)) + whitened @ whitened.T, 1.0)
    rotated = solve(inner_factor, whitened)
    known = np.column_stack([rows.basis, rows.values]) / root[:, None]
    explained = solve(inner_factor, rotated @ known, transposed=True)
    left = known - whitened.T @ explained
    # y^T (I + V D^-1 V^T)^-1 y is the least of |y - V^T u|^2 + |u|^2: two squares, no difference
    both = np.concatenate([left, explained])
    profile = Profile.of(both[:, :-1], both[:, -1], len(rows), None)
    determinant = np.log(root).sum() + np.log(np.diag(inner_factor)).sum()
    dual = profile.residual[: len(rows)] / root
    spread = solve(profile.factor, (left[:, :-1] / root[:, None]).T)
    own = (1.0 - np.einsum("mn,mn->n", rotated, rotated)) / root**2
    own -= np.einsum("pn,pn->n", spread, spread)
    posterior = Posterior(
        kind=rows.kind,
        length_scales=scales,
        variance=variance,
        centres=centres,
        gradient_rows=np.empty(0, dtype=np.int64),
        weights=solve(factor, profile.residual[len(rows) :], transposed=True),
        factor=factor,
        inner_factor=inner_factor,
        design=explained[:, :-1],
        profile=profile,
        jitter=jitter,
        log_likelihood=profile.log_likelihood - determinant,
    )
    return posterior, (x, unit, among, projected, rotated, root, dual, spread, own)


def sparse_likelihood(
    rows: TrainingRows, hyperparameters: Hyperparameters, inducing: FloatArray
) -> Likelihood:
    """Return the log marginal likelihood of FITC with its derivatives, in O(M^2 N).

    They are by log l_k, log s and log sigma, and by the inducing points, M dim numbers. With
    W = alpha alpha^T - P (P the inverse covariance less what integrating the coefficients
    takes off it), dL = tr(W dSigma) / 2. Off the diagonal Sigma changes with Q = K_NM K_M^-1 K_MN
    alone, so everything comes through F = K_M^-1 K_MN (W - diag W), of shape (M, N).
    """
    posterior, parts = condition_sparse(rows, hyperparameters, inducing)
    x, unit, kernel, projected, rotated, root, dual, spread, inverse = parts
    profile, variance, centres = posterior.profile, posterior.variance, posterior.centres
    own = np.square(dual) - inverse
    inner = solve(np.asarray(posterior.inner_factor), rotated, transposed=True)
    inner /= -root
    inner += profile.residual[len(rows) :, None] * dual
    inner += solve(profile.factor, posterior.design.T).T @ spread
    inner -= projected * own
    forces = solve(posterior.factor, inner, transposed=True)  # F
    across = forces * unit
    among = solve(posterior.factor, (forces @ projected.T).T, transposed=True)
    among *= -0.5 * kernel
    squares = weighted_squares(across, centres, x) + weighted_squares(among, centres, centres)
    by_signal = across.sum() + among.sum() + 0.5 * own.sum()
    by_noise = hyperparameters.noise_sd**2 * (own @ rows.noise_shares)
    pulls = across @ x - across.sum(axis=1)[:, None] * centres
    pulls += 2.0 * (among @ centres - among.sum(axis=1)[:, None] * centres)
    by_inducing = variance / posterior.length_scales * pulls
    slopes = [*(variance * squares), 2.0 * variance * by_signal, by_noise, *by_inducing.ravel()]
    return posterior.log_likelihood, np.array(slopes)


def inducing_points(
    kind: Inducing, positions: FloatArray, number: int | None, rng: np.random.Generator
) -> FloatArray:
    """Return M inducing points, shape (M, dim), among the distinct ``positions (n, dim)``.

    ``"data"`` draws positions; the others are centres of k-means from the seeds of Arthur and
    Vassilvitskii (2007). The Nystrom error that inducing points leave is bounded by the squared
    distances that this makes small (Zhang, Tsang and Kwok 2008). M None is half of the points, and
    at most 300: the price of a fit grows with its square.

    Raises
    ------
    SurrogateFitError
        If there are fewer positions than inducing points.
    """
    n, dim = positions.shape
    number = min(n, 300, max(n // 2, dim + 2)) if number is None else number
    if number > n:
        raise SurrogateFitError(
            f"n_inducing={number} inducing points cannot be found among {n} distinct training "
            f"points; explore for longer, set n_inducing to {n} or less, or leave it None"
        )
    if kind == "data":
        return positions[np.sort(rng.choice(n, size=number, replace=False))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster keeps its centre
        return np.asarray(kmeans2(positions, number, minit="++", seed=rng)[0])


def quality_of(rows: TrainingRows, errors: FloatArray, gradients: FloatArray) -> FitQuality | None:
    """Return the quality by errors at rows left out, (n, 1 + dim), with ``gradients`` of U in z.

    Rows in the far tail do not count, and of fewer than eight others the variance says little.
    """
    kept = (rows.tail_sd == 0.0) & np.isfinite(errors[:, 0])
    if np.count_nonzero(kept) < 8:
        return None
    known, error = kept & np.isfinite(errors).all(axis=1), None
    if known.any():
        size = np.linalg.norm(errors[known, 1:])
        error = float(size / max(np.linalg.norm(gradients[known]), np.finfo(float).tiny))
    variance = float(np.var(errors[kept, 0]))
    return FitQuality(variance=variance, gradient_error=error, n_points=int(kept.sum()))
