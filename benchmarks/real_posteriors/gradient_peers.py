"""NumPyro and nutpie with their default settings, on the same log densities in JAX."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import attrs
import jax
import jax.numpy as jnp
import numpy as np

from real_posteriors.ours import Drawn
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


CHAINS, WARMUP, DRAWS = 4, 1000, 1000
"""What surrokit does by default; so does NumPyro's documentation."""


def numpyro_nuts(posterior: Posterior, seed: int) -> Drawn:
    """Run NumPyro's NUTS, all chains in one vectorised program; twice, the first to compile it."""
    import jax
    from numpyro.infer import MCMC, NUTS

    line = Line.of(posterior)
    starts = line.starts(CHAINS, seed)
    mcmc = MCMC(
        NUTS(potential_fn=lambda z: -line(z)),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )

    def steps() -> int:
        return int(np.asarray(mcmc.get_extra_fields()["num_steps"]).sum())

    for _ in ("compiling", "timed"):
        began = time.perf_counter()
        key = jax.random.key(seed)
        mcmc.warmup(key, init_params=starts, extra_fields=("num_steps",), collect_warmup=True)
        before = steps()
        mcmc.run(key, extra_fields=("num_steps",))
        seconds = time.perf_counter() - began
    z = np.asarray(mcmc.get_samples(group_by_chain=True))
    return _drawn(line, z, before, before + steps(), seconds)


def nutpie_nuts(posterior: Posterior, seed: int) -> Drawn:
    """Run nutpie with its own length of warm-up."""
    import jax
    import nutpie

    line = Line.of(posterior)
    starts = itertools.cycle(line.starts(CHAINS, seed))
    both = jax.jit(jax.value_and_grad(line))
    both(np.zeros(posterior.case.dim))

    def log_density(z: Any) -> tuple[float, Any]:
        value, gradient = both(z)
        return float(value), np.asarray(gradient)

    dim = posterior.case.dim
    model = nutpie.compiled_pyfunc.from_pyfunc(
        dim,
        lambda: log_density,
        lambda *_: lambda z: {"z": np.asarray(z, dtype=np.float64)},
        [np.dtype(np.float64)],
        [(dim,)],
        ["z"],
        make_initial_point_fn=lambda _: next(starts),
    )
    began = time.perf_counter()
    trace = nutpie.sample(model, chains=CHAINS, cores=1, seed=seed, progress_bar=False)
    seconds = time.perf_counter() - began
    before = int(trace["warmup_sample_stats"]["n_steps"].sum())
    after = int(trace["sample_stats"]["n_steps"].sum())
    return _drawn(line, np.asarray(trace["posterior"]["z"]), before, before + after, seconds)


def _drawn(line: Line, z: Any, before: int, steps: int, seconds: float) -> Drawn:
    return Drawn(
        draws=np.asarray(line.to_bounded(z), dtype=np.float64),
        calls_before={"gradient": before},
        calls={"gradient": steps},
        seconds=seconds,
    )
