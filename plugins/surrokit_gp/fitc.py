"""FITC: the process whose values are independent given those at M inducing points.

The fully independent training conditional of Snelson and Ghahramani (2006); section 3.3 of the
paper. Its mean is h(z) . beta + sum_i k(z, u_i) w_i over the inducing points u_i. With
L L^T = K_M, V = L^-1 K_MN, D = Lambda + noise and C C^T = I + V D^-1 V^T, the matrix Sigma_M of the
paper is L C C^T L^T; so nothing larger than M x N is formed, and L and C are well conditioned where
K_M and Sigma_M are not.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray, IntArray
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

_ROUNDS = 10  # of k-means at most


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


@attrs.frozen(kw_only=True, eq=False)
class _Parts:
    """What the derivatives of the likelihood need beside the posterior.

    ``scaled`` is x, ``unit`` K_MN / s^2, ``among`` K_M / s^2, ``projected`` V; ``noise_root`` the
    root of D, ``rotated`` C^-1 V D^-1/2, ``left`` the part of D^-1/2 [H, t] that V D^-1/2 does not
    explain, and ``explained`` the coefficients of the part that it does.
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
    forces = _forces(posterior, parts, dual, spread, own)
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


def _forces(
    posterior: SparsePosterior, parts: _Parts, dual: FloatArray, spread: FloatArray, own: FloatArray
) -> FloatArray:
    """Return F, shape (M, N)."""
    profile = posterior.profile
    inner = solve(posterior.inner_factor, parts.rotated, transposed=True)
    inner /= -parts.noise_root
    inner += (parts.explained[:, -1] - posterior.design @ profile.coefficients)[:, None] * dual
    inner += solve(profile.factor, posterior.design.T).T @ spread
    inner -= parts.projected * own
    return solve(posterior.inducing_factor, inner, transposed=True)


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
    root = _noise_root(variance, projected, observations.noise(hyperparameters.noise_sd))
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


def _noise_root(variance: float, projected: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the root of D, shape (N,), from V and the noise of at least N equations."""
    lost = variance - np.einsum("mn,mn->n", projected, projected)
    independent = np.maximum(lost, 0.0) + noise[: len(lost)]
    # never quite without noise: a value met exactly has infinite weight
    return np.asarray(np.sqrt(np.maximum(independent, 1e-14 * variance)))


def default_number(dim: int, n_points: int) -> int:
    """Return M where it is no setting: half of the points, and at most 300.

    The price of a fit grows with its square.
    """
    return min(n_points, 300, max(n_points // 2, dim + 2))


def inducing_points(
    kind: Inducing, positions: FloatArray, number: int | None, rng: np.random.Generator
) -> FloatArray:
    """Return inducing points, shape (M, dim), to begin with.

    ``"data"`` draws M of the distinct positions (n, dim); the others spread M centres by k-means.
    The number M is chosen where it is None.

    Raises
    ------
    SurrogateFitError
        If there are fewer positions than inducing points.
    """
    n, dim = positions.shape
    number = default_number(dim, n) if number is None else number
    if number > n:
        raise SurrogateFitError(
            f"n_inducing={number} inducing points cannot be found among {n} distinct training "
            f"points; explore for longer, set n_inducing to {n} or less, or leave it None"
        )
    if kind == "data":
        return positions[np.sort(rng.choice(n, size=number, replace=False))]
    return k_means(positions, number, rng)


def k_means(positions: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Return the centres of so many clusters of distinct positions (n, dim), shape (number, dim).

    Seeds are drawn with probability proportional to the squared distance from those before (Arthur
    and Vassilvitskii 2007), then moved to the means of what is nearest (Lloyd 1982). The Nystrom
    error that inducing points leave is bounded by the squared distances that this makes small
    (Zhang, Tsang and Kwok 2008).
    """
    centres = _seeds(positions, number, rng)
    nearest = np.full(len(positions), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, _nearest(positions, centres)
        if (before == nearest).all():
            break
        counts = np.bincount(nearest, minlength=number)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, positions)
        filled = counts > 0
        centres[filled] = sums[filled] / counts[filled, None]
    return centres


def _seeds(positions: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    chosen = np.empty(number, dtype=np.int64)
    chosen[0] = rng.integers(len(positions))
    least = _squares(positions, positions[chosen[0]])
    for i in range(1, number):
        summed = np.cumsum(least)
        # the last positive increment bounds what rounding can choose
        place = int(np.searchsorted(summed, rng.random() * summed[-1], side="right"))
        chosen[i] = min(place, int(np.flatnonzero(least)[-1]))
        np.minimum(least, _squares(positions, positions[chosen[i]]), out=least)
    return positions[chosen]


def _squares(positions: FloatArray, centre: FloatArray) -> FloatArray:
    away = positions - centre
    return np.asarray(np.einsum("nd,nd->n", away, away))


def _nearest(positions: FloatArray, centres: FloatArray) -> IntArray:
    half = 0.5 * np.einsum("md,md->m", centres, centres)
    return np.asarray((half - positions @ centres.T).argmin(axis=1))
