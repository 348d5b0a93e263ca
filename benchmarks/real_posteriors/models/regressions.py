"""Linear regressions of posteriordb, in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from real_posteriors.models.distributions import cauchy, normal

Data: TypeAlias = Mapping[str, Any]
Density: TypeAlias = Callable[[jax.Array], jax.Array]
"""Log density of one position, shape (dim,)."""


def _flat(sigma: jax.Array) -> jax.Array:
    return jnp.zeros_like(sigma)


def _linear(columns: list[Any], response: Any, prior: Density = _flat) -> Density:
    """Return the density of coefficients, the constant first, and sigma with its prior."""
    design = jnp.column_stack([jnp.ones(len(response)), *(np.asarray(x, float) for x in columns)])
    y = jnp.asarray(response, float)

    def log_density(q: jax.Array) -> jax.Array:
        return normal(y, design @ q[:-1], q[-1]) + prior(q[-1])

    return log_density


def earnings(data: Data) -> Density:
    """Return the density of ``earn_height``."""
    return _linear([data["height"]], data["earn"])


def log_earnings(data: Data) -> Density:
    """Return the density of ``logearn_height_male``."""
    return _linear([data["height"], data["male"]], np.log(data["earn"]))


def interaction(data: Data) -> Density:
    """Return the density of ``kidscore_interaction``."""
    school, iq = np.array(data["mom_hs"]), np.array(data["mom_iq"])
    return _linear([school, iq, school * iq], data["kid_score"], lambda s: cauchy(s, 2.5))


def centred_interaction(data: Data) -> Density:
    """Return the density of ``kidscore_interaction_c2``."""
    school, iq = np.array(data["mom_hs"]) - 0.5, np.array(data["mom_iq"]) - 100.0
    return _linear([school, iq, school * iq], data["kid_score"])


def mothers_work(data: Data) -> Density:
    """Return the density of ``kidscore_mom_work``."""
    work = np.array(data["mom_work"])
    return _linear([work == kind for kind in (2, 3, 4)], data["kid_score"])


def temperatures(data: Data) -> Density:
    """Return the density of ``kilpisjarvi``."""
    likelihood = _linear([data["x"]], data["y"])

    def log_density(q: jax.Array) -> jax.Array:
        prior = normal(q[0], data["pmualpha"], data["psalpha"])
        return likelihood(q) + prior + normal(q[1], data["pmubeta"], data["psbeta"])

    return log_density


def log_mesquite(data: Data) -> Density:
    """Return the density of ``logmesquite_logvash``."""
    wide, narrow, high = (np.array(data[x]) for x in ("diam1", "diam2", "canopy_height"))
    products = (wide * narrow * high, wide * narrow, wide / narrow, np.array(data["total_height"]))
    return _linear([*map(np.log, products), data["group"]], np.log(data["weight"]))


def mesquite(data: Data) -> Density:
    """Return the density of ``mesquite``."""
    names = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
    return _linear([data[name] for name in names], data["weight"])
