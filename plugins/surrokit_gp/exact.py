"""The full process given values, gradients at some of the positions, and noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import attrs
import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_gp.hyperparameters import Hyperparameters, Likelihood
from surrokit_gp.kernels import (
    cross_matrix,
    factorise,
    inverse_of,
    joint_matrix,
    scale_derivatives,
    solve,
)
from surrokit_gp.observations import Observations

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Relative jitters for normal matrices of basis functions, some of which may be the same."""


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
        correlation, _ = factorise(
            normal / scales / scales[:, None], 1.0, _JITTERS, "matrix of basis functions"
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
class Posterior(ABC):
    """A process given its observations, in the coordinates z of its kernel.

    Its mean is h(z) . beta + s^2 sum_i e_i (w_i + a_i . (x - c_i)), where x = z / l.
    """

    length_scales: FloatArray  # l (dim,)
    variance: float  # s^2
    centres: FloatArray  # c_i in x, (M, dim)
    weights: FloatArray  # w_i (M,)
    gradient_weights: FloatArray | None  # a_i (M, dim); None where no derivative is known
    design: FloatArray  # basis functions and derivatives (m, p), rotated as what is known
    profile: Profile  # the mean function
    jitter: float  # addition to the kernel matrix's diagonal, in units of s^2
    log_likelihood: float

    def variance_at(self, positions: FloatArray, features: FloatArray) -> FloatArray:
        """Return the variance (n,) of process and mean function at z (n, dim), h(z) (n, p)."""
        left, known = self._given_values(positions / self.length_scales)
        unknown = solve(self.profile.factor, features.T - self.design.T @ known)
        left += np.einsum("pn,pn->n", unknown, unknown)
        return np.asarray(np.maximum(left, 0.0))

    @abstractmethod
    def _given_values(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variance (n,) at x with known coefficients, and what is known (m, n)."""


@attrs.frozen(kw_only=True, eq=False)
class ExactPosterior(Posterior):
    """A Gaussian process given values, and derivatives at some of the positions.

    Rasmussen and Williams 2006, equations (2.25), (2.41).
    """

    gradient_rows: IntArray  # the k centres at which derivatives are known
    factor: FloatArray  # lower Cholesky factor of the covariance of all m equations
    dual: FloatArray  # covariance^-1 (targets - mean function), (m,)

    @classmethod
    def of(cls, observations: Observations, hyperparameters: Hyperparameters) -> ExactPosterior:
        """Return the process given observations."""
        return _condition(observations, hyperparameters)[0]

    def _given_values(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        cross = cross_matrix(scaled, self.centres, self.gradient_rows)
        cross *= self.variance
        known = solve(self.factor, cross.T)
        return self.variance - np.einsum("mn,mn->n", known, known), known


def exact_likelihood(observations: Observations, hyperparameters: Hyperparameters) -> Likelihood:
    """Return the log marginal likelihood of a full process with its derivatives.

    One Cholesky factorisation and one inverse; all else is matrix products (Rasmussen and
    Williams 2006, equation (5.9), with the mean function integrated out).

    Raises
    ------
    SurrogateFitError
        If the covariance cannot be factorised.
    """
    posterior, matrix = _condition(observations, hyperparameters)
    rows, variance = observations.gradient_rows, posterior.variance
    # K^-1 H L_A^-T; its outer product is what integrating the coefficients takes off K^-1.
    spread = solve(posterior.factor, posterior.design, transposed=True)
    spread = solve(posterior.profile.factor, spread.T).T
    adjoint = inverse_of(posterior.factor)
    low_rank = np.column_stack([posterior.dual, spread])
    np.subtract(low_rank @ low_rank.T, adjoint, out=adjoint)
    adjoint *= 0.5
    diagonal = np.diag(adjoint)
    by_scales = variance * scale_derivatives(adjoint, matrix, posterior.centres, rows)
    if len(rows):
        by_scales += _through_gradients(observations, posterior, spread)
    by_signal = np.einsum("ij,ij->", adjoint, matrix) + posterior.jitter * diagonal.sum()
    by_noise = hyperparameters.noise_sd**2 * (diagonal @ observations.noise_shares())
    derivatives = np.array([*by_scales, 2.0 * variance * by_signal, 2.0 * by_noise])
    return posterior.log_likelihood, derivatives


def _condition(
    observations: Observations, hyperparameters: Hyperparameters
) -> tuple[ExactPosterior, FloatArray]:
    """Return the posterior, and the kernel matrix of its equations in x with unit variance."""
    n, dim, rows = len(observations), observations.rows.dim, observations.gradient_rows
    scales, variance = hyperparameters.scales(dim), hyperparameters.signal_sd**2
    scaled = observations.rows.positions / scales
    matrix = joint_matrix(scaled, rows)
    covariance = variance * matrix
    covariance[np.diag_indices_from(covariance)] += observations.noise(hyperparameters.noise_sd)
    factor, jitter = factorise(covariance, variance)
    design = solve(factor, observations.design(scales))
    profile = Profile.of(design, solve(factor, observations.targets(scales)))
    dual = solve(factor, profile.residual, transposed=True)
    gradient_weights = None
    if len(rows):
        gradient_weights = np.zeros_like(scaled)
        gradient_weights[rows] = dual[n:].reshape(dim, -1).T
    log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    # derivatives in x are l times as large as those observed
    log_jacobian = len(rows) * float(np.log(scales).sum())
    likelihood = profile.log_likelihood(observations.n_equations, log_determinant)
    posterior = ExactPosterior(
        length_scales=scales,
        variance=variance,
        centres=scaled,
        weights=dual[:n],
        gradient_weights=gradient_weights,
        design=design,
        profile=profile,
        jitter=jitter,
        log_likelihood=likelihood + log_jacobian,
        gradient_rows=rows,
        factor=factor,
        dual=dual,
    )
    return posterior, matrix


def _through_gradients(
    observations: Observations, posterior: ExactPosterior, spread: FloatArray
) -> FloatArray:
    """Return the derivative by log l_k that comes through derivatives being l_k times as large."""
    n, scales = len(observations), posterior.length_scales
    design = observations.design(scales)[n:]
    left = observations.targets(scales)[n:] - design @ posterior.profile.coefficients
    rotated = solve(posterior.profile.factor, design.T).T
    by_equation = 1.0 - posterior.dual[n:] * left
    by_equation -= np.einsum("rp,rp->r", spread[n:], rotated)
    return np.asarray(by_equation.reshape(len(scales), -1).sum(axis=1))
