"""Time series of posteriordb, in JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from real_posteriors.models.distributions import cauchy, normal
from real_posteriors.models.regressions import Data, Density


def autoregression(data: Data) -> Density:
    """Return the density of ``arK``: alpha, K coefficients, sigma."""
    y, order = np.array(data["y"]), data["K"]
    lags = jnp.asarray(np.column_stack([y[order - k : -k] for k in range(1, order + 1)]))
    after = jnp.asarray(y[order:])

    def log_density(q: jax.Array) -> jax.Array:
        alpha, beta, sigma = q[0], q[1:-1], q[-1]
        prior = normal(alpha, 0.0, 10.0) + normal(beta, 0.0, 10.0) + cauchy(sigma, 2.5)
        return prior + normal(after, alpha + lags @ beta, sigma)

    return log_density


def moving_average(data: Data) -> Density:
    """Return the density of ``arma11``: mu, phi, theta, sigma."""
    y = jnp.asarray(data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        mu, phi, theta, sigma = q

        def step(error: jax.Array, pair: Any) -> Any:
            before, now = pair
            error = now - (mu + phi * before + theta * error)
            return error, error

        first = y[0] - (mu + phi * mu)
        _, errors = jax.lax.scan(step, first, (y[:-1], y[1:]))
        prior = normal(mu, 0.0, 10.0) + normal(phi, 0.0, 2.0) + normal(theta, 0.0, 2.0)
        likelihood = normal(first, 0.0, sigma) + normal(errors, 0.0, sigma)
        return prior + cauchy(sigma, 2.5) + likelihood

    return log_density


def hidden_states(data: Data) -> Density:
    """Return the density of ``hmm_example``.

    Coordinates are theta1[1], theta2[1], mu[1] and mu[2] - mu[1]; the Jacobian of the last is one.
    """
    y = jnp.asarray(data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        means = jnp.array([q[2], q[2] + q[3]])
        moves = jnp.log(jnp.array([[q[0], 1.0 - q[0]], [q[1], 1.0 - q[1]]]))
        emitted = -0.5 * (y[:, None] - means) ** 2

        def step(gamma: jax.Array, now: jax.Array) -> Any:
            return jax.nn.logsumexp(gamma[:, None] + moves, axis=0) + now, None

        last, _ = jax.lax.scan(step, emitted[0], emitted[1:])
        return normal(means, jnp.array([3.0, 10.0]), 1.0) + jax.nn.logsumexp(last)

    return log_density
