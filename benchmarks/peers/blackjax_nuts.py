"""BlackJAX: NUTS with window adaptation, chains vectorised."""

from __future__ import annotations

from typing import Any

import blackjax
import jax
import numpy as np

from peers.jax_rows import Data, PlainPrior, compiled, data_of, rows, to_numpy
from peers.outcome import Outcome, Stopwatch, Task

ITERATIONS_AT_ONCE = 10


def run(task: Task) -> Outcome:
    """Warm each chain up by itself, then draw in blocks until the time is over."""
    watch = Stopwatch(task.seconds)
    prior = PlainPrior(task.prior_variance)
    data = data_of(task)

    def density(data: Data) -> Any:
        return lambda b: -rows(b, data) - prior(b)

    def warmed(key: jax.Array, start: jax.Array, data: Data) -> Any:
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, density(data), is_mass_matrix_diagonal=not task.dense
        )
        (state, parameters), info = adaptation.run(key, start, num_steps=task.warmup)
        tuned = {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}
        return state, tuned, info.info.num_integration_steps

    def chain(key: jax.Array, state: Any, tuned: Any, data: Data) -> Any:
        step = blackjax.nuts(density(data), **tuned).step

        def iteration(state: Any, key: jax.Array) -> Any:
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(iteration, state, jax.random.split(key, ITERATIONS_AT_ONCE))

    all_warmed = jax.vmap(warmed, (0, 0, None))
    all_chains = jax.vmap(chain, (0, 0, 0, None))
    key = jax.random.key(task.seed)
    keys = jax.random.split(key, task.chains)
    with watch.phase("compilation"):
        warm = compiled(all_warmed, keys, task.starts, data)
        state, tuned, _ = jax.eval_shape(all_warmed, keys, task.starts, data)
        advance = compiled(all_chains, keys, state, tuned, data)
    with watch.phase("warmup"):
        state, tuned, taken = jax.block_until_ready(warm(keys, task.starts, data))
    steps = int(np.asarray(taken).sum())
    parts: list[Any] = []
    while len(parts) * ITERATIONS_AT_ONCE < task.draws and not (watch.is_over and parts):
        with watch.phase("sampling"):
            keys = jax.random.split(jax.random.fold_in(key, len(parts) + 1), task.chains)
            state, (positions, taken) = advance(keys, state, tuned, data)
            parts.append(to_numpy(positions))
        steps += int(np.asarray(taken).sum())
    return Outcome(
        draws=np.concatenate(parts, axis=1), seconds=watch.seconds, calls={"gradient": steps}
    )
