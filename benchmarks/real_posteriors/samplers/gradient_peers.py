"""NumPyro and nutpie with their default settings, on the same log densities in JAX."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from real_posteriors.samplers.line import Line
from real_posteriors.samplers.outcome import Drawn
from real_posteriors.targets import Posterior

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
