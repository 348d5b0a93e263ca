"""Mici: dynamic multinomial HMC, on surrokit's own value and gradient."""

from __future__ import annotations

import time

import mici
import numpy as np

from peers.outcome import Outcome, OverTimeError, Stopwatch, Task
from surrokit.potentials import with_gradient
from surrokit.types import FloatArray

ITERATIONS_AT_ONCE = 10


def run(task: Task) -> Outcome:
    """Warm up all chains in stages that share what they learn, then draw in blocks."""
    watch = Stopwatch(task.seconds)
    target, steps = with_gradient(task.target), [0]

    def value(b: FloatArray) -> float:
        return float(target.value(b[None])[0])

    began, warms_up = time.perf_counter(), [True]

    def gradient_and_value(b: FloatArray) -> tuple[FloatArray, float]:
        steps[0] += 1
        if warms_up[0] and time.perf_counter() - began > task.longest_warmup:
            raise OverTimeError(f"warm-up not finished in {task.longest_warmup:.0f} s")
        values, gradients = target.value_and_gradient(b[None])
        return gradients[0], float(values[0])

    system = mici.systems.EuclideanMetricSystem(
        neg_log_dens=value, grad_neg_log_dens=gradient_and_value
    )
    integrator = mici.integrators.LeapfrogIntegrator(system)

    def sampler(block: int) -> mici.samplers.DynamicMultinomialHMC:
        # A second call of one sampler would draw the same random numbers again.
        rng = np.random.default_rng((task.seed, block))
        return mici.samplers.DynamicMultinomialHMC(system, integrator, rng)

    adapters = [
        mici.adapters.DualAveragingStepSizeAdapter(),
        mici.adapters.OnlineCovarianceMetricAdapter()
        if task.dense
        else mici.adapters.OnlineVarianceMetricAdapter(),
    ]
    quiet = {"display_progress": False, "n_worker": 1, "trace_funcs": [lambda s: {"b": s.pos}]}
    with watch.phase("warmup"):
        starts = list(task.starts)
        found = sampler(0).sample_chains(task.warmup, 0, starts, adapters=adapters, **quiet)
        warms_up[0] = False
    parts: list[FloatArray] = []
    while len(parts) * ITERATIONS_AT_ONCE < task.draws and not (watch.is_over and parts):
        with watch.phase("sampling"):
            found = sampler(1 + len(parts)).sample_chains(
                0, ITERATIONS_AT_ONCE, found.final_states, adapters=[], **quiet
            )
        parts.append(np.stack(found.traces["b"]))
    return Outcome(
        draws=np.concatenate(parts, axis=1), seconds=watch.seconds, calls={"gradient": steps[0]}
    )
