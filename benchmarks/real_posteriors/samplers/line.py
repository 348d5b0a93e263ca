"""A log density on the whole line, in JAX, for samplers that know no bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import jax
import jax.numpy as jnp
import numpy as np

from real_posteriors.targets import Posterior
from surrokit.types import FloatArray

WIDTH_OF_STARTS = 2.0
"""Starts are uniform in plus and minus this, as those of Stan and NumPyro are."""

TRIES = 100


@attrs.frozen(kw_only=True, eq=False)
class Line:
    """The transformations that surrokit has, written in JAX."""

    lower: FloatArray
    upper: FloatArray
    log_density: Callable[[jax.Array], jax.Array]

    @classmethod
    def of(cls, posterior: Posterior) -> Line:
        """Read bounds and density of a posterior."""
        lower, upper = posterior.case.declared.bounds()
        return cls(lower=lower, upper=upper, log_density=posterior.log_density())

    def to_bounded(self, z: Any) -> Any:
        """Return positions (..., dim) in the user's coordinates."""
        below, between = np.isfinite(self.lower), np.isfinite(self.upper)
        lower = np.where(below, self.lower, 0.0)
        width = np.where(between, self.upper - lower, 1.0)
        inside = lower + width * jax.nn.sigmoid(z)
        # the exponential of what needs none must not overflow: its derivative would be no number
        positive = lower + jnp.exp(jnp.where(below, z, 0.0))
        return jnp.where(between, inside, jnp.where(below, positive, z))

    def __call__(self, z: jax.Array) -> jax.Array:
        """Return the log density of one position (dim,) on the line, its Jacobian included."""
        below, between = np.isfinite(self.lower), np.isfinite(self.upper)
        of_positive = jnp.where(below & ~between, z, 0.0).sum()
        logistic = jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z)
        return self.log_density(self.to_bounded(z)) + of_positive + (logistic * between).sum()

    def starts(self, n: int, seed: int) -> FloatArray:
        """Return n starts where density and gradient are finite, as Stan looks for them."""
        both = jax.jit(jax.value_and_grad(self.__call__))
        rng = np.random.default_rng(seed)
        return np.array([self._start(both, rng) for _ in range(n)])

    def _start(self, both: Any, rng: np.random.Generator) -> FloatArray:
        for _ in range(TRIES):
            z = rng.uniform(-WIDTH_OF_STARTS, WIDTH_OF_STARTS, len(self.lower))
            value, gradient = both(z)
            if np.isfinite(value) and np.isfinite(gradient).all():
                return z
        raise ArithmeticError(f"none of {TRIES} starts has a finite density")
