"""Log densities of single distributions, in JAX, summed and without constants."""

from __future__ import annotations

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def normal(x: jax.Array, mean: jax.Array | float, sd: jax.Array | float) -> jax.Array:
    """Return the sum over all elements of x, however mean and sd fit them."""
    scores = (x - mean) / sd
    return -0.5 * jnp.sum(scores**2) - jnp.sum(jnp.log(sd) * jnp.ones_like(scores))


def cauchy(x: jax.Array, scale: float) -> jax.Array:
    """Return it about zero; of a positive number it is the half of that, up to a constant."""
    return -jnp.log1p((x / scale) ** 2)


def student_t(x: jax.Array, freedom: float, mean: float, scale: float) -> jax.Array:
    """Return it for a number."""
    return -0.5 * (freedom + 1.0) * jnp.log1p(((x - mean) / scale) ** 2 / freedom)


def inverse_gamma(x: jax.Array, shape: float, scale: float) -> jax.Array:
    """Return it for a positive number."""
    return -(shape + 1.0) * jnp.log(x) - scale / x


def lognormal(x: jax.Array, log_median: jax.Array | float, sd: jax.Array | float) -> jax.Array:
    """Return the sum over all elements of positive x."""
    return normal(jnp.log(x), log_median, sd) - jnp.sum(jnp.log(x))
