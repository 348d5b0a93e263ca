"""What a gradient of a model of another library takes beyond that library's own compiled call.

    python benchmarks/model_calls.py jax pymc numpyro stan

The models are the eight schools in JAX, a normal regression of 20 coefficients on 100 rows in PyMC
and in NumPyro, and a model with BridgeStan's face that costs next to nothing. Printed are the least
and the median over rounds of the microseconds of a call, for one and for four chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

import surrokit as sk
from harness import in_turns

DIM = 20
_RNG = np.random.default_rng(1)
DESIGN = _RNG.normal(size=(100, DIM - 1))
RESPONSE = DESIGN @ _RNG.normal(size=DIM - 1) + _RNG.normal(size=100)

Pair = tuple[Callable[[Any], object], Any]
"""The library's own call, of rows of positions, and the target of surrokit."""


def of_jax() -> Pair:
    import jax
    import jax.numpy as jnp

    from surrokit_jax import from_jax

    jax.config.update("jax_enable_x64", True)

    def density(mu: Any, tau: Any, eta: Any) -> Any:
        effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
        errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
        prior = -0.5 * (mu / 5.0) ** 2 - jnp.log1p((tau / 5.0) ** 2) - 0.5 * jnp.sum(eta**2)
        return prior - 0.5 * jnp.sum(((effects - mu - tau * eta) / errors) ** 2)

    target = from_jax(density, {"mu": None, "tau": (0.0, None), "eta": sk.vector(8)})
    bare = jax.jit(jax.vmap(jax.value_and_grad(target.function)))  # type: ignore[attr-defined]
    return lambda z: jax.block_until_ready(bare(z)), target


def of_pymc() -> Pair:
    import pymc

    from surrokit_pymc import from_pymc

    with pymc.Model() as model:
        slope = pymc.Normal("slope", 0.0, 1.0, shape=DIM - 1)
        sigma = pymc.HalfNormal("sigma", 1.0)
        pymc.Normal("y", DESIGN @ slope, sigma, observed=RESPONSE)
    call = model.logp_dlogp_function(ravel_inputs=True)
    return lambda z: [call(row) for row in z], from_pymc(model)


def of_numpyro() -> Pair:
    import jax
    import numpyro
    from jax.flatten_util import ravel_pytree
    from numpyro import distributions as dist
    from numpyro.infer.util import initialize_model

    from surrokit_jax import from_numpyro

    jax.config.update("jax_enable_x64", True)

    def model() -> None:
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([DIM - 1]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(DESIGN @ slope, sigma), obs=RESPONSE)

    info = initialize_model(jax.random.PRNGKey(0), model)
    _, unravel = ravel_pytree(info.param_info.z)
    both = jax.jit(jax.value_and_grad(lambda z: info.potential_fn(unravel(z))))
    return lambda z: [jax.block_until_ready(both(row)) for row in z], from_numpyro(model)


class Free:
    """As BridgeStan's model, of independent normal numbers."""

    def param_unc_num(self) -> int:
        return DIM

    def param_unc_names(self) -> list[str]:
        return [f"q.{i}" for i in range(1, DIM + 1)]

    def param_names(self, *, include_tp: bool = False, include_gq: bool = False) -> list[str]:
        return self.param_unc_names()

    def param_constrain(self, theta_unc: Any, **_: Any) -> Any:
        return theta_unc.copy()

    def param_unconstrain(self, theta: Any) -> Any:
        return theta.copy()

    def new_rng(self, seed: int) -> int:
        return seed

    def log_density(self, theta_unc: Any, *, propto: bool = True, jacobian: bool = True) -> float:
        return float(-0.5 * theta_unc @ theta_unc)

    def log_density_gradient(
        self, theta_unc: Any, *, propto: bool = True, jacobian: bool = True
    ) -> tuple[float, Any]:
        return float(-0.5 * theta_unc @ theta_unc), -theta_unc


def of_stan() -> Pair:
    from surrokit_stan import from_stan

    free = Free()
    return lambda z: [free.log_density_gradient(row) for row in z], from_stan(free)


LIBRARIES = {"jax": of_jax, "pymc": of_pymc, "numpyro": of_numpyro, "stan": of_stan}


@click.command()
@click.argument("libraries", nargs=-1, type=click.Choice(list(LIBRARIES)))
def main(libraries: tuple[str, ...]) -> None:
    """Print comparisons, by default all."""
    for name in libraries or LIBRARIES:
        bare, target = LIBRARIES[name]()
        for n in (1, 4):
            z = 0.1 * np.random.default_rng(1).normal(size=(n, target.dim))
            calls = {
                "bare": lambda z=z, bare=bare: bare(z),
                "surrokit": lambda z=z, target=target: target.value_and_gradient(z),
            }
            found = in_turns(calls, rounds=30, each=500)
            told = {
                what: (1e6 * taken.min(), 1e6 * np.median(taken)) for what, taken in found.items()
            }
            told["added for each chain"] = tuple(
                (ours - own) / n for ours, own in zip(told["surrokit"], told["bare"], strict=True)
            )
            shown = (f"{what} {least:.1f} ({mid:.1f})" for what, (least, mid) in told.items())
            click.echo(f"{name}, {n} chains: {', '.join(shown)} us")


if __name__ == "__main__":
    main()
