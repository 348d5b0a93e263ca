"""U and its gradient, written by hand for rows of positions: five posteriors that need no JAX.

Each function takes the data, and returns a function from positions (n, dim) in the user's
coordinates to U (n,) and its gradient (n, dim)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from scipy.signal import lfilter

from surrokit.types import FloatArray

Data: TypeAlias = Mapping[str, Any]
ValueAndGradient: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def interaction(data: Data) -> ValueAndGradient:
    """Return U of ``kidscore_interaction``: four coefficients and sigma."""
    school, iq = (np.array(data[name], float) for name in ("mom_hs", "mom_iq"))
    design = np.column_stack([np.ones(len(iq)), school, iq, school * iq])
    return _linear(design, np.array(data["kid_score"], float), np.full(4, np.inf))


def autoregression(data: Data) -> ValueAndGradient:
    """Return U of ``arK``: alpha, K coefficients and sigma."""
    y, order = np.array(data["y"], float), int(data["K"])
    lags = [y[order - k : -k] for k in range(1, order + 1)]
    design = np.column_stack([np.ones(len(y) - order), *lags])
    return _linear(design, y[order:], np.full(order + 1, 10.0))


def _linear(design: FloatArray, response: FloatArray, prior_sd: FloatArray) -> ValueAndGradient:
    """Return U of coefficients with normal priors, and sigma with a Cauchy prior."""

    def value_and_gradient(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        beta, sigma = q[:, :-1], q[:, -1]
        residuals = response - beta @ design.T
        scaled = beta / prior_sd
        noise = _of_noise(residuals, sigma)
        value = noise[0] + 0.5 * np.square(scaled).sum(axis=1)
        of_beta = -(residuals @ design) / np.square(sigma)[:, None] + scaled / prior_sd
        return value, np.column_stack([of_beta, noise[1]])

    return value_and_gradient


def _of_noise(residuals: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return U of sigma, its prior Cauchy(0, 2.5), with residuals (n, m), and the derivative."""
    squares, n = np.square(residuals).sum(axis=1), residuals.shape[1]
    value = n * np.log(sigma) + 0.5 * squares / sigma**2 + np.log1p((sigma / 2.5) ** 2)
    return value, n / sigma - squares / sigma**3 + 2.0 * sigma / (2.5**2 + sigma**2)


def moving_average(data: Data) -> ValueAndGradient:
    """Return U of ``arma11``: mu, phi, theta and sigma."""
    y = np.array(data["y"], float)

    def errors(mu: float, phi: float, theta: float) -> FloatArray:
        """Return errors and their derivatives in the three, shape (4, T)."""
        before = np.append(mu, y[:-1])
        found = _recur(y - mu - phi * before, theta)
        by_mu = np.where(np.arange(len(y)) == 0, -1.0 - phi, -1.0)
        earlier = np.append(0.0, found[:-1])
        return np.array([found, *(_recur(x, theta) for x in (by_mu, -before, -earlier))])

    def value_and_gradient(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = np.array([errors(*row[:3]) for row in q]).reshape(len(q), 4, len(y))
        noise = _of_noise(found[:, 0], q[:, 3])
        scaled = q[:, :3] / np.array([10.0, 2.0, 2.0])
        value = noise[0] + 0.5 * np.square(scaled).sum(axis=1)
        by_errors = np.einsum("nt,nkt->nk", found[:, 0], found[:, 1:])
        gradient = by_errors / np.square(q[:, 3:]) + scaled / np.array([10.0, 2.0, 2.0])
        return value, np.column_stack([gradient, noise[1]])

    return value_and_gradient


def _recur(x: FloatArray, theta: float) -> FloatArray:
    """Return e with e_t = x_t - theta e_{t-1}."""
    found: FloatArray = lfilter([1.0], [1.0, theta], x)
    return found


def schools(data: Data) -> ValueAndGradient:
    """Return U of ``eight_schools_noncentered``: theta_trans, mu and tau."""
    y, sd = (np.array(data[name], float) for name in ("y", "sigma"))

    def value_and_gradient(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        standardised, mu, tau = q[:, :-2], q[:, -2], q[:, -1]
        scores = (standardised * tau[:, None] + mu[:, None] - y) / sd
        of_prior = np.square(standardised).sum(axis=1) + np.square(mu / 5.0)
        value = 0.5 * (np.square(scores).sum(axis=1) + of_prior) + np.log1p((tau / 5.0) ** 2)
        of_theta = scores / sd
        gradient = np.column_stack(
            [
                of_theta * tau[:, None] + standardised,
                of_theta.sum(axis=1) + mu / 25.0,
                (of_theta * standardised).sum(axis=1) + 2.0 * tau / (25.0 + tau**2),
            ]
        )
        return value, gradient

    return value_and_gradient


def hidden_states(data: Data) -> ValueAndGradient:
    """Return U of ``hmm_example``: theta1[1], theta2[1], mu[1] and mu[2] - mu[1].

    Derivatives of the likelihood are expected counts, by the forward and the backward pass.
    """
    y = np.array(data["y"], float)

    def value_and_gradient(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = np.column_stack([q[:, 2], q[:, 2] + q[:, 3]])
        moves = np.array([[q[:, 0], 1.0 - q[:, 0]], [q[:, 1], 1.0 - q[:, 1]]])  # from, to, row
        away = y[:, None, None] - means.T
        log_likelihood, pairs, states = _smooth(-0.5 * np.square(away), moves)
        beyond = means - np.array([3.0, 10.0])
        of_means = (states * away).sum(axis=0).T - beyond
        of_moves = pairs[:, 0] / moves[:, 0] - pairs[:, 1] / moves[:, 1]
        gradient = np.column_stack([of_moves.T, of_means.sum(axis=1), of_means[:, 1]])
        return 0.5 * np.square(beyond).sum(axis=1) - log_likelihood, -gradient

    return value_and_gradient


def _smooth(emitted: FloatArray, moves: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log likelihood, expected moves, and probabilities of states, given all data."""
    highest = emitted.max(axis=1)
    weights = np.exp(emitted - highest[:, None])
    ahead, scale = np.empty_like(weights), np.empty_like(highest)
    for t, weight in enumerate(weights):
        now = weight if t == 0 else weight * (ahead[t - 1][:, None] * moves).sum(axis=0)
        scale[t] = now.sum(axis=0)
        ahead[t] = now / scale[t]
    back, pairs = np.ones_like(weights), np.zeros_like(moves)
    for t in range(len(weights) - 1, 0, -1):
        onward = weights[t] * back[t] / scale[t]
        pairs += ahead[t - 1][:, None] * moves * onward
        back[t - 1] = (moves * onward).sum(axis=1)
    return (np.log(scale) + highest).sum(axis=0), pairs, ahead * back
