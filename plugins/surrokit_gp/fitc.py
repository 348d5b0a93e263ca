"""FITC: the process whose values are independent given those at M inducing points.

The fully independent training conditional of Snelson and Ghahramani (2006); section 3.3 of the
paper. Its mean is h(z) . beta + sum_i k(z, u_i) w_i over the inducing points u_i. With
L L^T = K_M, V = L^-1 K_MN, D = Lambda + noise and C C^T = I + V D^-1 V^T, the matrix Sigma_M of the
paper is L C C^T L^T; so nothing larger than M x N is formed, and L and C are well conditioned where
K_M and Sigma_M are not.
"""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_gp.exact import Posterior, Profile
from surrokit_gp.hyperparameters import Hyperparameters, Likelihood
from surrokit_gp.kernels import factorise, solve, unit_matrix, weighted_squares
from surrokit_gp.observations import Observations

Inducing: TypeAlias = Literal["data", "k-means++", "optimised"]
"""How inducing points are found: drawn from the training points, spread over them, or moved from
there to where the marginal likelihood is largest."""

# K_M has no noise on its diagonal, and weights grow with the inverse of its least pivot. A jitter
# as large as the least square of a pivot, relative to s^2, is far below the noise, and keeps digits
_JITTERS, _ROOM = (0.0, 1e-9, 1e-8, 1e-7, 1e-6), 1e-9


@attrs.frozen(kw_only=True, eq=False)
class SparsePosterior(Posterior):
    """FITC given values.

    The factors (M, M) are L and C; the design is C^-T C^-1 V D^-1 H, with H the basis functions.
    """

    inducing_factor: FloatArray
    inner_factor: FloatArray

    @classmethod
    def of(
        cls, observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
    ) -> SparsePosterior:
        """Return the process given values, not gradients, with inducing points (M, dim)."""
        return _condition(observations, hyperparameters, inducing)[0]

    def _given_values(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        cross = unit_matrix(scaled, self.centres)
        cross *= self.variance
        prior = solve(self.inducing_factor, cross.T)
        posterior = solve(self.inner_factor, prior)
        left = self.variance - np.einsum("mn,mn->n", prior, prior)
        return left + np.einsum("mn,mn->n", posterior, posterior), prior


@attrs.frozen(eq=False)
class _Parts:
    """What the derivatives of the likelihood need beside the posterior."""

    scaled: FloatArray  # x
    unit: FloatArray  # K_MN / s^2
    among: FloatArray  # K_M / s^2
    projected: FloatArray  # V
    rotated: FloatArray  # C^-1 V D^-1/2
    noise_root: FloatArray  # D^1/2
    left: FloatArray  # the part of D^-1/2 [H, t] that V D^-1/2 does not explain
    explained: FloatArray  # coefficients of the part that it does


def sparse_likelihood(
    observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
) -> Likelihood:
    """Return the log marginal likelihood of FITC with its derivatives, in O(M^2 N).

    With W = alpha alpha^T - P (P the inverse covariance less what integrating the coefficients
    takes off it), dL = tr(W dSigma) / 2. Off the diagonal Sigma changes with Q = K_NM K_M^-1 K_MN
    alone, so everything comes through F = K_M^-1 K_MN (W - diag W), of shape (M, N).

    Raises
    ------
    SurrogateFitError
        If K_M cannot be factorised.
    """
    posterior, parts = _condition(observations, hyperparameters, inducing)
    profile, root = posterior.profile, parts.noise_root
    left = parts.left[:, :-1] / root[:, None]
    dual = parts.left[:, -1] / root - left @ profile.coefficients
    spread = solve(profile.factor, left.T)
    own = np.square(dual) + np.einsum("pn,pn->n", spread, spread)
    own -= (1.0 - np.einsum("mn,mn->n", parts.rotated, parts.rotated)) / root**2
    inner = solve(posterior.inner_factor, parts.rotated, transposed=True)
    inner /= -root
    inner += (parts.explained[:, -1] - posterior.design @ profile.coefficients)[:, None] * dual
    inner += solve(profile.factor, posterior.design.T).T @ spread
    inner -= parts.projected * own
    forces = solve(posterior.inducing_factor, inner, transposed=True)  # F
    across = forces * parts.unit
    among = solve(posterior.inducing_factor, (forces @ parts.projected.T).T, transposed=True)
    among *= parts.among
    among *= -0.5
    variance, scales = posterior.variance, posterior.length_scales
    x, centres = parts.scaled, posterior.centres
    by_inducing = across @ x - across.sum(axis=1)[:, None] * centres
    by_inducing += 2.0 * (among @ centres - among.sum(axis=1)[:, None] * centres)
    squares = weighted_squares(across, centres, x) + weighted_squares(among, centres, centres)
    by_signal = across.sum() + among.sum() + 0.5 * own.sum()
    by_noise = hyperparameters.noise_sd**2 * (own @ (1.0 / observations.rows.copies))
    derivatives = [variance * squares, [2.0 * variance * by_signal, by_noise]]
    by_inducing *= variance / scales
    return posterior.log_likelihood, np.concatenate([*derivatives, by_inducing.ravel()])


def _condition(
    observations: Observations, hyperparameters: Hyperparameters, inducing: FloatArray
) -> tuple[SparsePosterior, _Parts]:
    scales, variance = hyperparameters.scales(observations.rows.dim), hyperparameters.signal_sd**2
    x, centres = observations.rows.positions / scales, inducing / scales
    among, unit = unit_matrix(centres, centres), unit_matrix(centres, x)
    what = "kernel matrix of inducing points"
    factor, jitter = factorise(variance * among, variance, _JITTERS, what, _ROOM)
    among[np.diag_indices_from(among)] += jitter
    projected = solve(factor, variance * unit)
    lost = np.maximum(variance - np.einsum("mn,mn->n", projected, projected), 0.0)
    independent = lost + observations.noise(hyperparameters.noise_sd)[: len(lost)]
    # never quite without noise: a value met exactly has infinite weight
    root = np.sqrt(np.maximum(independent, 1e-14 * variance))
    whitened = projected / root
    inner = whitened @ whitened.T
    inner[np.diag_indices_from(inner)] += 1.0
    inner_factor, _ = factorise(inner, 1.0)
    rotated = solve(inner_factor, whitened)
    known = np.column_stack([observations.basis, observations.rows.values]) / root[:, None]
    explained = solve(inner_factor, rotated @ known, transposed=True)
    left = known - whitened.T @ explained
    # y^T (I + V D^-1 V^T)^-1 y is the least of |y - V^T u|^2 + |u|^2: two squares, no difference
    features = np.concatenate([left, explained])
    profile = Profile.of(features[:, :-1], features[:, -1])
    determinant = 2.0 * float(np.log(root).sum() + np.log(np.diag(inner_factor)).sum())
    weights = explained[:, -1] - explained[:, :-1] @ profile.coefficients
    posterior = SparsePosterior(
        length_scales=scales,
        variance=variance,
        centres=centres,
        weights=solve(factor, weights, transposed=True),
        gradient_weights=None,
        design=explained[:, :-1],
        profile=profile,
        jitter=jitter,
        log_likelihood=profile.log_likelihood(len(observations), determinant),
        inducing_factor=factor,
        inner_factor=inner_factor,
    )
    parts = _Parts(x, unit, among, projected, rotated, root, left, explained)
    return posterior, parts


def inducing_points(
    kind: Inducing, positions: FloatArray, number: int | None, rng: np.random.Generator
) -> FloatArray:
    """Return inducing points, shape (M, dim), to begin with.

    ``"data"`` draws M of the distinct positions (n, dim); the others are centres of k-means from
    the seeds of Arthur and Vassilvitskii (2007). The Nystrom error that inducing points leave is
    bounded by the squared distances that this makes small (Zhang, Tsang and Kwok 2008). M None is
    half of the points, and at most 300: the price of a fit grows with its square.

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
