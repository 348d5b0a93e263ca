"""The maps from the line to parameters in JAX: within bounds, simplex, ordered, covariance.

They are those of :mod:`surrokit.coordinates`, so that draws come back by the maps that the density
was evaluated with; derivatives of any order follow. Each returns q as a vector, and the log of the
volume that it makes of a volume in z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError
from surrokit_jax.compiled import load_jax


def to_user(parameters: Parameters, z: Any) -> tuple[Any, Any]:
    """Return the user's position q, shape (n_user,), at z of shape (dim,), and the log Jacobian."""
    jnp = load_jax().numpy
    parts, logs, start = [], [], 0
    for name, spec in parameters.specs.items():
        part = z[start : start + spec.free]
        of: Any = spec.constraint
        if of is not None and of.name not in _MAPS:
            raise ConfigurationError(
                f"parameter {name!r} is constrained as {of.name}, of which there is no map in JAX; "
                f"there are bounds and {', '.join(_MAPS)}. Map other parameters in the density"
            )
        q, log = _between(spec, part) if of is None else _MAPS[of.name](of, part)
        parts.append(q)
        logs.append(log)
        start += spec.free
    return jnp.concatenate(parts), sum(logs)


def _between(spec: Parameter, z: Any) -> tuple[Any, Any]:
    """Return numbers between bounds, which stop at the last number inside."""
    jax = load_jax()
    jnp = jax.numpy
    lower, upper = spec.bounds
    if np.isinf(lower) and np.isinf(upper):
        return z, 0.0
    least, most = np.nextafter(lower, np.inf), np.nextafter(upper, -np.inf)
    tiny = np.finfo(np.float64).tiny  # the compiler takes smaller numbers for 0
    least = tiny if lower == 0.0 else least
    most = -tiny if upper == 0.0 else most
    if np.isinf(upper):
        return jnp.maximum(lower + jnp.exp(z), least), jnp.sum(z)
    if np.isinf(lower):
        return jnp.minimum(upper - jnp.exp(z), most), jnp.sum(z)
    width = upper - lower
    # from the nearer end, or the slope is lost at the upper one
    q = jnp.where(z < 0.0, lower + width * jax.nn.sigmoid(z), upper - width * jax.nn.sigmoid(-z))
    log = jnp.log(width) - jax.nn.softplus(z) - jax.nn.softplus(-z)
    return jnp.clip(q, least, most), jnp.sum(log)


def _simplex(constraint: Any, z: Any) -> tuple[Any, Any]:
    jax = load_jax()
    logs = np.log(constraint.to_bounded(np.eye(constraint.free)))
    basis = (logs - logs.mean(axis=1, keepdims=True)).T  # columns of its orthonormal basis
    q = jax.nn.log_softmax(basis @ z)
    return jax.numpy.exp(q), jax.numpy.sum(q) + 0.5 * np.log(constraint.size)


def _ordered(_: Any, z: Any) -> tuple[Any, Any]:
    jnp = load_jax().numpy
    return jnp.cumsum(jnp.concatenate([z[:1], jnp.exp(z[1:])])), jnp.sum(z[1:])


def _covariance(constraint: Any, z: Any) -> tuple[Any, Any]:
    jnp, size = load_jax().numpy, constraint.size
    rows, columns = np.tril_indices(size)
    on = rows == columns
    numbers = jnp.where(on, jnp.exp(jnp.where(on, z, 0.0)), z)
    factor = jnp.zeros((size, size)).at[rows, columns].set(numbers)
    log = size * np.log(2.0) + jnp.sum(np.where(on, size - rows + 1.0, 0.0) * z)
    return (factor @ factor.T).ravel(), log


_MAPS: Mapping[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "simplex": _simplex,
    "ordered": _ordered,
    "covariance": _covariance,
}
