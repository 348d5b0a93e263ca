"""nutpie: NUTS in Rust, on a log density in JAX or on a PyMC model compiled by Numba."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import nutpie

from peers.outcome import Chain, Outcome, OverTimeError, Share, Stopwatch, Task, run_chains

MILLISECONDS_BETWEEN_LOOKS = 20


def on_jax(task: Task) -> Outcome:
    """Sample the log density that NumPyro and BlackJAX get too."""
    watch = Stopwatch(task.seconds)
    with watch.phase("compilation"):
        function = _density(task)

    def model(start: Any) -> Any:
        return nutpie.compiled_pyfunc.from_pyfunc(
            task.dim,
            lambda: function,
            lambda seed1, seed2, chain: lambda b: {"b": np.asarray(b, dtype=np.float64)},
            [np.dtype(np.float64)],
            [(task.dim,)],
            ["b"],
            make_initial_point_fn=lambda seed: start,
        )

    return run_chains(task, watch, lambda share: _chain(task, share, model))


def on_pymc(task: Task) -> Outcome:
    """Sample the model that PyMC gets too."""
    from peers.pymc_nuts import model_of

    watch = Stopwatch(task.seconds)
    with watch.phase("compilation"):
        compiled = nutpie.compile_pymc_model(model_of(task), backend="numba")
        # Numba works when the function is first called.
        nutpie.sample(compiled, draws=1, tune=1, chains=1, cores=1, progress_bar=False, seed=1)
    return run_chains(task, watch, lambda share: _chain(task, share, lambda start: compiled))


def _density(task: Task) -> Any:
    import jax

    from peers.jax_rows import PlainPrior, compiled, data_of, rows

    prior, data = PlainPrior(task.prior_variance), data_of(task)

    def minus(b: Any, data: Any) -> Any:
        return rows(b, data) + prior(b)

    both = compiled(jax.value_and_grad(minus), task.starts[0], data)

    def function(b: Any) -> tuple[float, Any]:
        value, gradient = both(b, data)
        return -float(value), -np.asarray(gradient)

    function(task.starts[0])
    return function


def _chain(task: Task, share: Share, model: Any) -> Chain:
    warm: list[float] = []
    began, draws_made = time.perf_counter(), [-task.warmup]

    def watched(chains: Any) -> None:
        draws_made[0] = chains[0].finished_draws - task.warmup
        if not warm and draws_made[0] >= 0:
            warm.append(time.perf_counter() - began)

    sampler = nutpie.sample(
        model(task.starts[share.number]),
        draws=share.draws,
        tune=task.warmup,
        chains=1,
        cores=1,
        seed=task.seed + share.number,
        adaptation="low_rank" if task.dense else "diag",
        blocking=False,
        progress_bar=False,
        progress_callback=watched,
        progress_rate=MILLISECONDS_BETWEEN_LOOKS,
    )
    trace = None
    while trace is None:
        try:
            trace = sampler.wait(timeout=0.001 * MILLISECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            _check(task, draws_made[0], time.perf_counter() - began)
            if share.is_over(draws_made[0], time.perf_counter() - began):
                trace = sampler.abort()
    seconds = time.perf_counter() - began
    paid = trace["sample_stats"]["n_steps"].sum() + trace["warmup_sample_stats"]["n_steps"].sum()
    warmup = warm[0] if warm else seconds
    draws = np.asarray(trace["posterior"]["b"], dtype=np.float64)[0]
    return Chain(draws=draws, steps=int(paid), warmup=warmup, sampling=seconds - warmup)


def _check(task: Task, draws: int, seconds: float) -> None:
    if draws < 0 and seconds > task.longest_warmup / task.chains:
        raise OverTimeError.after(draws + task.warmup, task.warmup, seconds)
