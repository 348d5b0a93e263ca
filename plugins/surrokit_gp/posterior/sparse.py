"""FITC: the process whose observations are independent given its values at inducing points."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.kernel.cholesky import factorise, solve
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.kernel.kernel import SquaredExponential, unit_matrix, weighed_squares
from surrokit_gp.posterior.likelihood import Likelihood, Profile
from surrokit_gp.posterior.posterior import Posterior

_JITTERS = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)
"""Relative jitters for K_M."""

_ROOM = 1e-9
"""Least square of a pivot of K_M, in units of the signal's variance.

K_M has no noise on its diagonal, and weights grow with the inverse of its least pivot. Jitter of
this size is far below the noise, and spares digits of the mean.
"""


@attrs.frozen(kw_only=True, eq=False)
class SparsePosterior(Posterior):
    """FITC given values (Snelson and Ghahramani 2006; section 3.3 of the paper).

    Its mean is h(z) . beta + sum_i k(z, u_i) w_i over the M inducing points u_i. With V = L^-1
    K_MN, L L^T = K_M, D = Lambda + noise and C C^T = I + V D^-1 V^T, the matrix Sigma_M of the
    paper is L C C^T L^T; so nothing larger than M x N is formed, and L and C are well conditioned
    where K_M and Sigma_M are not.

    Parameters
    ----------
    scaled_inducing : ndarray of shape (M, dim)
        x = u / l of the inducing points.
    inducing_factor : ndarray of shape (M, M)
        L, lower triangular.
    inner_factor : ndarray of shape (M, M)
        C, lower triangular.
    design : ndarray of shape (M, p)
        C^-T C^-1 V D^-1 H, with H the basis functions.
    weights : ndarray of shape (M,)
        w.
    jitter
        What was added to the diagonal of K_M, in units of the signal's variance.
    """

    scaled_inducing: FloatArray
    inducing_factor: FloatArray
    inner_factor: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
    ) -> SparsePosterior:
        """Return the process given the values of observations; derivatives are not used.

        Parameters
        ----------
        observations
            What is known.
        hyperparameters
            Of the kernel and the noise.
        inducing : ndarray of shape (M, dim)
            u.

        Raises
        ------
        SurrogateFitError
            If K_M cannot be factorised.
        """
        return _condition(observations, hyperparameters, inducing)[0]

    @property
    def centres(self) -> FloatArray:
        """Centres of the mean in the coordinates z, shape (M, dim)."""
        return self.scaled_inducing * self.kernel.length_scales

    @property
    def slope_weights(self) -> None:
        """None: derivatives are not used."""
        return

    def variance(self, positions: FloatArray, features: FloatArray) -> FloatArray:
        """Return the variance of the process and its mean function, shape (n,)."""
        cross = unit_matrix(positions / self.kernel.length_scales, self.scaled_inducing)
        cross *= self.kernel.variance
        prior = solve(self.inducing_factor, cross.T)
        posterior = solve(self.inner_factor, prior)
        left = self.kernel.variance - np.einsum("mn,mn->n", prior, prior)
        left += np.einsum("mn,mn->n", posterior, posterior)
        return self.with_mean(left, prior, features)


@attrs.frozen(kw_only=True, eq=False)
class _Parts:
    """What the derivatives of the likelihood need beside the posterior.

    ``unit`` is K_MN / s^2, ``among`` K_M / s^2, ``projected`` V; ``noise_root`` the root of D,
    ``rotated`` C^-1 V D^-1/2, and ``left`` the part of D^-1/2 [H, t] that V D^-1/2 does not
    explain.
    """

    scaled: FloatArray
    unit: FloatArray
    among: FloatArray
    projected: FloatArray
    rotated: FloatArray
    noise_root: FloatArray
    left: FloatArray
    explained: FloatArray


def sparse_likelihood(
    observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
) -> Likelihood:
    """Return the log marginal likelihood of FITC with its derivatives, in O(M^2 N).

    With W = alpha alpha^T - P (P the inverse covariance less what integrating the coefficients
    takes off it), dL = tr(W dSigma) / 2. Off the diagonal Sigma changes with Q = K_NM K_M^-1 K_MN
    alone, so everything comes through F = K_M^-1 K_MN (W - diag W), of shape (M, N).

    Parameters
    ----------
    observations
        What is known.
    hyperparameters
        Of the kernel and the noise.
    inducing : ndarray of shape (M, dim)
        u.

    Raises
    ------
    SurrogateFitError
        If K_M cannot be factorised.
    """
    posterior, parts = _condition(observations, hyperparameters, inducing)
    kernel, profile = posterior.kernel, posterior.profile
    left = parts.left[:, :-1] / parts.noise_root[:, None]
    dual = parts.left[:, -1] / parts.noise_root - left @ profile.coefficients
    spread = solve(profile.factor, left.T)
    own = np.square(dual) + np.einsum("pn,pn->n", spread, spread)
    own -= (1.0 - np.einsum("mn,mn->n", parts.rotated, parts.rotated)) / parts.noise_root**2
    forces = _forces(posterior, parts, dual, spread, own)
    across = forces * parts.unit
    among = solve(posterior.inducing_factor, (forces @ parts.projected.T).T, transposed=True)
    among *= parts.among
    among *= -0.5
    variance, scales = kernel.variance, kernel.length_scales
    x, centres = parts.scaled, posterior.scaled_inducing
    by_inducing = across @ x - across.sum(axis=1)[:, None] * centres
    by_inducing += 2.0 * (among @ centres - among.sum(axis=1)[:, None] * centres)
    total = across.sum() + among.sum() + 0.5 * own.sum()
    return Likelihood(
        value=posterior.log_likelihood,
        length_scales=variance
        * (weighed_squares(across, centres, x) + weighed_squares(among, centres, centres)),
        signal=2.0 * variance * float(total),
        noise=hyperparameters.noise_sd**2 * float(own @ (1.0 / observations.copies)),
        inducing=variance * by_inducing / scales,
    )


def _forces(
    posterior: SparsePosterior, parts: _Parts, dual: FloatArray, spread: FloatArray, own: FloatArray
) -> FloatArray:
    """Return F, shape (M, N)."""
    inner = solve(posterior.inner_factor, parts.rotated, transposed=True)
    inner /= -parts.noise_root
    inner += (parts.explained[:, -1] - posterior.design @ posterior.coefficients)[:, None] * dual
    inner += solve(posterior.profile.factor, posterior.design.T).T @ spread
    inner -= parts.projected * own
    return solve(posterior.inducing_factor, inner, transposed=True)


def _condition(
    observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
) -> tuple[SparsePosterior, _Parts]:
    kernel = SquaredExponential.of(hyperparameters, observations.dim)
    x, centres = observations.positions / kernel.length_scales, inducing / kernel.length_scales
    among, unit = unit_matrix(centres, centres), unit_matrix(centres, x)
    factor, jitter = _inducing_factor(kernel, among)
    among[np.diag_indices_from(among)] += jitter
    projected = solve(factor, kernel.variance * unit)
    root = np.sqrt(_independent(kernel, projected, observations.noise(hyperparameters.noise_sd)))
    whitened = projected / root
    inner = whitened @ whitened.T
    inner[np.diag_indices_from(inner)] += 1.0
    inner_factor, _ = factorise(inner, 1.0)
    rotated = solve(inner_factor, whitened)
    known = np.column_stack([observations.basis, observations.values]) / root[:, None]
    explained = solve(inner_factor, rotated @ known, transposed=True)
    left = known - whitened.T @ explained
    # y^T (I + V D^-1 V^T)^-1 y is the least of |y - V^T u|^2 + |u|^2: two squares, no difference
    features = np.concatenate([left, explained])
    profile = Profile.of(features[:, :-1], features[:, -1])
    determinant = 2.0 * float(np.log(root).sum() + np.log(np.diag(inner_factor)).sum())
    weights = explained[:, -1] - explained[:, :-1] @ profile.coefficients
    posterior = SparsePosterior(
        kernel=kernel,
        scaled_inducing=centres,
        inducing_factor=factor,
        inner_factor=inner_factor,
        design=explained[:, :-1],
        profile=profile,
        weights=solve(factor, weights, transposed=True),
        jitter=jitter,
        log_likelihood=profile.log_likelihood(len(observations), determinant, 0.0),
    )
    parts = _Parts(
        scaled=x,
        unit=unit,
        among=among,
        projected=projected,
        rotated=rotated,
        noise_root=root,
        left=left,
        explained=explained,
    )
    return posterior, parts


def _inducing_factor(kernel: SquaredExponential, among: FloatArray) -> tuple[FloatArray, float]:
    """Return the Cholesky factor of K_M, and its jitter."""
    what = "kernel matrix of inducing points"
    return factorise(kernel.variance * among, kernel.variance, _JITTERS, what, _ROOM)


def _independent(
    kernel: SquaredExponential, projected: FloatArray, noise: FloatArray
) -> FloatArray:
    """Return D = Lambda + noise, shape (N,), from V and the noise of at least N equations."""
    lost = kernel.variance - np.einsum("mn,mn->n", projected, projected)
    independent = np.maximum(lost, 0.0) + noise[: len(lost)]
    # never quite without noise: a value met exactly has infinite weight
    return np.asarray(np.maximum(independent, 1e-14 * kernel.variance))
