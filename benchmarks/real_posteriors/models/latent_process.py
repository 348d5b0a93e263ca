"""Gaussian processes by basis functions: the motorcycle accelerations, in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from real_posteriors.models.distributions import inverse_gamma, normal, student_t
from real_posteriors.models.regressions import Data, Density


def accelerations(data: Data) -> Density:
    """Return the density of ``accel_gp``.

    Two processes, one for the mean and one for the log sd, each with intercept, sd, length scale
    and the weights of its basis.
    """
    y = jnp.asarray(data["Y"])
    bases = [jnp.asarray(data[f"Xgp{part}_1"]) for part in ("", "_sigma")]
    waves = [jnp.asarray(data[f"slambda{part}_1"])[:, 0] for part in ("", "_sigma")]
    first = 3 + bases[0].shape[1]

    def process(q: jax.Array, part: int) -> jax.Array:
        intercept, sd, scale, weights = q[0], q[1], q[2], q[3:]
        # the root is written out: where a wave's part underflows, sqrt(0) has no derivative
        root = (
            sd * jnp.sqrt(np.sqrt(2 * np.pi) * scale) * jnp.exp(-((scale * waves[part] / 2) ** 2))
        )
        return intercept + bases[part] @ (root * weights)

    def prior(q: jax.Array, location: float, scale: float) -> jax.Array:
        of_length = inverse_gamma(q[2], 1.124909, 0.0177)
        of_sizes = student_t(q[0], 3.0, location, scale) + student_t(q[1], 3.0, 0.0, 36.0)
        return of_sizes + of_length + normal(q[3:], 0.0, 1.0)

    def log_density(q: jax.Array) -> jax.Array:
        mean, noise = q[:first], q[first:]
        likelihood = normal(y, process(mean, 0), jnp.exp(process(noise, 1)))
        return prior(mean, -13.0, 36.0) + prior(noise, 0.0, 10.0) + likelihood

    return log_density
