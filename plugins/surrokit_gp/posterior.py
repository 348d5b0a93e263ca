"""A process given its equations: all of them, or by FITC through values at inducing points.

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

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray, IntArray
from surrokit_gp.hyperparameters import Hyperparameters, Likelihood
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

Inducing: TypeAlias = Literal["data", "k-means++"]
"""How inducing points are found: drawn from the training points, or spread over them."""


@attrs.frozen(kw_only=True, eq=False)
class Profile:
    """Coefficients of basis functions under a flat prior, and what is left of the targets.

    In rotated coordinates in which the noise is white there are features F and targets y, with
    F^T F = H^T K^-1 H. The coefficients are integrated out (Rasmussen and Williams 2006, section
    2.7), which for their mean is generalised least squares, and for the hyperparameters restricted
    maximum likelihood.
    """

    coefficients: FloatArray  # mean of beta, (p,)
    factor: FloatArray  # lower triangular L_A (p, p) with L_A L_A^T = H^T K^-1 H
    residual: FloatArray  # y - F beta, (q,)

    @classmethod
    def of(cls, features: FloatArray, targets: FloatArray) -> Profile:
        """Return the profile of F, shape (q, p), and y, shape (q,)."""
        normal = features.T @ features
        scales = np.sqrt(np.diag(normal))
        # A feature that is zero everywhere, as in a coordinate that never moved, gets no weight.
        scales = np.where(scales > 0.0, scales, 1.0)
        jitters = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)  # some features may be the same
        correlation, _ = factorise(
            normal / scales / scales[:, None], 1.0, jitters, "matrix of basis functions"
        )
        factor = correlation * scales[:, None]
        coefficients = solve(factor, solve(factor, features.T @ targets), transposed=True)
        return cls(
            coefficients=coefficients, factor=factor, residual=targets - features @ coefficients
        )

    def log_likelihood(self, n_equations: int, log_determinant: float) -> float:
        """Return the log marginal likelihood of targets whose log |K| is given.

        Rasmussen and Williams 2006, equation (2.45).
        """
        squares = float(self.residual @ self.residual)
        own = 2.0 * float(np.log(np.diag(self.factor)).sum())
        free = n_equations - len(self.coefficients)
        return -0.5 * (squares + log_determinant + own + free * math.log(2.0 * math.pi))


@attrs.frozen(kw_only=True, eq=False)
class Posterior:
    """A process given its equations, in the coordinates z of its kernel.

    Its mean is h(z) . beta + s^2 sum_i e_i (w_i + a_i . (x - c_i)), where x = z / l. What is known
    are the m equations, or the M values at inducing points.
    """

    length_scales: FloatArray  # l (dim,)
    variance: float  # s^2
    centres: FloatArray  # c_i in x, (M, dim)
    gradient_rows: IntArray  # centres at which derivatives are known
    weights: FloatArray  # w_i (M,)
    gradient_weights: FloatArray | None  # a_i (M, dim); None where no derivative is known
    factor: FloatArray  # lower Cholesky factor of the covariance of what is known
    inner_factor: FloatArray | None  # C of FITC, (M, M); None for a process of all equations
    design: FloatArray  # basis functions (m, p), rotated as what is known
    profile: Profile  # the mean function
    jitter: float  # addition to the kernel matrix's diagonal, in units of s^2
    log_likelihood: float

    def variance_at(self, positions: FloatArray, features: FloatArray) -> FloatArray:
        """Return the variance (n,) of process and mean function at z (n, dim), h(z) (n, p)."""
        scaled = positions / self.length_scales
        cross = cross_matrix(scaled, self.centres, self.gradient_rows)
        cross *= self.variance
        known = solve(self.factor, cross.T)
        left = self.variance - np.einsum("mn,mn->n", known, known)
        if self.inner_factor is not None:
            inner = solve(self.inner_factor, known)
            left = left + np.einsum("mn,mn->n", inner, inner)
        unknown = solve(self.profile.factor, features.T - self.design.T @ known)
        left += np.einsum("pn,pn->n", unknown, unknown)
        return np.asarray(np.maximum(left, 0.0))


# --- of all equations: Rasmussen and Williams 2006, equations (2.25) and (2.41) ---


def condition(
    rows: TrainingRows, hyperparameters: Hyperparameters
) -> tuple[Posterior, FloatArray, FloatArray]:
    """Return the process given equations, their kernel matrix, and K^-1 (targets - mean).

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
    profile = Profile.of(design, solve(factor, rows.targets(scales)))
    dual = solve(factor, profile.residual, transposed=True)
    gradient_weights = None
    if len(gradient_rows):
        gradient_weights = np.zeros_like(scaled)
        gradient_weights[gradient_rows] = dual[n:].reshape(dim, -1).T
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    # derivatives in x are l times as large as those observed
    log_jacobian = len(gradient_rows) * float(np.log(scales).sum())
    likelihood = profile.log_likelihood(rows.n_equations, log_determinant)
    posterior = Posterior(
        length_scales=scales,
        variance=variance,
        centres=scaled,
        gradient_rows=gradient_rows,
        weights=dual[:n],
        gradient_weights=gradient_weights,
        factor=factor,
        inner_factor=None,
        design=design,
        profile=profile,
        jitter=jitter,
        log_likelihood=likelihood + log_jacobian,
    )
    return posterior, matrix, dual


def exact_likelihood(rows: TrainingRows, hyperparameters: Hyperparameters) -> Likelihood:
    """Return the log marginal likelihood of a full process with its derivatives.

    One Cholesky factorisation and one inverse; all else is matrix products (Rasmussen and
    Williams 2006, equation (5.9), with the mean function integrated out).
    """
    posterior, matrix, dual = condition(rows, hyperparameters)
    n, profile, scales = len(rows), posterior.profile, posterior.length_scales
    # K^-1 H L_A^-T; its outer product is what integrating the coefficients takes off K^-1.
    spread = solve(posterior.factor, posterior.design, transposed=True)
    spread = solve(profile.factor, spread.T).T
    adjoint = inverse_of(posterior.factor)
    low_rank = np.column_stack([dual, spread])
    np.subtract(low_rank @ low_rank.T, adjoint, out=adjoint)
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
    by_noise = hyperparameters.noise_sd**2 * (diagonal @ rows.noise_shares())
    derivatives = np.array([*by_scales, 2.0 * posterior.variance * by_signal, 2.0 * by_noise])
    return posterior.log_likelihood, derivatives


# --- FITC ---


def condition_sparse(
    rows: TrainingRows, hyperparameters: Hyperparameters, inducing: FloatArray
) -> tuple[Posterior, tuple[FloatArray, ...]]:
    """Return the process given values, not gradients, with inducing points z (M, dim).

    And what the derivatives of its likelihood need: x, K_MN / s^2, K_M / s^2, V, C^-1 V D^-1/2,
    D^1/2, the part of D^-1/2 [H, t] that V D^-1/2 does not explain, and coefficients of the part
    that it does.

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
    jitters, what = (0.0, 1e-9, 1e-8, 1e-7, 1e-6), "kernel matrix of inducing points"
    factor, jitter = factorise(variance * among, variance, jitters, what, room=1e-9)
    among[np.diag_indices_from(among)] += jitter
    projected = solve(factor, variance * unit)
    lost = np.maximum(variance - np.einsum("mn,mn->n", projected, projected), 0.0)
    independent = lost + rows.noise(hyperparameters.noise_sd)[: len(lost)]
    # never quite without noise: a value met exactly has infinite weight
    root = np.sqrt(np.maximum(independent, 1e-14 * variance))
    whitened = projected / root
    inner = whitened @ whitened.T
    inner[np.diag_indices_from(inner)] += 1.0
    inner_factor, _ = factorise(inner, 1.0)
    rotated = solve(inner_factor, whitened)
    known = np.column_stack([rows.basis, rows.values]) / root[:, None]
    explained = solve(inner_factor, rotated @ known, transposed=True)
    left = known - whitened.T @ explained
    # y^T (I + V D^-1 V^T)^-1 y is the least of |y - V^T u|^2 + |u|^2: two squares, no difference
    features = np.concatenate([left, explained])
    profile = Profile.of(features[:, :-1], features[:, -1])
    determinant = 2.0 * float(np.log(root).sum() + np.log(np.diag(inner_factor)).sum())
    weights = explained[:, -1] - explained[:, :-1] @ profile.coefficients
    posterior = Posterior(
        length_scales=scales,
        variance=variance,
        centres=centres,
        gradient_rows=np.empty(0, dtype=np.int64),
        weights=solve(factor, weights, transposed=True),
        gradient_weights=None,
        factor=factor,
        inner_factor=inner_factor,
        design=explained[:, :-1],
        profile=profile,
        jitter=jitter,
        log_likelihood=profile.log_likelihood(len(rows), determinant),
    )
    return posterior, (x, unit, among, projected, rotated, root, left, explained)


def sparse_likelihood(
    rows: TrainingRows, hyperparameters: Hyperparameters, inducing: FloatArray
) -> Likelihood:
    """Return the log marginal likelihood of FITC with its derivatives, in O(M^2 N).

    With W = alpha alpha^T - P (P the inverse covariance less what integrating the coefficients
    takes off it), dL = tr(W dSigma) / 2. Off the diagonal Sigma changes with Q = K_NM K_M^-1 K_MN
    alone, so everything comes through F = K_M^-1 K_MN (W - diag W), of shape (M, N).
    """
    posterior, parts = condition_sparse(rows, hyperparameters, inducing)
    x, unit, kernel, projected, rotated, root, unexplained, explained = parts
    profile, variance, centres = posterior.profile, posterior.variance, posterior.centres
    left = unexplained[:, :-1] / root[:, None]
    dual = unexplained[:, -1] / root - left @ profile.coefficients
    spread = solve(profile.factor, left.T)
    own = np.square(dual) + np.einsum("pn,pn->n", spread, spread)
    own -= (1.0 - np.einsum("mn,mn->n", rotated, rotated)) / root**2
    inner = solve(np.asarray(posterior.inner_factor), rotated, transposed=True)
    inner /= -root
    inner += (explained[:, -1] - posterior.design @ profile.coefficients)[:, None] * dual
    inner += solve(profile.factor, posterior.design.T).T @ spread
    inner -= projected * own
    forces = solve(posterior.factor, inner, transposed=True)  # F
    across = forces * unit
    among = solve(posterior.factor, (forces @ projected.T).T, transposed=True)
    among *= kernel
    among *= -0.5
    squares = weighted_squares(across, centres, x) + weighted_squares(among, centres, centres)
    by_signal = across.sum() + among.sum() + 0.5 * own.sum()
    by_noise = hyperparameters.noise_sd**2 * (own @ rows.noise_shares()[: len(own)])
    derivatives = np.array([*(variance * squares), 2.0 * variance * by_signal, by_noise])
    return posterior.log_likelihood, derivatives


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
    from scipy.cluster.vq import kmeans2

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
