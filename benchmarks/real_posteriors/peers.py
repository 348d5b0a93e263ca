"""NUTS of other libraries on the same posteriors, and the gradients that they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from harness import Row, installed_version
from real_posteriors.judging import judge
from real_posteriors.targets import Posterior
from surrokit.types import FloatArray

CHAINS, DRAWS = 4, 1000

NUMPYRO_WARMUP = 500
"""NumPyro has no default length. nutpie has, and it is used."""

Made: TypeAlias = tuple[FloatArray, int, int]
"""Draws (chains, draws, dim) on the whole space, and steps before them and among them."""


@attrs.frozen(kw_only=True)
class Peer:
    """Somebody else's NUTS with its defaults, or with another mass matrix."""

    title: str
    library: str
    settings: Mapping[str, Any]  # by keyword

    def row(self, posterior: Posterior, seed: int) -> Row:
        """Return what comes of a run, as plain data."""
        target, potential = posterior.with_gradient(), unbounded(posterior)
        sample: Callable[..., Made] = {"nutpie": _nutpie, "numpyro": _numpyro}[self.library]
        began = time.perf_counter()
        draws, before, during = sample(potential, target.dim, seed, **self.settings)
        seconds = time.perf_counter() - began
        flat = target.transform.to_bounded(draws.reshape(-1, target.dim))
        named = posterior.case.name_draws(flat.reshape(draws.shape))
        return {
            "status": "done",
            "message": "",
            **attrs.asdict(judge(named, posterior.reference)),
            "warnings": [],
            "calls_before": {"gradient": before},
            "calls": {"gradient": before + during},
            "seconds": seconds,
            "chains": draws.shape[0],
            "draws": draws.shape[1],
            "moments": {name: [float(x.mean()), float(x.std())] for name, x in named.items()},
            "versions": {self.library: installed_version(self.library)},
        }


def unbounded(posterior: Posterior) -> Callable[[Any], Any]:
    """Return U of one position on the whole space, shape (dim,), which JAX can differentiate.

    Raises
    ------
    ImportError
        If JAX is not installed.
    """
    import jax
    import jax.numpy as jnp

    from real_posteriors import in_jax

    log_density = getattr(in_jax, posterior.case.density)(posterior.data)
    lower, upper = posterior.case.declared.bounds()
    positive = np.isfinite(lower) & ~np.isfinite(upper)
    between = np.isfinite(upper)

    def potential(z: Any) -> Any:
        part = jax.nn.sigmoid(z)
        q = jnp.where(positive, jnp.exp(jnp.where(positive, z, 0.0)), z)
        volume = jnp.where(positive, z, 0.0)
        q = jnp.where(between, part, q)
        volume = jnp.where(between, jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z), volume)
        return -log_density(q) - volume.sum()

    return potential


def _nutpie(potential: Callable[[Any], Any], dim: int, seed: int, **settings: Any) -> Made:
    import jax
    import nutpie

    both = jax.jit(jax.value_and_grad(potential))

    def function(z: Any) -> tuple[float, Any]:
        value, gradient = both(z)
        return -float(value), -np.asarray(gradient)

    model = nutpie.compiled_pyfunc.from_pyfunc(
        dim,
        lambda: function,
        lambda seed1, seed2, chain: lambda z: {"z": np.asarray(z, dtype=np.float64)},
        [np.dtype(np.float64)],
        [(dim,)],
        ["z"],
    )
    trace = nutpie.sample(
        model, draws=DRAWS, chains=CHAINS, cores=1, seed=seed, progress_bar=False, **settings
    )
    before, during = (
        int(np.asarray(trace[name]["n_steps"]).sum())
        for name in ("warmup_sample_stats", "sample_stats")
    )
    return np.asarray(trace["posterior"]["z"], dtype=np.float64), before, during


def _numpyro(potential: Callable[[Any], Any], dim: int, seed: int, **settings: Any) -> Made:
    import jax
    import jax.numpy as jnp
    from numpyro.infer import MCMC, NUTS

    kernel = NUTS(potential_fn=potential, **settings)
    chains = MCMC(
        kernel,
        num_warmup=NUMPYRO_WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    begin, key = jax.random.split(jax.random.key(seed))
    # as Stan and NumPyro begin, where the density is finite
    many = jax.random.uniform(begin, (100 * CHAINS, dim), minval=-2.0, maxval=2.0)
    starts = many[jnp.isfinite(jax.vmap(potential)(many))][:CHAINS]
    found = []
    chains.warmup(key, init_params=starts, extra_fields=("num_steps",), collect_warmup=True)
    found.append(int(np.asarray(chains.get_extra_fields()["num_steps"]).sum()))
    chains.run(chains.post_warmup_state.rng_key, extra_fields=("num_steps",))
    found.append(int(np.asarray(chains.get_extra_fields()["num_steps"]).sum()))
    draws = np.asarray(chains.get_samples(group_by_chain=True), dtype=np.float64)
    return draws, found[0], found[1]
