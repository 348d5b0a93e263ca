"""What a gradient of a model of another library takes beyond that library's own compiled call.

    python benchmarks/model_calls.py

The models are a normal regression of 20 coefficients on 100 rows, in PyMC and in NumPyro, and a
model with BridgeStan's face that costs next to nothing. Rounds of both take turns, so that others
on the machine disturb both alike; printed are the least and the median over rounds of the
microseconds of a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS, CALLS, DIM = 30, 500, 20


def regression() -> Any:
    """Return a model of PyMC."""
    import pymc

    rng = np.random.default_rng(1)
    design = rng.normal(size=(100, DIM - 1))
    response = design @ rng.normal(size=DIM - 1) + rng.normal(size=100)
    with pymc.Model() as model:
        slope = pymc.Normal("slope", 0.0, 1.0, shape=DIM - 1)
        sigma = pymc.HalfNormal("sigma", 1.0)
        pymc.Normal("y", design @ slope, sigma, observed=response)
    return model


def numpyro_regression() -> Any:
    """Return the same as a model of NumPyro."""
    import numpyro
    from numpyro import distributions as dist

    rng = np.random.default_rng(1)
    design = rng.normal(size=(100, DIM - 1))
    response = design @ rng.normal(size=DIM - 1) + rng.normal(size=100)

    def model() -> None:
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([DIM - 1]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(design @ slope, sigma), obs=response)

    return model


def numpyro_call(model: Any) -> Callable[[Any], object]:
    """Return NumPyro's own potential with its gradient, compiled, for one vector."""
    import jax
    from jax.flatten_util import ravel_pytree
    from numpyro.infer.util import initialize_model

    info = initialize_model(jax.random.PRNGKey(0), model)
    _, unravel = ravel_pytree(info.param_info.z)
    both = jax.jit(jax.value_and_grad(lambda z: info.potential_fn(unravel(z))))
    return lambda z: jax.block_until_ready(both(z))


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


def microseconds(call: Callable[[], object]) -> float:
    """Return what one of many calls takes."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def compare(what: str, bare: Callable[[Any], object], target: Any) -> None:
    """Print what calls of one and of four chains take, and what is added for each chain."""
    rng = np.random.default_rng(1)
    for n in (1, 4):
        z = 0.1 * rng.normal(size=(n, DIM))
        rows = list(z)
        calls: dict[str, Callable[[], object]] = {
            "bare": lambda rows=rows: [bare(row) for row in rows],
            "surrokit": lambda z=z: target.value_and_gradient(z),
        }
        rounds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS + 1):
            for name, call in calls.items():
                rounds[name].append(microseconds(call))
        least = {name: min(taken[1:]) for name, taken in rounds.items()}
        median = {name: float(np.median(taken[1:])) for name, taken in rounds.items()}
        added = {
            "least": (least["surrokit"] - least["bare"]) / n,
            "median": (median["surrokit"] - median["bare"]) / n,
        }
        print(
            f"{what}, {n} chains: bare {least['bare']:.1f} ({median['bare']:.1f}), surrokit "
            f"{least['surrokit']:.1f} ({median['surrokit']:.1f}), added for each chain "
            f"{added['least']:.1f} ({added['median']:.1f}) us"
        )


def main() -> None:
    """Print all comparisons."""
    import jax

    from surrokit_jax import from_numpyro
    from surrokit_pymc import from_pymc
    from surrokit_stan import from_stan

    model = regression()
    compare("PyMC", model.logp_dlogp_function(ravel_inputs=True), from_pymc(model))
    jax.config.update("jax_enable_x64", True)
    written = numpyro_regression()
    compare("NumPyro", numpyro_call(written), from_numpyro(written))
    free = Free()
    compare("Stan", free.log_density_gradient, from_stan(free))


if __name__ == "__main__":
    main()
