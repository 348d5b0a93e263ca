"""NumPyro: NUTS, all chains in one vectorised program."""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import NUTS

from peers.jax_rows import Data, compiled, data_of, rows, to_numpy
from peers.outcome import Outcome, OverTimeError, Stopwatch, Task

ITERATIONS_AT_ONCE = 10


def run(task: Task) -> Outcome:
    """Warm up, then draw in blocks until the time is over.

    The kernel is stepped by its own ``init`` and ``sample``, as ``numpyro.infer.MCMC`` does, so
    that compilation can be timed and the draws can end in time.
    """
    watch = Stopwatch(task.seconds)
    scale = task.prior_variance**0.5

    def model(data: Data) -> None:
        b = numpyro.sample("b", dist.Normal(0.0, scale).expand([task.dim]).to_event(1))
        numpyro.factor("rows", -rows(b, data))

    kernel = NUTS(model, dense_mass=task.dense)
    data = data_of(task)
    keys = jax.random.split(jax.random.key(task.seed), task.chains)

    def begun(keys: jax.Array, starts: jax.Array, data: Data) -> Any:
        return kernel.init(keys, task.warmup, init_params={"b": starts}, model_args=(data,))

    def block(state: Any, data: Data) -> Any:
        def step(state: Any, _: None) -> Any:
            state = kernel.sample(state, (data,), {})
            return state, (state.z["b"], state.num_steps)

        return jax.lax.scan(step, state, None, length=ITERATIONS_AT_ONCE)

    with watch.phase("compilation"):
        begin = compiled(begun, keys, task.starts, data)
        shapes = jax.eval_shape(begun, keys, task.starts, data)
        advance = compiled(block, shapes, data)
    with watch.phase("warmup"):
        state, steps = begin(keys, task.starts, data), 0
        began = time.perf_counter()
        for done in range(0, task.warmup, ITERATIONS_AT_ONCE):
            if (seconds := time.perf_counter() - began) > task.longest_warmup:
                raise OverTimeError.after(done, task.warmup, seconds)
            state, (_, taken) = advance(state, data)
            steps += int(np.asarray(taken).sum())
    parts: list[Any] = []
    while len(parts) * ITERATIONS_AT_ONCE < task.draws and not (watch.is_over and parts):
        with watch.phase("sampling"):
            state, (positions, taken) = advance(state, data)
            parts.append(to_numpy(positions))
        steps += int(np.asarray(taken).sum())
    draws = np.concatenate(parts).swapaxes(0, 1)
    return Outcome(draws=draws, seconds=watch.seconds, calls={"gradient": steps})
