"""Eight schools, in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from real_posteriors.models.distributions import cauchy, normal
from real_posteriors.models.regressions import Data, Density


def schools(data: Data) -> Density:
    """Return the density of ``eight_schools_noncentered``: theta_trans, mu, tau."""
    y, sd = (jnp.asarray(data[name], float) for name in ("y", "sigma"))

    def log_density(q: jax.Array) -> jax.Array:
        standardised, mu, tau = q[:-2], q[-2], q[-1]
        prior = normal(standardised, 0.0, 1.0) + normal(mu, 0.0, 5.0) + cauchy(tau, 5.0)
        return prior + normal(y, standardised * tau + mu, sd)

    return log_density
