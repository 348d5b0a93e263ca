"""The full process conditioned on its observations."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.kernel.cholesky import factorise, inverse_of, solve
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.kernel.joint import cross_matrix, joint_matrix, scale_derivatives
from surrokit_gp.kernel.kernel import SquaredExponential
from surrokit_gp.posterior.likelihood import Likelihood, Profile
from surrokit_gp.posterior.posterior import Posterior


@attrs.frozen(kw_only=True, eq=False)
class ExactPosterior(Posterior):
    """A Gaussian process given values, and derivatives at some of the positions.

    Its mean is h(z) . beta + sum_n k(z, z_n) w_n, with further terms for derivatives (Rasmussen
    and Williams 2006, equations (2.25), (2.41)).

    Parameters
    ----------
    scaled : ndarray of shape (n, dim)
        x = z / l of the observations.
    slope_rows : ndarray of shape (k,)
        Where derivatives are known.
    factor : ndarray of shape (m, m)
        Lower Cholesky factor of the covariance of all m equations.
    dual : ndarray of shape (m,)
        Covariance^-1 (targets - mean function).
    design : ndarray of shape (m, p)
        Basis functions and derivatives, rotated by the inverse of the factor.
    jitter
        What was added to the covariance's diagonal, in units of the signal's variance.
    """

    scaled: FloatArray
    slope_rows: IntArray
    factor: FloatArray
    dual: FloatArray

    @classmethod
    def of(cls, observations: Observations, hyperparameters: Hyperparameters) -> ExactPosterior:
        """Return the process given observations.

        Raises
        ------
        SurrogateFitError
            If the covariance cannot be factorised.
        """
        return _condition(observations, hyperparameters)[0]

    @property
    def centres(self) -> FloatArray:
        """Centres of the mean in the coordinates z, shape (n, dim)."""
        return self.scaled * self.kernel.length_scales

    @property
    def weights(self) -> FloatArray:
        """w, shape (n,)."""
        return self.dual[: len(self.scaled)]

    @property
    def slope_weights(self) -> FloatArray | None:
        """Weights of derivatives of the kernel in x', shape (n, dim); None where none is known."""
        if not len(self.slope_rows):
            return None
        weights = np.zeros_like(self.scaled)
        weights[self.slope_rows] = self.dual[len(self.scaled) :].reshape(weights.shape[1], -1).T
        return weights

    def variance(self, positions: FloatArray, features: FloatArray) -> FloatArray:
        """Return the variance of the process and its mean function, shape (n,)."""
        cross = cross_matrix(positions / self.kernel.length_scales, self.scaled, self.slope_rows)
        cross *= self.kernel.variance
        known = solve(self.factor, cross.T)
        left = self.kernel.variance - np.einsum("mn,mn->n", known, known)
        return self.with_mean(left, known, features)


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
    dual, profile = posterior.dual, posterior.profile
    # K^-1 H L_A^-T; its outer product is what integrating the coefficients takes off K^-1.
    spread = solve(profile.factor, solve(posterior.factor, posterior.design, transposed=True).T).T
    adjoint = inverse_of(posterior.factor)
    low_rank = np.column_stack([dual, spread])
    np.subtract(low_rank @ low_rank.T, adjoint, out=adjoint)
    adjoint *= 0.5
    variance, diagonal = posterior.kernel.variance, np.diag(adjoint)
    by_scales = variance * scale_derivatives(
        adjoint, matrix, posterior.scaled, observations.slope_rows
    )
    if len(observations.slope_rows):
        by_scales += _through_slopes(observations, posterior, spread)
    return Likelihood(
        value=posterior.log_likelihood,
        length_scales=by_scales,
        signal=2.0
        * variance
        * float(np.einsum("ij,ij->", adjoint, matrix) + posterior.jitter * diagonal.sum()),
        noise=2.0 * hyperparameters.noise_sd**2 * float(diagonal @ observations.noise_shares()),
    )


def _condition(
    observations: Observations, hyperparameters: Hyperparameters
) -> tuple[ExactPosterior, FloatArray]:
    """Return the posterior, and the kernel matrix of its equations in x with unit variance."""
    kernel = SquaredExponential.of(hyperparameters, observations.dim)
    scales = kernel.length_scales
    scaled = observations.positions / scales
    matrix = joint_matrix(scaled, observations.slope_rows)
    covariance = kernel.variance * matrix
    covariance[np.diag_indices_from(covariance)] += observations.noise(hyperparameters.noise_sd)
    factor, jitter = factorise(covariance, kernel.variance)
    design = solve(factor, observations.design(scales))
    profile = Profile.of(design, solve(factor, observations.targets(scales)))
    posterior = ExactPosterior(
        kernel=kernel,
        scaled=scaled,
        slope_rows=observations.slope_rows,
        factor=factor,
        design=design,
        profile=profile,
        dual=solve(factor, profile.residual, transposed=True),
        jitter=jitter,
        log_likelihood=profile.log_likelihood(
            observations.n_equations,
            2.0 * float(np.log(np.diag(factor)).sum()),
            len(observations.slope_rows) * float(np.log(scales).sum()),
        ),
    )
    return posterior, matrix


def _through_slopes(
    observations: Observations, posterior: ExactPosterior, spread: FloatArray
) -> FloatArray:
    """Return the derivative in log l_k that comes through derivatives being l_k times as large."""
    n, dim, scales = len(observations), observations.dim, posterior.kernel.length_scales
    design = observations.design(scales)[n:]
    left = observations.targets(scales)[n:] - design @ posterior.coefficients
    rotated = solve(posterior.profile.factor, design.T).T
    by_equation = 1.0 - posterior.dual[n:] * left
    by_equation -= np.einsum("rp,rp->r", spread[n:], rotated)
    return np.asarray(by_equation.reshape(dim, -1).sum(axis=1))
