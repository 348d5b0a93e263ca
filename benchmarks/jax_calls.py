"""What a gradient of a target in JAX takes beyond the bare compiled function.

    python benchmarks/jax_calls.py

The target is the eight schools, not centred, with 10 parameters. Rounds of both take turns, so
that others on the machine disturb both alike; printed are the least and the median over rounds of
the microseconds of a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import surrokit as sk
from surrokit_jax import from_jax

ROUNDS, CALLS = 30, 500


def density(mu: jax.Array, tau: jax.Array, eta: jax.Array) -> jax.Array:
    """Return the log density of the eight schools."""
    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    prior = -0.5 * (mu / 5.0) ** 2 - jnp.log1p((tau / 5.0) ** 2) - 0.5 * jnp.sum(eta**2)
    return prior - 0.5 * jnp.sum(((effects - mu - tau * eta) / errors) ** 2)


def microseconds(call: Callable[[], object]) -> float:
    """Return what one of many calls takes."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def main() -> None:
    """Print what calls of one, three and four chains take."""
    jax.config.update("jax_enable_x64", True)
    target = from_jax(density, {"mu": None, "tau": (0.0, None), "eta": sk.vector(8)})
    bare = jax.jit(jax.vmap(jax.value_and_grad(target.function)))  # type: ignore[attr-defined]
    rng = np.random.default_rng(1)
    for n in (1, 3, 4):
        z = rng.normal(size=(n, 10))
        calls: dict[str, Callable[[], object]] = {
            "bare": lambda z=z: jax.block_until_ready(bare(z)),
            "surrokit": lambda z=z: target.value_and_gradient(z),
        }
        rounds = {name: [microseconds(call)] for name, call in calls.items()}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                rounds[name].append(microseconds(call))
        for name, taken in rounds.items():
            kept = taken[1:]
            print(f"{n} chains, {name}: least {min(kept):.1f}, median {np.median(kept):.1f} us")


if __name__ == "__main__":
    main()
